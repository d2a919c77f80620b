#!/usr/bin/env bash
# Runs everything that needs a GPU, with the build in build/gpu/ (scripts/pack_for_gpu.sh): sets the library paths, then
# starts scripts/gpu_test.py. gpu_test.sh --help lists the parts. Needs python3 with torch.
set -euo pipefail
cd "$(dirname "$0")/.."
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
export LD_LIBRARY_PATH=$torch/lib:$(dirname "$torch")/nvidia/cu13/lib:/usr/local/cuda/lib64
export PYTHONPATH=$PWD/build/gpu/py PYTHONUNBUFFERED=1
exec python3 scripts/gpu_test.py "$@"

#!/usr/bin/env bash
# Fails if a source includes a header of a layer above its own. Link lines enforce this for symbols; an inline
# function of a higher layer would pass them.
set -euo pipefail
cd "$(dirname "$0")/.."

failures=0
# layer FOLDER ALLOWED...: sources of FOLDER may include "FOLDER/..." and "ALLOWED/...".
layer() {
  local folder=$1 allowed
  allowed=$(IFS='|'; echo "$*")
  if grep -rnE '#include "(runtime|ir|passes|backend|frontend|tools|tests|bench|examples)/' "$folder" --include=*.{cpp,h,cu,cuh,def} |
    grep -vE "#include \"($allowed)/"; then
    echo "$folder may include only: $*" >&2
    failures=$((failures + 1))
  fi
}
layer runtime/base
layer runtime/plan runtime/base
layer runtime/kernels runtime/base
layer runtime/exec runtime/base runtime/plan runtime/kernels
layer runtime/aten runtime/base runtime/plan
layer ir runtime/base
layer passes ir runtime/base
layer backend ir runtime/base runtime/plan runtime/kernels
layer frontend ir runtime/base
layer tools/tuner backend ir runtime/base runtime/plan runtime/kernels runtime/exec
exit $((failures > 0))

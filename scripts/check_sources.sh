#!/usr/bin/env bash
# Fails if a source includes a header of a layer above its own, if a name is not the only one in its library
# (check_names.py), or if a folder outgrows its budget of lines. Link lines enforce the layering for symbols but not for
# inline functions.
set -euo pipefail
cd "$(dirname "$0")/.."

failures=0
# layer FOLDER ALLOWED...: sources of FOLDER may include "FOLDER/..." and "ALLOWED/...", or the file "ALLOWED".
layer() {
  local folder=$1 allowed
  allowed=$(IFS='|'; echo "$*")
  if grep -rnE '#include "(runtime|support|ir|passes|backend|frontend|driver|tuner|tools|tests|bench|examples|triton)/' "$folder" --include=*.{cpp,h,cu,cuh,def} |
    grep -vE "#include \"($allowed)[/\"]"; then
    echo "$folder may include only: $*" >&2
    failures=$((failures + 1))
  fi
}
layer runtime/base
layer runtime/plan runtime/base
layer runtime/kernels runtime/base
layer runtime/exec runtime/base runtime/plan runtime/kernels
layer runtime/session runtime/base runtime/plan runtime/exec
layer runtime/train runtime/base runtime/plan runtime/kernels runtime/exec
layer runtime/c_api runtime/base runtime/plan runtime/exec runtime/session runtime/train runtime/cgc.h
layer runtime/script runtime/base
layer runtime/aten runtime/base runtime/plan runtime/script
layer triton runtime/cgc.h
layer support
layer ir support runtime/base
layer passes support ir runtime/base
layer backend support ir runtime/base runtime/plan runtime/kernels
layer frontend support ir runtime/base runtime/script
layer frontend/ops support ir runtime/base
layer frontend/exported frontend/ops frontend/import_for.h support ir runtime/base
layer tuner backend support ir runtime/base runtime/plan runtime/kernels runtime/exec
layer driver backend passes support ir runtime/base runtime/plan runtime/kernels runtime/exec

# The kernels have a host half, which the compiler may include, and a device half (docs/kernels.md).
# only_host FILES...: these files may include neither the device half nor CUDA.
only_host() {
  if grep -nE '#include ("runtime/kernels/(device|sm90|sm80)/|".*\.cuh"|<cuda)' "$@"; then
    echo "the files above may include only the host half of runtime/kernels, without CUDA" >&2
    failures=$((failures + 1))
  fi
}
mapfile -t host_files < <(find runtime/kernels backend tuner driver -name '*.h' -o -name '*.cpp' | grep -vE '/(device|sm90|sm80)/')
only_host "${host_files[@]}"

# lines FOLDER MOST: prints the lines of code of FOLDER, and fails if they are more than MOST. A change that needs more
# raises the number here and says why.
lines() {
  local count
  count=$(find "$1" -type f -regex '.*\.\(cpp\|h\|cu\|cuh\|def\|fbs\|py\)' -print0 | xargs -0 cat | wc -l)
  printf '%-9s %6d lines of at most %6d\n' "$1" "$count" "$2"
  if ((count > $2)); then
    echo "$1 has more lines than scripts/check_sources.sh allows: raise the number there, and say why in the commit" >&2
    failures=$((failures + 1))
  fi
}
lines runtime 40900
lines triton 1250
lines ir 20920
lines passes 15010
lines backend 7420
lines frontend 8300
lines driver 1870
lines tuner 800
lines support 600
lines tools 13690
lines python 8750
lines bench 1450
scripts/check_names.py || failures=$((failures + 1))
exit $((failures > 0))

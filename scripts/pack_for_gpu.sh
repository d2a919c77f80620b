#!/usr/bin/env bash
# Collects the files of a release build that scripts/gpu_test.sh needs in build/gpu/ (stripped, about 80 MB). A GPU
# machine then needs neither a compiler nor the project's packages, only the repository with that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

release=build/release
target=build/gpu
rm -rf "$target"
mkdir -p "$target/bin" "$target/lib" "$target/py"

for program in cgc cgc_conformance_tests cgc_numerics_tests; do
  strip -o "$target/bin/$program" "$release/bin/$program"
done
for library in libcgc_frontend.so libcgc_aten.so libcgc_reference.so libcgc_runtime.so libcgc_test_ops.so libcgc_test_partial_ops.so; do
  strip -o "$target/lib/$library" "$release/lib/$library"
done
# The ctest Examples.BuildAgainstAnInstalledCgc builds these libraries.
for library in "$release"/examples/plugin/libexample_*.so; do
  if [[ -e $library ]]; then strip -o "$target/lib/$(basename "$library")" "$library"; fi
done
# To export models, a GPU machine with torch lacks only open_clip and its dependencies, which are pure Python.
pinned=$(awk '$2 ~ /^(open[-_]clip[-_]torch|ftfy|wcwidth)$/ {print $2 "==" $3}' scripts/dependencies.txt)
# shellcheck disable=SC2086
.venv/bin/pip install -q --no-deps --target "$target/py" $pinned
# The Python package, which the ctest Python.WheelIsBuilt builds, and the module that it imports.
if [[ -d $release/python/site/cgc ]]; then
  cp -r "$release/python/site/cgc" "$target/py/"
  ln -sf ../../bin/cgc "$target/py/cgc/cgc"
  backend=$(awk '$2 == "nanobind-backend" {print $2 "==" $3}' scripts/dependencies.txt)
  wheels=$(mktemp -d)
  for version in 3.10 3.11 3.12 3.13; do # The machine may have any of them.
    .venv/bin/pip download -q --no-deps --only-binary :all: --python-version "$version" --dest "$wheels" "$backend"
  done
  for wheel in "$wheels"/*.whl; do .venv/bin/python -m zipfile -e "$wheel" "$target/py"; done
  rm -r "$wheels"
fi
du -sh "$target"

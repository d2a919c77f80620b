#!/usr/bin/env bash
# Collects what scripts/gpu_test.sh needs from a release build into build/gpu/ (stripped, about 40 MB), so that a GPU
# machine without a compiler or the project's packages can run it. Carry the repository and that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

release=build/release
target=build/gpu
rm -rf "$target"
mkdir -p "$target/bin" "$target/lib" "$target/py"

for program in cgc cgc_conformance_tests cgc_numerics_tests; do
  strip -o "$target/bin/$program" "$release/bin/$program"
done
for library in libcgc_frontend.so libcgc_aten.so libcgc_runtime.so libcgc_test_ops.so libcgc_test_partial_ops.so; do
  strip -o "$target/lib/$library" "$release/lib/$library"
done
# Made by the ctest Examples.BuildAgainstAnInstalledCgc.
for library in "$release"/examples/plugin/libexample_*.so; do
  if [[ -e $library ]]; then strip -o "$target/lib/$(basename "$library")" "$library"; fi
done
# open_clip is pure Python and is all that a GPU machine with torch lacks for exporting models.
pinned=$(awk '$2 ~ /^(open[-_]clip[-_]torch|ftfy|wcwidth)$/ {print $2 "==" $3}' scripts/dependencies.txt)
# shellcheck disable=SC2086
.venv/bin/pip install -q --no-deps --target "$target/py" $pinned
du -sh "$target"

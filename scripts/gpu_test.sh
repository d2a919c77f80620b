#!/usr/bin/env bash
# Runs everything that needs a GPU, from a build carried in build/gpu/ (scripts/pack_for_gpu.sh): conformance tests,
# whole models compared with LibTorch on both executors, and the timing table. Prints as it goes; all figures go to
# the folder given as first argument (default build/gpu/out). The others are models (default: the four of
# docs/performance.md), for example ViT-B-32-fp16. Needs python3 with torch, and about 12 GB in /tmp.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:-build/gpu/out}
mkdir -p "$out"
models=$(mktemp -d /tmp/cgc-models.XXXXXX)
trap 'rm -rf "$models"' EXIT

torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
export LD_LIBRARY_PATH=$torch/lib:$(dirname "$torch")/nvidia/cu13/lib:/usr/local/cuda/lib64
export PYTHONPATH=$PWD/build/gpu/py PYTHONUNBUFFERED=1
cgc=build/gpu/bin/cgc
failures=0

step() { printf '\n== %s [%ds]\n' "$*" "$SECONDS"; }
check() {
  "$@" && return
  echo "FAILED ($?): $*"
  failures=$((failures + 1))
  return 1
}

step "machine"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 -c 'import torch; print("torch", torch.__version__)'

step "export, meanwhile"
names=("${@:2}")
[[ ${names[*]} ]] || names=(ViT-B-32-fp16 ViT-B-32-fp32 ViT-L-14-fp16 ViT-L-14-fp32)
exports=()
for name in "${names[@]}"; do
  python3 scripts/export_openclip.py --model "${name%-fp*}" --precision "fp${name##*-fp}" --device cuda \
    --out "$models/$name.pt" &
  exports+=($!)
done

step "conformance tests, and each lowered op on the GPU"
check build/gpu/bin/cgc_conformance_tests --gtest_brief=1
check build/gpu/bin/cgc_numerics_tests --gtest_brief=1 --gtest_filter='*CudaFirst*:*EqualsTheCpuOnCuda*'
for export in "${exports[@]}"; do check wait "$export"; done

for name in "${names[@]}"; do
  path=$models/$name.pt
  dtype=f${name##*-fp}
  plan=$models/$name.cgplan
  step "$name: compile"
  check $cgc compile "$path" -o "$plan" --target cuda --batch 1,3,4 \
    --input "image=$dtype[1,3,224,224]" --input 'text=i64[1,77]'
  step "$name: compare with LibTorch"
  check $cgc compare "$plan" "$path"
  step "$name: stream and graph executor, programmatic and plain edges, bit for bit"
  for entry in encode_image encode_text forward; do
    inputs=(--input image=random:1 --input text=random:2)
    [ $entry = encode_image ] && inputs=(--input image=random:1)
    [ $entry = encode_text ] && inputs=(--input text=random:2)
    run_to() { # NAME OPTION...
      check $cgc run "$plan" --entry $entry "${inputs[@]}" --output "$models/$1.npy" "${@:2}" >/dev/null
    }
    run_to stream --executor stream
    run_to graph --executor graph
    run_to plain --executor graph --no-pdl
    for stream in "$models"/stream*.npy; do
      for other in graph plain; do
        check cmp "$stream" "${stream/stream/$other}" && echo "$entry $(basename "$stream"): equal to $other"
      done
    done
    rm -f "$models"/*.npy
  done
done

step "timing: as compiled, tuned, and LibTorch in the same process"
for name in "${names[@]}"; do
  plan=$models/$name.timing.cgplan
  tuned=$models/$name.tuned.cgplan
  dtype=f${name##*-fp}
  check $cgc compile "$models/$name.pt" -o "$plan" --target cuda --entry encode_text --entry encode_image \
    --batch 1,8,16,64 --input "image=$dtype[1,3,224,224]" --input 'text=i64[1,77]' >/dev/null
  check $cgc tune "$plan" -o "$tuned" | tee "$out/$name.tune.txt"
  time_to() { # FILE PLAN OPTION...
    local file=$out/$name.$1.txt
    check $cgc bench "${@:2}" | tee -a "$file" | grep back-to-back
  }
  for case in encode_text:1,16 encode_image:1,8,64; do
    buckets=(--entry "${case%:*}" --batch "${case#*:}")
    time_to compiled "$plan" "${buckets[@]}"
    time_to tuned "$tuned" "${buckets[@]}" --against "$models/$name.pt"
    time_to compiled-again "$plan" "${buckets[@]}"
  done
  step "$name: the tuned plan compared with LibTorch"
  check $cgc compare "$tuned" "$models/$name.pt"
done

step "done: $failures failures"
exit $((failures > 0))

#!/usr/bin/env bash
# gpu_families.sh [FOLDER [MODEL...]]: tests the models of docs/supported-models.md on a GPU machine, with the build in
# build/gpu/ (scripts/pack_for_gpu.sh). Exports each model in real size, compiles it for cuda, compares it with LibTorch,
# and runs it with both executors, whose results must be bit-equal. Writes a line for each model to families.txt in
# FOLDER (default build/gpu/out). MODELs default to all. Needs python3 with torch, torchvision, timm and transformers,
# and about 10 GB in /tmp.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

out=${1:-build/gpu/out}
mkdir -p "$out"
work=$(mktemp -d /tmp/cgc-families.XXXXXX)
trap 'rm -rf "$work"' EXIT

torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
export LD_LIBRARY_PATH=$torch/lib:$(dirname "$torch")/nvidia/cu13/lib:/usr/local/cuda/lib64
export PYTHONPATH=$PWD/build/gpu/py PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
cgc=build/gpu/bin/cgc

# export_one NAME: exports one model on the CPU; cgc moves it to the GPU.
export_one() {
  mkdir -p "$work/$1"
  python3 tests/e2e/make_families.py "$work/$1" --real "$1" >"$work/$1.log" 2>&1 && return
  tail -n 3 "$work/$1.log"
  echo "FAILED: $1 is not exported"
  return 1
}

# test_one NAME: tests one exported model; prints each failure, or one line for success.
test_one() {
  local name=$1 folder=$work/$1 entry input bad=0 start=$SECONDS
  local model=$folder/$1.pt plan=$folder/plan.cgplan inputs=()
  while read -r input; do inputs+=(--input "$input"); done <"$folder/$name.inputs"
  $cgc compile "$model" -o "$plan" --target cuda --batch 1,3 "${inputs[@]}" >"$folder/compile.txt" 2>&1 || {
    cat "$folder/compile.txt"
    echo "FAILED: $name does not compile"
    return 1
  }
  local compiled=$((SECONDS - start))
  $cgc compare "$plan" "$model" --json >"$folder/compare.json" 2>"$folder/compare.log" || {
    cat "$folder/compare.json"
    echo "FAILED: $name differs from LibTorch"
    bad=1
  }
  local batch executor one random
  for batch in 1 3; do
    while read -r entry input; do
      random=()
      for one in $input; do random+=(--input "$one=random:1"); done
      for executor in stream graph; do
        $cgc run "$plan" --entry "$entry" --batch $batch "${random[@]}" --executor $executor \
          --output "$folder/$executor.npy" >/dev/null 2>"$folder/run.log" || {
          cat "$folder/run.log"
          echo "FAILED: $name $entry batch $batch, $executor executor"
          bad=1
        }
      done
      for one in "$folder"/stream*.npy; do
        cmp "$one" "${one/stream/graph}" || { echo "FAILED: $name $entry batch $batch: not bit-equal"; bad=1; }
      done
      rm -f "$folder"/*.npy
    done < <($cgc inspect "$plan" --json | python3 -c '
import json, sys
for entry in json.load(sys.stdin)["entries"]:
    print(entry["name"], *(i["name"] for i in entry["buckets"][0]["inputs"]))')
  done
  ((bad)) && return 1
  local worst
  worst=$(python3 -c 'import json, sys
print("%.1e" % max(output["relative_l2"] for output in json.load(sys.stdin)["outputs"]))' <"$folder/compare.json")
  echo "ok $name: compiled in $compiled s, relative L2 at most $worst, stream and graph bit-equal" |
    tee -a "$out/families.txt"
}

names=("${@:2}")
[[ ${names[*]} ]] || read -ra names < <(python3 tests/e2e/make_families.py --list "$work")
: >"$out/families.txt"
failures=0
for name in "${names[@]}"; do
  while (($(jobs -rp | wc -l) >= 5)); do # At most five at a time.
    wait -n || failures=$((failures + 1))
  done
  (
    result=0
    { export_one "$name" && test_one "$name"; } || result=1
    rm -rf "${work:?}/$name"
    exit $result
  ) &
done
while [[ $(jobs -p) ]]; do wait -n || failures=$((failures + 1)); done

echo "== families: $failures of ${#names[@]} failed [${SECONDS}s]"
exit $((failures > 0))

#!/usr/bin/env bash
# Compares whole models with LibTorch on the CPU: exports, compiles and compares each MODEL-PRECISION:BATCHES given, by
# default the six of docs/results.md (about 30 minutes on 2 cores, 6 GB of memory, 4 GB in the folder FOLDER).
#   bench/accuracy.sh FOLDER [ViT-B-32-fp16:1,3,4 ...]
set -euo pipefail
folder=$(realpath -- "${1:?the folder for models and plans is missing}")
cd "$(dirname "$0")/.."

cases=("${@:2}")
[[ ${cases[*]} ]] || cases=(ViT-B-32-fp32:1,3,4 ViT-B-32-fp16:1,3,4 ViT-B-32-bf16:1,3,4
  ViT-L-14-fp32:1,3,4 ViT-L-14-fp16:1 ViT-L-14-bf16:1)
for case in "${cases[@]}"; do
  name=${case%:*} precision=${name##*-}
  dtype=${precision/fp/f}
  echo "== $name, batch ${case#*:}"
  [[ -e $folder/$name.pt ]] || .venv/bin/python scripts/export_openclip.py --model "${name%-*}" --precision "$precision" --out "$folder/$name.pt"
  build/release/bin/cgc compile "$folder/$name.pt" -o "$folder/$name.cgplan" --target cpu --batch "${case#*:}" \
    --input "image=$dtype[1,3,224,224]" --input 'text=i64[1,77]' >/dev/null
  build/release/bin/cgc compare "$folder/$name.cgplan" "$folder/$name.pt"
  rm "$folder/$name.cgplan"
done

#!/usr/bin/env bash
# Trains small steps on a GPU by a graph, by a stream and after a resume, and compares the checkpoints byte by byte:
# gpu_train.sh CGC FOLDER. CGC is the tool; FOLDER takes models, data and checkpoints. Needs Python with torch and numpy.
set -euo pipefail
cgc=$(realpath "$1") folder=$2
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder"
cd "$folder"
python3 "$root/examples/training/linear.py" --out linear.pt
python3 "$root/examples/training/mlp.py" --out mlp.pt
python3 - <<'PY'
import numpy as np
random = np.random.default_rng(0)
np.save("x.npy", random.standard_normal((256, 1024), dtype=np.float32))
np.save("y.npy", random.standard_normal((256, 1024), dtype=np.float32))
PY
"$cgc" compile linear.pt --train forward --input 'x=f32[64,1024]' --input 'y=f32[64,1024]' \
  --optimizer adamw,lr=0.001 --clip-norm 1 --schedule cosine,steps=40,warmup=4 -o linear.cgplan --quiet > /dev/null
train() { "$cgc" train linear.cgplan --data x=x.npy y=y.npy --quiet "$@"; }
train --steps 24 --checkpoint graph
train --steps 24 --checkpoint stream --executor stream > /dev/null
train --steps 10 --checkpoint part > /dev/null
train --steps 14 --resume part --checkpoint part > /dev/null
for other in stream part; do
  for file in model.safetensors optimizer.safetensors; do
    cmp "graph/$file" "$other/$file" && echo "$other/$file: equal to that of the graph"
  done
done

#!/usr/bin/env bash
# Trains small steps on a GPU by a graph, by a stream and after a resume, and compares the checkpoints byte by byte:
# gpu_train.sh CGC FOLDER. The steps are a linear layer, and a classifier with dropout in micro-batches. CGC is the tool; FOLDER takes models, data and checkpoints. Needs Python with torch and numpy.
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
np.save("features.npy", random.standard_normal((256, 32), dtype=np.float32))
np.save("labels.npy", random.integers(0, 10, 256))
PY
"$cgc" compile linear.pt --train forward --input 'x=f32[64,1024]' --input 'y=f32[64,1024]' \
  --optimizer adamw,lr=0.001 --clip-norm 1 --schedule cosine,steps=40,warmup=4 -o linear.cgplan --quiet > /dev/null
"$cgc" compile mlp.pt --train forward --input 'x=f32[16,32]' --input 'y=i64[16]' \
  --optimizer adamw,lr=0.001 --accumulate -o mlp.cgplan --quiet > /dev/null
linear() { "$cgc" train linear.cgplan --data x=x.npy y=y.npy --quiet "$@"; }
mlp() { "$cgc" train mlp.cgplan --data x=features.npy y=labels.npy --accumulate 3 --seed 5 --quiet "$@"; }
# resume: the rest of a training, whose checkpoint has the seed.
mlp_rest() { "$cgc" train mlp.cgplan --data x=features.npy y=labels.npy --accumulate 3 --quiet "$@"; }
compare() {
  for other in stream part; do
    for file in model.safetensors optimizer.safetensors; do
      cmp "$1-graph/$file" "$1-$other/$file" && echo "$1, $other/$file: equal to that of the graph"
    done
  done
}
linear --steps 24 --checkpoint linear-graph
linear --steps 24 --checkpoint linear-stream --executor stream > /dev/null
linear --steps 10 --checkpoint linear-part > /dev/null
linear --steps 14 --resume linear-part --checkpoint linear-part > /dev/null
compare linear
mlp --steps 24 --checkpoint mlp-graph
mlp --steps 24 --checkpoint mlp-stream --executor stream > /dev/null
mlp --steps 10 --checkpoint mlp-part > /dev/null
mlp_rest --steps 14 --resume mlp-part --checkpoint mlp-part > /dev/null
compare mlp

#!/usr/bin/env bash
# Shows the whole path on a real model with random weights: sets up, builds, exports OpenCLIP ViT-B-32, compiles it,
# runs both towers, compares with LibTorch and draws the plan. Writes its files to demo/.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"
(($# == 0)) || fail "'$*': usage: demo.sh"
setup
build cgc

cgc=build/release/bin/cgc
model=demo/model.pt
plan=demo/model.cgplan
target=cpu
if nvidia-smi >/dev/null 2>&1; then target=cuda; fi
mkdir -p demo

if [[ $model -nt scripts/export_openclip.py && $model -nt scripts/dependencies.txt ]]; then
  say "exporting: $model is up to date"
else
  say "exporting OpenCLIP ViT-B-32 to $model, with random weights"
  .venv/bin/python scripts/export_openclip.py --model ViT-B-32 --out $model
fi

say "compiling to $plan for target=$target"
$cgc compile $model -o $plan --input 'image=f32[1,3,224,224]' --input 'text=i64[1,77]' --target $target

say "running both towers"
for input in image text; do
  $cgc run $plan --entry encode_$input --input $input=random:0 --output demo/encode_$input.npy --json \
    >demo/encode_$input.json
done

say "comparing with LibTorch"
$cgc compare $plan $model --json >demo/compare.json

say "drawing demo/model.svg"
$cgc inspect $plan --svg demo/model.svg >demo/inspect.txt

say "result, target=$target"
.venv/bin/python - <<'PYTHON'
import json
import os

print(f"{'entry':<14}{'output':<12}{'max abs':>10}{'rel. L2':>10}{'cosine':>12}{'run':>12}")
for row in json.load(open("demo/compare.json"))["outputs"]:
    run, time = f"demo/{row['entry']}.json", None
    if os.path.exists(run):
        time = json.load(open(run)).get("milliseconds")
    time = "" if time is None else f"{time:.2f} ms"
    shape = "x".join(map(str, row["shape"])) or "scalar"
    print(f"{row['entry']:<14}{shape:<12}{row['max_abs']:>10.1e}{row['relative_l2']:>10.1e}"
          f"{row['cosine']:>12.9f}{time:>12}")
PYTHON

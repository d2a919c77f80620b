#!/usr/bin/env python3
"""Seconds from a model in memory to its first result: cgc.compile beside torch.compile, in new processes with a warm cache.

    startup.py --model ViT-B-32 --target cpu

Each process creates the image tower of a model of open_clip (RANDOM WEIGHTS), then compiles it and calls it with a batch of
--batch. The caches on disk of both (CGC_CACHE, TORCHINDUCTOR_CACHE_DIR) are empty for the first process. Imports and the
creation of the model are not counted. Prints a JSON object: by compiler, the seconds of the first process and of the others.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings


def first_result(args):
    import cgc
    import open_clip
    import torch
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    device = "cuda" if args.target == "cuda" else "cpu"
    model = open_clip.create_model(args.model).eval().visual.to(device)
    images = torch.randn(args.batch, 3, *open_clip.model.to_2tuple(model.image_size), device=device)
    begin = time.perf_counter()
    compiled = cgc.compile(model, target=args.target, shapes="wait") if args.child == "cgc.compile" else torch.compile(model)
    with torch.no_grad():
        result = compiled(images)
    print(json.dumps({"seconds": time.perf_counter() - begin, "finite": bool(result.isfinite().all())}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="ViT-B-32")
    parser.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return first_result(args)
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CGC_CACHE": f"{folder}/cgc", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        for compiler in ("cgc.compile", "torch.compile"):
            for _ in range(args.processes):
                child = [sys.executable, __file__, "--child", compiler, "--model", args.model, "--target", args.target, "--batch", str(args.batch)]
                done = subprocess.run(child, env=environment, check=True, stdout=subprocess.PIPE, text=True)
                result = json.loads(done.stdout.splitlines()[-1])
                assert result["finite"]
                seconds.setdefault(compiler, []).append(round(result["seconds"], 2))
    print(json.dumps({"model": args.model, "target": args.target, "batch": args.batch, "seconds": seconds}))


if __name__ == "__main__":
    main()

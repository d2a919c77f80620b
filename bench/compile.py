#!/usr/bin/env python3
"""Compiles a model twice with cgc and prints the figures of docs/results.md about compiling: time, peak memory,
plan size relative to the weights, whether both plans have the same bytes, and the time of inspecting a plan.

    bench/compile.py model.pt --input 'image=f32[1,3,224,224]' --input 'text=i64[1,77]' --target cpu

All arguments after the model go to `cgc compile`. One JSON object on stdout.
"""
import argparse
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INSPECTIONS = 10


def run(command):
    """Seconds, peak memory in bytes and stdout of a command; its log goes to stderr."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{command[1]} failed")
    return seconds, usage.ru_maxrss * 1024, out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cgc", default=Path(__file__).parents[1] / "build/release/bin/cgc", type=Path)
    parser.add_argument("model", type=Path)
    args, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        plans = [Path(folder) / f"{i}.cgplan" for i in range(2)]
        compiles = [run([args.cgc, "compile", args.model, "-o", plan, "--json", *options]) for plan in plans]
        inspections = [run([args.cgc, "inspect", plans[0]])[0] for _ in range(INSPECTIONS)]
        weights = json.loads(compiles[0][2])["weight_bytes"]
        model, plan, peak = args.model.stat().st_size, plans[0].stat().st_size, max(c[1] for c in compiles)
        print(json.dumps({
            "model_bytes": model,
            "compile_s": [round(c[0], 2) for c in compiles],
            "peak_bytes": peak,
            "peak_per_model": round(peak / model, 3),
            "plan_bytes": plan,
            "weight_bytes": weights,
            "plan_minus_weights": plan - weights,
            "identical": filecmp.cmp(*plans, shallow=False),
            "inspect_s_slowest": round(max(inspections), 3),
        }, indent=2))


main()

"""Times LibTorch on an OpenCLIP module the way `cgc bench` times a plan: eager, and captured in a CUDA graph.

It runs the Python module, not the traced file: a text tower traced on a GPU reads sizes back from the device and cannot be captured.

One JSON object per line: latency (submit to result visible) and back-to-back, inputs and outputs on the device, the
copies into and out of the captured graph's static buffers included.
"""
import argparse
import json
import math
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import open_clip
import torch

WARM_UPS, SAMPLES, RUNS_PER_SAMPLE = 20, 50, 40


def summary(samples):
    """As `cgc bench` prints a figure: each value is the smallest that this share of the samples does not exceed."""
    values = sorted(samples)
    return {name: values[max(math.ceil(share * len(values)), 1) - 1]
            for name, share in {"min": 0, "median": 0.5, "p90": 0.9, "p99": 0.99}.items()}


def measure(system, entry, shape, dtype, run, extra=None):
    for _ in range(WARM_UPS):
        run()
    torch.cuda.synchronize()
    latency, back_to_back = [], []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        latency.append((time.perf_counter() - start) * 1e3)
    for _ in range(SAMPLES):
        start = time.perf_counter()
        for _ in range(RUNS_PER_SAMPLE):
            run()
        torch.cuda.synchronize()
        back_to_back.append((time.perf_counter() - start) * 1e3 / RUNS_PER_SAMPLE)
    print(json.dumps({"system": system, "entry": entry, "input": list(shape), "dtype": dtype, "samples": SAMPLES,
                      "latency_ms": summary(latency), "back_to_back_ms": summary(back_to_back),
                      **(extra or {})}), flush=True)


def profile(method, source):
    with torch.no_grad():
        for _ in range(3):
            method(source)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            method(source)
            torch.cuda.synchronize()
    print(profiler.key_averages().table(sort_by="cuda_time_total", row_limit=25, max_name_column_width=110), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--entry", required=True, choices=["encode_image", "encode_text"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="list the kernels of one eager run on stderr instead of timing")
    args = parser.parse_args()

    module = open_clip.create_model(args.model, precision=args.precision, device="cuda").eval()
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[args.precision]
    name = args.precision.replace("fp", "f")
    if args.entry == "encode_image":
        size = module.visual.image_size
        source = torch.randn(args.batch, 3, *(size if isinstance(size, tuple) else (size, size)), device="cuda", dtype=dtype)
    else:
        source = torch.randint(1, 256, (args.batch, module.context_length), device="cuda")
    method = getattr(module, args.entry)
    if args.profile:
        return profile(method, source)

    with torch.no_grad():
        measure("LibTorch eager", args.entry, source.shape, name, lambda: method(source))

        static_input = source.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                method(static_input)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        start = time.perf_counter()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_output = method(static_input)
        torch.cuda.synchronize()
        capture_ms = (time.perf_counter() - start) * 1e3
        result = torch.empty_like(static_output)

        def replay():
            static_input.copy_(source)
            graph.replay()
            result.copy_(static_output)

        measure("LibTorch captured eager", args.entry, source.shape, name, replay, {"capture_ms": capture_ms})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times the training steps of docs/training.md: PyTorch eager, PyTorch captured as one CUDA graph, and a plan of cgc,
in one run on one GPU. One JSON object on stdout, with milliseconds a step and the peak memory of each.

    bench/training.py --case linear,vit-8,vit-64,resnet50-64 --cgc build/release/bin/cgc

Each step is forward, loss, backward and optimizer on one batch in GPU memory. Medians of 30 samples of several steps.
The captured step of PyTorch has static inputs, a fused or capturable optimizer and gradients in the graph's pool.
"""
import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from gpu_time import milliseconds

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = 30


class LinearStep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(1024, 1024)

    def forward(self, x, y):
        return (self.fc(x) - y).pow(2).mean()


class ClassifierStep(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image, label):
        return torch.nn.functional.cross_entropy(self.model(image).float(), label)


class ClipStep(torch.nn.Module):
    """The model with ClipLoss on one GPU."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image, text):
        image_features, text_features, scale = self.model(image, text)[:3]
        logits = scale * image_features @ text_features.T
        labels = torch.arange(logits.shape[0], device=logits.device)
        loss = torch.nn.functional.cross_entropy
        return (loss(logits, labels) + loss(logits.T, labels)) / 2


def linear():
    return LinearStep(), {"x": torch.randn(64, 1024), "y": torch.randn(64, 1024)}, "sgd,lr=0.01", None


def clip(batch):
    import open_clip
    model = open_clip.create_model("ViT-B-32", pretrained=None).train()
    inputs = {"image": torch.randn(batch, 3, 224, 224), "text": torch.randint(1, 49000, (batch, 77))}
    inputs["text"][:, -1] = 49407
    return ClipStep(model), inputs, "adamw,lr=0.0005,weight_decay=0.2", torch.bfloat16


def resnet(batch):
    import torchvision
    inputs = {"image": torch.randn(batch, 3, 224, 224), "label": torch.randint(0, 1000, (batch,))}
    return ClassifierStep(torchvision.models.resnet50().train()), inputs, "sgd,lr=0.1,momentum=0.9", torch.bfloat16


CASES = {"linear": linear, "vit-8": lambda: clip(8), "vit-64": lambda: clip(64),
         "resnet50-64": lambda: resnet(64)}


def optimizer_of(text, parameters):
    rule, *settings = text.split(",")
    numbers = {name: float(value) for name, value in (setting.split("=") for setting in settings)}
    if rule == "sgd":
        return torch.optim.SGD(parameters, foreach=True, **numbers)
    return torch.optim.AdamW(parameters, fused=True, capturable=True, **numbers)


def torch_times(case):
    step, inputs, optimizer_text, autocast = CASES[case]()
    step, inputs = step.cuda(), {name: value.cuda() for name, value in inputs.items()}
    optimizer = optimizer_of(optimizer_text, [p for p in step.parameters() if p.requires_grad])

    def train():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", autocast, cache_enabled=False) if autocast else contextlib.nullcontext():
            loss = step(**inputs)
        loss.backward()
        optimizer.step()

    torch.cuda.reset_peak_memory_stats()
    times = {"eager_ms": milliseconds(train, SAMPLES), "eager_peak_bytes": torch.cuda.max_memory_allocated()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train()
    times["captured_ms"] = milliseconds(graph.replay, SAMPLES)
    times["captured_peak_bytes"] = torch.cuda.max_memory_reserved()
    return times


def export(case, path):
    step, inputs, optimizer, autocast = CASES[case]()
    torch.jit.trace(step, tuple(inputs.values()), check_trace=False).save(str(path))
    names = {torch.float32: "f32", torch.int64: "i64"}
    types = [f"{name}={names[value.dtype]}[{','.join(map(str, value.shape))}]" for name, value in inputs.items()]
    return types, optimizer, autocast


def cgc_times(case, cgc, folder, only_compile, recompute):
    model, plan = folder / "step.pt", folder / "step.cgplan"
    types, optimizer, autocast = export(case, model)
    command = [cgc, "compile", model, "-o", plan, "--train", "forward", "--optimizer", optimizer]
    for one in types:
        command += ["--input", one]
    if autocast:
        command += ["--autocast", "bf16"]
    if recompute:
        command += ["--recompute", recompute]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    if only_compile:
        return {"compile_s": round(seconds, 2)}
    bench = [cgc, "bench", plan, "--entry", "step", "--json"]
    result = json.loads(subprocess.run(bench, check=True, stdout=subprocess.PIPE).stdout)
    return {"compile_s": round(seconds, 2), "bench": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default=",".join(CASES), help="cases, comma-separated [all]")
    parser.add_argument("--cgc", default=ROOT / "build/release/bin/cgc", type=Path)
    parser.add_argument("--recompute", choices=["cheap", "blocks"], help="as in cgc compile")
    parser.add_argument("--export", action="store_true", help="only export and compile, without a GPU")
    args = parser.parse_args()
    torch.manual_seed(0)
    results = {}
    for case in args.case.split(","):
        if case not in CASES:
            parser.error(f"no case '{case}'; there are {', '.join(CASES)}")
        with tempfile.TemporaryDirectory() as folder:
            result = {} if args.export else torch_times(case)
            if not args.export:
                torch.cuda.empty_cache()
            try:
                result["cgc"] = cgc_times(case, args.cgc, Path(folder), args.export, args.recompute)
            except subprocess.CalledProcessError as error:
                result["cgc"] = {"error": f"{error.cmd[1]} exited with {error.returncode}"}
        results[case] = result
        print(case, json.dumps(result), file=sys.stderr, flush=True)
    print(json.dumps({"gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
                      "torch": torch.__version__, "cases": results}, indent=2))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times models on one GPU in one process: PyTorch eager and captured as a CUDA graph, torch.compile, and cgc.compile.

    bench/families.py --models RN50,ViT-B-32,ViT-B-32:text,all-MiniLM-L6-v2 --batches 1,8,64 --precision fp16

A name of open_clip is its image tower, NAME:text its text tower; names of torchvision's classifiers and all-MiniLM-L6-v2 (the
configuration) are known, too. All weights are RANDOM. Prints a table on stderr and one JSON object on stdout. Of each runner:

ms: the median of 20 samples of back-to-back calls. A captured graph and `replay` of a plan read inputs where they are and
    write the same outputs; a call of torch.compile or cgc.compile takes any tensor and returns new ones.
first_s: seconds of the first call, compilation included. Nothing is cached before.
error: relative L2 of the output against the model in float32.
"""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import cgc
from gpu_time import milliseconds

SAMPLES = 20
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Text(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, text):
        return self.model.encode_text(text)


def model_of(name):
    """The model in float32, and a function from the batch to its inputs."""
    torch.manual_seed(0)
    if name == "all-MiniLM-L6-v2":
        import transformers
        config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        return transformers.BertModel(config).eval(), lambda batch: {
            "input_ids": torch.randint(1000, 30000, (batch, 32)), "attention_mask": torch.ones(batch, 32, dtype=torch.int64)}
    import torchvision
    if name in torchvision.models.list_models(torchvision.models):
        return torchvision.models.get_model(name).eval(), lambda batch: {"x": torch.randn(batch, 3, 224, 224)}
    import open_clip
    model = open_clip.create_model(name.removesuffix(":text"), pretrained=None).eval()
    if name.endswith(":text"):
        return Text(model).eval(), lambda batch: {"text": torch.randint(1, 49000, (batch, 77))}
    size = open_clip.get_model_preprocess_cfg(model)["size"]
    height, width = (size, size) if isinstance(size, int) else size
    return model.visual, lambda batch: {"x": torch.randn(batch, 3, height, width)}


def first(outputs):
    """The first tensor of what a model returns."""
    while not isinstance(outputs, torch.Tensor):
        outputs = next(iter(outputs.values())) if isinstance(outputs, dict) else outputs[0]
    return outputs


def eager(model, inputs):
    return lambda: model(**inputs)


def captured(model, inputs):
    """The replay of a CUDA graph of the model."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(**inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = model(**inputs)

    def run():
        graph.replay()
        return outputs
    return run


def channels_last(model, inputs):
    inputs = {name: value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value
              for name, value in inputs.items()}
    return captured(copy.deepcopy(model).to(memory_format=torch.channels_last), inputs)


def compiled(mode):
    def make(model, inputs):
        torch.compiler.reset()
        fast = torch.compile(model, mode=mode)

        def run():
            torch.compiler.cudagraph_mark_step_begin()
            return fast(**inputs)
        return run
    return make


def by_cgc(model, inputs):
    fast = cgc.compile(model, shapes="wait")
    run = eager(fast, inputs)
    run.module = fast
    return run


PEERS = {"eager": eager, "captured": captured, "channels-last": channels_last,
         "reduce-overhead": compiled("reduce-overhead"), "max-autotune": compiled("max-autotune"), "cgc": by_cgc}


def replay_ms(module, folder):
    """The time of the graph that a call of a module of cgc replays, alone."""
    plan = module.save(folder / "replay.cgplan")
    command = [Path(cgc.__file__).parent / "cgc", "bench", plan, "--json"]
    (bucket,) = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["buckets"]
    return bucket["back_to_back_ms"]["median"]


def measure(peer, model, inputs, truth, folder):
    began = time.perf_counter()
    run = PEERS[peer](model, inputs)
    output = first(run())
    torch.cuda.synchronize()
    result = {"first_s": round(time.perf_counter() - began, 2),
              "error": float(f"{((output.float() - truth).norm() / truth.norm()).item():.2g}"),
              "ms": round(milliseconds(run, SAMPLES), 4)}
    if peer == "cgc":
        result["replay_ms"] = round(replay_ms(run.module, folder), 4)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="RN50,convnext_base,MobileCLIP-S1,ViTamin-B,ViT-B-32,ViT-B-32:text")
    parser.add_argument("--batches", default="1,8,64")
    parser.add_argument("--precision", choices=DTYPES, default="fp16")
    parser.add_argument("--peers", default=",".join(PEERS), help="runners, comma-separated [all]")
    args = parser.parse_args()
    os.environ["CGC_CACHE"] = "off"
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    results = {}
    for name in args.models.split(","):
        reference, inputs_of = model_of(name)
        reference = reference.cuda()
        model = copy.deepcopy(reference).to(DTYPES[args.precision])
        for batch in map(int, args.batches.split(",")):
            inputs = {key: value.cuda() for key, value in inputs_of(batch).items()}
            of_model = {key: value.to(DTYPES[args.precision]) if value.is_floating_point() else value
                        for key, value in inputs.items()}
            case = results[f"{name} {batch}"] = {}
            with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
                truth = first(reference(**inputs)).clone()
                for peer in args.peers.split(","):
                    try:
                        case[peer] = measure(peer, model, of_model, truth, Path(folder))
                    except Exception as error:
                        case[peer] = {"failed": f"{type(error).__name__}: {error}"[:300]}
                    print(f"{name:20} {batch:3} {peer:16}", json.dumps(case[peer]), file=sys.stderr, flush=True)
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "precision": args.precision,
                      "results": results}, indent=2))


if __name__ == "__main__":
    main()

"""Makes the plans of the tests, and what LibTorch computes: make_plans.py FOLDER. Needs torch, cgc and its program.

tiny.cgplan, tiny_16.cgplan, other.cgplan: the module Tiny for cuda, without LibTorch, which the reference executor runs;
with buckets of 1 and 4 rows, the same and 16, and the first with other weights. half.cgplan, bfloat.cgplan: in these
precisions. host.cgplan: for cpu, which needs LibTorch, and model.pt its TorchScript. tiny.pt2: its image tower, exported.
train.cgplan: a training step for cuda. expected.npz: inputs and outputs of Tiny.
"""
import sys
from pathlib import Path

import cgc
import numpy
import torch
from torch import nn


class Tiny(nn.Module):
    """Two towers, and a function of both in which every image meets the first text: its rows depend on each other."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.image_tower = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
        self.table = nn.Embedding(50, 32)
        self.text_tower = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 8))

    def encode_image(self, image):
        return self.image_tower(image)

    def encode_text(self, text):
        return self.text_tower(self.table(text)[:, -1])

    def forward(self, image, text):
        image_features, text_features = self.encode_image(image), self.encode_text(text)
        return image_features, text_features, image_features * text_features[:1]


class Step(nn.Sequential):
    def forward(self, x, y):
        return nn.functional.cross_entropy(super().forward(x), y, reduction="sum")


def main():
    folder = Path(sys.argv[1])
    model, other = Tiny(seed=1).eval(), Tiny(seed=2).eval()
    example = {"image": torch.randn(2, 16), "text": torch.arange(10).reshape(2, 5)}
    entries = ["encode_image", "encode_text", "forward"]
    native = {"entries": entries, "options": ["--require-native"]}
    cgc.compile(model, example, output=folder / "tiny.cgplan", batch=[1, 4], **native)
    cgc.compile(model, example, output=folder / "tiny_16.cgplan", batch=[1, 4, 16], **native)
    cgc.compile(other, example, output=folder / "other.cgplan", batch=[1, 4], **native)
    image = {"image": example["image"]}
    for name, precision in (("half", "fp16"), ("bfloat", "bf16")):
        cgc.compile(model, image, output=folder / f"{name}.cgplan", entries=["encode_image"], precision=precision)
    cgc.compile(model, example, output=folder / "host.cgplan", batch=[1, 4], entries=entries, target="cpu")

    methods = {"encode_image": example["image"], "encode_text": example["text"], "forward": tuple(example.values())}
    torch.jit.trace_module(model, methods).save(folder / "model.pt")

    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(model.image_tower, (example["image"],), dynamic_shapes=({0: rows},))
    torch.export.save(program, folder / "tiny.pt2")

    step = Step(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)).train()
    cgc.train(step, (torch.randn(6, 8), torch.arange(6) % 5), optimizer="adamw,lr=0.05", target="cuda", executor="reference",
              options=["--require-native"], output=folder / "train.cgplan")

    with torch.no_grad():
        inputs = {"image": torch.randn(40, 16), "text": torch.randint(50, (40, 5))}
        outputs = {"image_features": model.encode_image(inputs["image"]),
                   "text_features": model.encode_text(inputs["text"]),
                   "other_image_features": other.encode_image(inputs["image"])}
        outputs["products"] = outputs["image_features"][:4] * outputs["text_features"][:1]
    numpy.savez(folder / "expected.npz", **{name: value.numpy() for name, value in {**inputs, **outputs}.items()})


main()

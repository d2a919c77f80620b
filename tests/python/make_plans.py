"""Makes the plans of the tests, and what LibTorch computes: make_plans.py FOLDER. Needs torch, cgc and its program.

tiny.cgplan, tiny_16.cgplan, other.cgplan: the module Tiny for cuda, without LibTorch, which the reference executor runs;
with buckets of 1 and 4 rows, the same and 16, and the first with other weights. half.cgplan, bfloat.cgplan: in these
precisions. host.cgplan: for cpu, which needs LibTorch, and model.pt its TorchScript. tiny.pt2: its image tower, exported.
train.cgplan: a training step for cuda. expected.npz: inputs and outputs of Tiny.
clip/: a model folder of CLIP for cuda, clip_cpu/: for cpu, pictures/: pictures, and clip.npz: their vectors and those of
TEXTS, by open_clip alone.
"""
import json
import sys
from pathlib import Path

import cgc
import numpy
import open_clip
import torch
from PIL import Image
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


#: Texts, of which clip.npz has the vectors.
TEXTS = ["a cat", "", "ein Hund 🙂 &amp; <end_of_text>", "it's 12 o'clock " * 40]


def make_pictures(folder):
    """Pictures of several sizes and modes."""
    folder.mkdir()
    random = numpy.random.default_rng(0)
    for index, (width, height) in enumerate([(40, 30), (30, 90), (32, 32), (7, 5), (200, 150)]):
        pixels = random.integers(0, 256, (max(height // 8, 1), max(width // 8, 1), 3), dtype=numpy.uint8)
        picture = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
        picture.save(folder / f"{index}.jpg", quality=90)
    picture.save(folder / "5.png")
    picture.convert("L").save(folder / "6.jpg")


def make_clip(folder):
    """The model folders of a small CLIP, and what open_clip computes."""
    config = folder / "small_clip.json"
    config.write_text(json.dumps({
        "embed_dim": 32, "vision_cfg": {"image_size": 32, "patch_size": 16, "layers": 2, "width": 64, "head_width": 32},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "layers": 1, "width": 64, "heads": 4}}))
    cgc.openclip.export(folder / "clip", str(config), batch=(1, 4), options=["--require-native"])
    cgc.openclip.export(folder / "clip_cpu", str(config), batch=(1, 4), target="cpu")
    torch.manual_seed(0)
    open_clip.add_model_config(config)
    model = open_clip.create_model("small_clip").eval()
    transform = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(size=32), is_train=False)
    pictures = sorted((folder / "pictures").iterdir())
    with torch.no_grad():
        images = model.encode_image(torch.stack([transform(Image.open(path)) for path in pictures]), normalize=True)
        texts = model.encode_text(open_clip.get_tokenizer("small_clip")(TEXTS), normalize=True)
    numpy.savez(folder / "clip.npz", images=images.numpy(), texts=texts.numpy(), words=numpy.array(TEXTS))


def main():
    folder = Path(sys.argv[1])
    make_pictures(folder / "pictures")
    make_clip(folder)
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

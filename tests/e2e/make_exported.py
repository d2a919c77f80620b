# Writes exported programs with random weights, their inputs and what torch computes: make_exported.py FOLDER
# NAME.pt2 is a program, NAME.CASE.INPUT.npy an input and NAME.CASE.out.I.npy the outputs in order. Each case has another
# batch, or another length too.
import argparse
from pathlib import Path

import numpy
import open_clip
import torch
import transformers
from torch.export import Dim

TEXT = {"context_length": 16, "vocab_size": 512, "width": 64, "heads": 4, "layers": 2}
VIT = {"image_size": 32, "patch_size": 16, "layers": 2, "width": 64, "head_width": 32}
BERT = {"vocab_size": 512, "max_position_embeddings": 32, "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 128}


class Clip(torch.nn.Module):
    """Both towers of a CLIP, with one batch."""

    def __init__(self):
        super().__init__()
        self.clip = open_clip.create_model("ViT-B-32", pretrained=None, embed_dim=64, vision_cfg=VIT, text_cfg=TEXT)

    def forward(self, image, text):
        return self.clip.encode_image(image, normalize=True), self.clip.encode_text(text, normalize=True)


class ImageTower(torch.nn.Module):
    """One tower of a CLIP, for a file of its own."""

    def __init__(self, clip):
        super().__init__()
        self.clip = clip

    def forward(self, image):
        return self.clip.encode_image(image, normalize=True)


class TextTower(ImageTower):
    def forward(self, text):
        return self.clip.encode_text(text, normalize=True)


class Embedder(torch.nn.Module):
    """A text embedder with an attention mask and mean pooling, as the models of sentence-transformers have it."""

    def __init__(self):
        super().__init__()
        self.bert = transformers.BertModel(transformers.BertConfig(**BERT))

    def forward(self, input_ids, attention_mask):
        tokens = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(tokens.dtype)
        pooled = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=1)


class Forms(torch.nn.Module):
    """What an archive may hold: a module that runs twice, a strided buffer that is not in the state_dict, weights that
    share a storage, a constant, arithmetic on the batch under no_grad(), a part without autocast, arguments at their
    defaults, a list of one tensor, and a dict with a tuple in it."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding="valid")
        self.norm = torch.nn.BatchNorm2d(8)
        self.again = torch.nn.Linear(8, 8)
        storage = torch.randn(2, 8)
        self.register_buffer("low", storage[0])
        self.register_buffer("high", storage[1])
        self.register_buffer("turned", torch.arange(8.0).reshape(2, 4).t(), persistent=False)

    def forward(self, x):
        y = self.norm(self.conv(torch.nn.functional.pad(x, (1, 0, 0, 1)))).relu().mean((2, 3))
        y = self.again(self.again(y)) * self.high + self.low
        (y,) = y.split(8, 1)  # A list of one tensor.
        a, b = y.chunk(2, 1)
        with torch.no_grad():
            scale = torch.tensor([0.5, 2.0]) * (x.shape[0] * 2 + 1)
        with torch.autocast("cpu", enabled=False):
            b = b + a.square().mean(1, keepdim=True)
        return {"turned": a @ self.turned, "rest": (b, scale)}


class Branches(torch.nn.Module):
    """Sums and differences of convolutions and norms of one image: windows in others, each channel alone beside all, with
    strides, groups and factors, and windows that do not fit."""

    def __init__(self):
        super().__init__()

        def conv(kernel, padding, **options):
            return torch.nn.Conv2d(8, 8, kernel, padding=padding, **options)

        def normed(*arguments, **options):
            return torch.nn.Sequential(conv(*arguments, bias=False, **options), torch.nn.BatchNorm2d(8))

        self.dense = torch.nn.ModuleList([normed(1, 0), normed(3, 1), torch.nn.BatchNorm2d(8)])
        self.alone = torch.nn.ModuleList([conv(7, 3, groups=8, stride=2), conv(3, 1, groups=8, stride=2, bias=False)])
        self.pairs = torch.nn.ModuleList([conv(3, 1, groups=2), conv(1, 0, groups=2)])
        self.less = torch.nn.ModuleList([conv((1, 3), (0, 1), bias=False), conv(3, 1)])
        self.crossed = torch.nn.ModuleList([conv((1, 3), (0, 1)), conv((3, 1), (1, 0))])
        self.mixer = torch.nn.ModuleList([normed(3, 1, groups=8), normed(1, 0, groups=8), torch.nn.BatchNorm2d(8)])
        self.norm, self.gamma = torch.nn.BatchNorm2d(8), torch.nn.Parameter(torch.rand(8, 1, 1))
        for norm in self.modules():
            if isinstance(norm, torch.nn.BatchNorm2d):
                for tensor in (norm.running_mean, norm.bias):
                    tensor.data.normal_(0, 0.3)
                for tensor in (norm.running_var, norm.weight):
                    tensor.data.uniform_(0.5, 2)

    def forward(self, x):
        sums = [sum(branch(x) for branch in branches)
                for branches in (self.dense, self.alone, self.pairs, self.crossed)]
        mixed = x + self.gamma * (self.mixer[0](x) + self.mixer[1](x) + self.mixer[2](x) - self.norm(x))
        return (*sums, self.less[0](x) - self.less[1](x), self.less[1](mixed) - self.less[0](mixed))


class Offenders(torch.nn.Module):
    def forward(self, x):
        y = torch.special.bessel_j0(x)
        return y * y.sum().item()


def images(batch):
    return torch.randn(batch, 3, 32, 32)


def tokens(batch, length=16):
    return torch.randint(3, 500, (batch, length))


def mask(batch, length):
    return (torch.arange(length) < torch.arange(batch).unsqueeze(1) % length + 1).long()


BATCH = Dim("batch", min=1, max=64)
# The model, its inputs by name for each case (the first is exported), and the dynamic dimensions.
PROGRAMS = {
    "clip": (Clip, {n: {"image": images(n), "text": tokens(n)} for n in (2, 1, 3)},
             {"image": {0: BATCH}, "text": {0: BATCH}}),
    "embedder": (Embedder, {n: {"input_ids": tokens(n, length), "attention_mask": mask(n, length)}
                            for n, length in ((2, 12), (1, 7), (5, 32))},
                 {name: {0: BATCH, 1: Dim("length", min=2, max=32)} for name in ("input_ids", "attention_mask")}),
    "branches": (Branches, {n: {"x": torch.randn(n, 8, 12, 11)} for n in (2, 1, 3)}, {"x": {0: BATCH}}),
    "forms": (Forms, {n: {"x": torch.randn(n, 3, 8, 8)} for n in (2, 1, 3)}, {"x": {0: BATCH}}),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    torch.manual_seed(0)
    torch.export.save(torch.export.export(Offenders(), (torch.zeros(2, 3),)), folder / "offenders.pt2")
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2).eval(), (torch.zeros(0, 3),)), folder / "empty.pt2")
    for name, (model, cases, dynamic) in PROGRAMS.items():
        module = model().eval()
        program = torch.export.export(module, (), kwargs=next(iter(cases.values())), dynamic_shapes=dynamic)
        torch.export.save(program, folder / f"{name}.pt2")
        if name == "clip":
            for key, tower in (("image", ImageTower), ("text", TextTower)):
                alone = torch.export.export(tower(module.clip), (), kwargs={key: cases[2][key]},
                                            dynamic_shapes={key: {0: BATCH}})
                torch.export.save(alone, folder / f"{key}.pt2")
        for case, inputs in cases.items():
            for key, value in inputs.items():
                numpy.save(folder / f"{name}.{case}.{key}.npy", value.numpy())
            with torch.no_grad():
                outputs = torch.utils._pytree.tree_leaves(module(**inputs))
            for i, output in enumerate(outputs):
                numpy.save(folder / f"{name}.{case}.out.{i}.npy", output.numpy())


main()

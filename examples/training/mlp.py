"""Exports the training step of a classifier with dropout: mlp.py --out mlp.pt [--samples N]

--samples also writes x.npy and y.npy, N samples to train on.

    cgc compile mlp.pt --train forward --input 'x=f32[16,32]' --input 'y=i64[16]' \
        --optimizer adamw,lr=0.001 -o mlp.cgplan
    cgc train mlp.cgplan --data x=x.npy y=y.npy --shuffle
"""
import argparse
from pathlib import Path

import numpy
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), drop, nn.Linear(64, 64), nn.ReLU(),
                                    nn.Linear(64, 10))

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.layers(x), y)


parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--samples", type=int, default=0)
parser.add_argument("--dropout", type=float, default=0.1)
args = parser.parse_args()
torch.manual_seed(0)
example = torch.randn(16, 32), torch.randint(10, (16,))
torch.jit.trace(Step(args.dropout).train(), example, check_trace=False).save(args.out)  # dropout differs in each run
if args.samples:
    x = torch.randn(args.samples, 32)
    numpy.save(Path(args.out).parent / "x.npy", x.numpy())
    numpy.save(Path(args.out).parent / "y.npy", (x @ torch.randn(32, 10)).argmax(-1).numpy())  # What a linear layer could tell.

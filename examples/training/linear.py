"""Exports the training step of a linear layer with a squared loss: linear.py --out linear.pt

    cgc compile linear.pt --train forward --input 'x=f32[64,1024]' --input 'y=f32[64,1024]' \
        --optimizer sgd,lr=0.00001 -o linear.cgplan
    cgc train linear.cgplan --data x=x.npy y=y.npy
"""
import argparse

import torch


class Step(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1024, 1024)

    def forward(self, x, y):
        return (self.linear(x) - y).pow(2).sum()


parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
torch.manual_seed(0)
torch.jit.script(Step().train()).save(parser.parse_args().out)

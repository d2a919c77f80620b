# Writes a small program as one release of torch exports it: with that release's Python, make.py
# Beside this script: torch-RELEASE.pt2, an input torch-RELEASE.x.npy, and what torch computes, torch-RELEASE.y.npy.
from pathlib import Path

import numpy
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = Path(__file__).parent


class Net(nn.Module):
    """A block of a text encoder: an embedding, attention with a mask, a norm, a buffer and a number."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 4)
        self.register_buffer("mask", torch.ones(6, 6).tril().bool(), persistent=False)

    def forward(self, x):
        y = self.norm(self.embedding(x))
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(y).chunk(3, -1))
        y = y + F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask).transpose(1, 2).flatten(-2)
        return F.normalize(self.out(F.gelu(y)).mean(1), dim=-1) * x.shape[0]


def main():
    torch.manual_seed(0)
    model, x = Net().eval(), torch.arange(18).reshape(3, 6) % 16
    batch = torch.export.Dim("batch", min=1, max=8)
    program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: batch}})
    for node in program.graph.nodes:  # Without the paths of the machine.
        if "stack_trace" in node.meta:
            node.meta["stack_trace"] = f'  File "net.py", line 1, in forward\n    {node.name}\n'
    name = f"torch-{'.'.join(torch.__version__.split('.')[:2])}"
    torch.export.save(program, FOLDER / f"{name}.pt2")
    numpy.save(FOLDER / f"{name}.x.npy", x.numpy())
    with torch.no_grad():
        numpy.save(FOLDER / f"{name}.y.npy", model(x).numpy())


main()

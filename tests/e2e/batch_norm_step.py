# Writes the step of a small residual network with several batch norms, on x.npy and y.npy, for tests/e2e:
# batch_norm_step.py FILE. Its activation is smooth: at 0, a relu turns rounding into another step.
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.silu(self.second(self.first(x)) + self.skip(x))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(2, 4, 1), Block(4, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(8, 10)

    def forward(self, x, y):
        return F.cross_entropy(self.fc(self.blocks(x.view(-1, 2, 4, 4))), y)


torch.manual_seed(0)
step = Step().train()
start = {name: value.clone() for name, value in step.state_dict().items()}
trace = torch.jit.trace(step, (torch.randn(4, 32), torch.arange(4)), check_trace=False)
trace.load_state_dict(start)  # tracing has updated the running statistics
trace.save(sys.argv[1])

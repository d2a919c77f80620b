# Writes steps that cannot be trained, or not in all parts, for tests/e2e: bad_steps.py FOLDER
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x, y):
        return F.cross_entropy(self.fc(x), y)


class Vector(Step):
    def forward(self, x, y):
        return F.cross_entropy(self.fc(x), y, reduction="none")  # LINE: vector


class Integer(Step):
    def forward(self, x, y):
        return self.fc(x).argmax(1).sum(), self.fc(x).sum()  # LINE: integer


class Unreached(Step):
    """Parameters that are read and detached, read for another output, and not read."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))
        self.head = nn.Linear(8, 3)
        self.unused = nn.Parameter(torch.ones(3))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.tied = nn.Linear(8, 8)
        self.tied.weight = self.fc.weight

    def forward(self, x, y):
        return super().forward(x * self.scale.detach(), y) + self.tied(x).mean(), self.head(x)


class NoGradient(Step):
    def forward(self, x, y):
        distances = torch.cdist(self.fc(x), x + 1)  # LINE: distances
        image = F.interpolate(distances.reshape(1, 1, 4, 4), scale_factor=2)  # LINE: image
        return image.mean() + F.interpolate(image, scale_factor=2, mode="bilinear").mean()  # LINE: larger


class Layers(Step):
    def __init__(self):
        super().__init__()
        self.norm, self.own = nn.BatchNorm1d(8), nn.BatchNorm1d(8, track_running_stats=False)
        self.drop, self.nothing = nn.Dropout(0.5), nn.Dropout(0.0)

    def forward(self, x, y):
        hidden = self.own(self.nothing(self.fc(x)))
        hidden = self.norm(hidden)  # LINE: norm
        return F.cross_entropy(self.drop(hidden), y)


class Writes(Step):
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.zeros(4, 8))

    def forward(self, x, y):
        self.queue[0] = x[0]  # LINE: slice
        self.fc.weight.mul_(0.9)  # LINE: weight
        x.mul_(2)  # LINE: input
        return F.cross_entropy(self.fc(x), y) + self.queue.mean()


class Flow(Step):
    def forward(self, x, y):
        if bool(self.fc(x).sum() > 0):  # LINE: branch
            x = x * 2
        return F.cross_entropy(self.fc(x), y)


class NoGrad(Step):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, x, y):
        with torch.no_grad():  # LINE: no_grad
            hidden = self.fc(x)
        return F.cross_entropy(self.head(hidden), y)


def main(folder):
    inputs = torch.randn(4, 8), torch.arange(4)

    def trace(name, step):
        torch.jit.trace(step, inputs, check_trace=False).save(str(folder / f"{name}.pt"))

    def script(name, step):
        torch.jit.script(step).save(str(folder / f"{name}.pt"))

    trace("vector", Vector())
    trace("integer", Integer())
    trace("frozen", Step().requires_grad_(False))
    trace("unreached", Unreached())
    trace("no_gradient", NoGradient())
    trace("evaluated", Layers().eval())
    script("evaluated_script", Layers().eval())
    script("evaluated_only", Step().eval())
    script("writes", Writes())
    script("flow", Flow())
    script("no_grad", NoGrad())


main(Path(sys.argv[1]))

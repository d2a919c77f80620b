# Writes the small TorchScript files that tests/numerics needs: small_models.py FOLDER
import sys
import warnings
from pathlib import Path
from zipfile import ZipFile

import torch
from torch import nn

warnings.simplefilter("ignore")


class CalledTwice(nn.Module):
    """One submodule, two calls; one parameter under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(self.first(x)))


class TupleOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.split = Splitter()

    def forward(self, x):
        a, b = self.split(x)
        return a + b, (b, a)


class Splitter(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return a, b


class DictOutput(nn.Module):
    def forward(self, x):
        return {"doubled": x * 2, "rows": x.sum(-1)}


class Casts(nn.Module):
    """Every way in which a dtype or a device is baked into a trace."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("table", torch.arange(8).view(2, 4))
        self.register_buffer("permuted", torch.arange(6.0).view(2, 3).t())

    def forward(self, x):
        mask = torch.zeros(x.shape[0], 1, dtype=torch.float16, device=x.device)
        y = self.linear(x.float()).to(torch.float16)
        y = y + mask + torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float16)
        y = y * x.new_ones(4, dtype=torch.float16) + self.table[0].type_as(y)
        return y.softmax(1), self.permuted.sum(6 - 6)


class InPlace(nn.Module):
    def forward(self, x):
        y = x + 1
        y.relu_()
        y.masked_fill_(x < 0, 0.5)
        return y.add_(x, alpha=2)


class UnknownOp(nn.Module):
    def forward(self, x):
        return torch.erfinv(x)


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(2, 2, 2)

    def forward(self, x):
        pairs = self.conv(x).unflatten(-1, (-1, 2)).contiguous()
        return torch.view_as_complex(pairs).to(torch.complex64)


class DataDependent(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # LINE: branch
            x = x * 2
        while x.sum() < 10:  # LINE: loop
            x = x + 1
        return x


def scaled(x: torch.Tensor, factor: int):
    return x * factor


class ConstantFlow(nn.Module):
    """Branches and loops whose conditions are constants."""

    use_bias: torch.jit.Final[bool]

    def __init__(self):
        super().__init__()
        self.use_bias = True
        self.linear = nn.Linear(4, 4)
        self.name = "flow"

    def helper(self, x):
        return self.linear(x)

    def forward(self, x):
        if self.training:
            x = torch.erfinv(x)
        if self.use_bias:
            x = x + 1
        for i in range(3):
            x = scaled(x, i + 1)
        return self.helper(x)


class Optional(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None):
        if y is not None:
            return x + y
        return x


def trace(module, *args, **kwargs):
    with torch.no_grad():
        return torch.jit.trace(module.eval(), args, check_trace=False, **kwargs)


def main(folder):
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    models = {
        "called_twice": trace(CalledTwice(), x),
        "tuple_output": trace(TupleOutput(), x),
        "dict_output": trace(DictOutput(), x, strict=False),
        "casts": trace(Casts(), x),
        "in_place": trace(InPlace(), x),
        "unknown_op": trace(UnknownOp(), x),
        "transposed": trace(Transposed(), torch.randn(1, 2, 4, 3)),
        "data_dependent": torch.jit.script(DataDependent().eval()),
        "constant_flow": torch.jit.script(ConstantFlow().eval()),
        "optional": torch.jit.script(Optional().eval()),
    }
    for name, model in models.items():
        model.save(str(folder / f"{name}.pt"))
    torch.save(CalledTwice().state_dict(), folder / "state_dict.pt")
    whole = (folder / "casts.pt").read_bytes()
    (folder / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    # Sound as a zip, but its code is not TorchScript.
    with ZipFile(folder / "casts.pt") as good, ZipFile(folder / "bad_code.pt", "w") as bad:
        for entry in good.namelist():
            bad.writestr(entry, good.read(entry).replace(b"def forward", b"fed forward"))


main(Path(sys.argv[1]))

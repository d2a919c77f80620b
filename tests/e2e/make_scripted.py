# Writes the scripted modules that tests/e2e/scripted_test.cpp needs: make_scripted.py FOLDER
import math
import sys
import warnings
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")


class OptionalInput(nn.Module):
    def forward(self, x, y: Optional[torch.Tensor] = None, negate: bool = False):
        if y is None:
            z = x * 2
        else:
            z = x + y
        return -z if negate else z


class Shapes(nn.Module):
    """Has branches that the rank, the batch and the dtype of a bucket decide, and assertions."""

    def forward(self, x):
        assert x.dim() in [2, 3], f"no rank {x.dim()}"
        if x.dtype == torch.float16:
            x = x.float()
        if not x.is_floating_point():
            return x.to(torch.float32)
        if x.size(0) > 1:
            x = x - x.mean(0, keepdim=True)
        elif x.shape[:1] != x.shape[1:2]:
            x = x * math.sqrt(x.size(-1))
        return x.cpu() if x.dim() == 4 else x


class Flags(nn.Module):
    """Has branches that attributes and arguments of methods decide."""

    bias: Optional[torch.Tensor]
    pool: torch.jit.Final[str]

    def __init__(self):
        super().__init__()
        self.bias, self.pool, self.factor = None, "mean", 3
        self.linear, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)

    def helper(self, x, normalize: bool = False, dim: Optional[int] = None):
        if dim is None:
            dim = -1
        return F.normalize(x, dim=dim) if normalize else x * self.factor

    def forward(self, x):
        x = self.drop(self.norm(self.linear(x)))
        bias = self.bias
        if bias is not None:
            x = x + bias
        if self.pool == "cls" or self.training:
            x = x[:, 0]
        elif self.pool == "mean":
            x = self.helper(x, True) + self.helper(x, dim=0)
        return x

    @torch.jit.export
    def scaled(self, x, normalize: bool = False):
        return self.helper(x, normalize)


class Loops(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.repeats = 4

    def forward(self, x):
        total = 0
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for i in range(self.repeats):
            if i == 1:
                continue
            for j in range(i):
                x = x + i * j
            if i == 2:
                break
        while total < 3:
            total += 1
            x = x * total
        return x


class Arguments(nn.Module):
    """Passes flags, names and dimensions to methods whose ops depend on them, also by its own defaults."""

    def __init__(self):
        super().__init__()
        self.kernels, self.rows = nn.Parameter(torch.randn(2, 1, 3, 2)), nn.Parameter(torch.randn(2, 1, 4))

    def spread(self, x, unbiased: bool):
        variance, mean = torch.var_mean(x, dim=-1, unbiased=unbiased)
        return x.std(-1, unbiased=unbiased), torch.var(x, unbiased), variance, mean

    def convolve(self, x, padding: str):
        images = F.conv2d(x.reshape(-1, 1, 2, 2), self.kernels[:, :, :2], padding=padding)
        return images, F.conv1d(x.unsqueeze(1), self.rows, padding=padding)

    def repeat(self, x, dim: int):
        return x.repeat_interleave(3, dim=dim)

    def fill(self, x, dtype: Optional[int]):
        return torch.ones(2, dtype=dtype), x.to(torch.float64).new_zeros(2, dtype=dtype), torch.eye(2, 3, dtype=dtype)

    def total(self, x, dims: Optional[List[int]], keep: bool):
        return x.sum(dims, keepdim=keep)

    def one_hot(self, x, classes: int):
        return F.one_hot((x > 0).to(torch.long), classes)

    def drop(self, x, train: bool):
        return torch.native_dropout(x, 0.5, train)[0]

    def forward(self, x, unbiased: bool = False, dim: int = -2, padding: str = "same", dtype: Optional[int] = None):
        spread = self.spread(x, True) + self.spread(x, False) + self.spread(x, unbiased)
        convolved = self.convolve(x, "same") + self.convolve(x, "valid") + self.convolve(x, padding)
        repeated = self.repeat(x, 0), self.repeat(x, 1), self.repeat(x, -1), self.repeat(x, dim)
        filled = self.fill(x, None) + self.fill(x, dtype)
        totals = self.total(x, [1], True), self.total(x, None, False)
        return spread, convolved, repeated, filled, totals, self.one_hot(x, 3), self.drop(x, False)


class Ranges(nn.Module):
    """Has ranges with a step, enumerate and zip of lists, and a list that grows by +=."""

    def forward(self, x):
        for i in range(0, 6, 2):
            x = x + i
        for i in range(5, -1, -2):
            x = x * 2 - i
        for i in range(3, 3, 2):
            x = x * 100
        for i, k in enumerate([3, 5, 7]):
            x = x - i * k
        for k, y in zip([1, 2, 3], [x, x * 2]):
            x = x + k * y
        for i in range(4):
            if i == 2:
                return self.both(x, i)
            x = x + 1
        return x

    def both(self, x, i: int):
        parts = [x]
        parts += [x + i, x * 2]
        return torch.cat(parts, -1)


class Items(nn.Module):
    """Assigns to parts of the model's own tensors."""

    def forward(self, x):
        x = x.expand(3, 4)
        y = x.clone()
        y[0, 0] = 1
        y[:, 1] = x[:, 2] * 3
        y[-1] = 5.0
        a = torch.ones(4, dtype=torch.float64)
        a[1] = 5.0
        a[2:] = x[0, 2:]
        b = x > 0
        b[0, 1] = True
        b[0, 2] = False
        z = x * 2
        z[0].zero_()
        w = x * 3
        w[0] = y[0]
        n = torch.zeros(2, 3, dtype=torch.long)
        n[:, 1] = 7
        k = x * 5
        k.copy_(x[0])
        k.copy_(k)
        k[0:1].copy_(k[0:1] * 2)
        k[:, :3].copy_(k[:, 1:4])
        return y, a, b, z, w, n, k


class Lists(nn.Module):
    """Has lists and dicts that grow, also in branches that shapes decide, and nested outputs."""

    def forward(self, x):
        parts: List[torch.Tensor] = []
        for i in range(3):
            parts.append(x + i)
        if x.size(0) > 1:
            parts.append(x * 7)
            parts = parts[1:]
        else:
            parts.extend([x, x * 5])
        doubled = [part * 2 for part in (x, x.cos())] + parts[-1:]
        halves = x.chunk(2, dim=1)
        out: Dict[str, torch.Tensor] = {"cat": torch.cat(doubled, -1)}
        if len(parts) > 2:
            out["half"] = halves[0]
        out["rows"] = x.unbind(0)[-1]
        one, = x.split(4, 1)
        out["one"] = one + 1
        keys: Tuple[torch.Tensor, List[torch.Tensor]] = (halves[1], doubled)
        return out, keys


class NoGrad(nn.Module):
    def forward(self, x):
        with torch.no_grad(), torch.autograd.profiler.record_function("sine"):
            y = x.data.sin()
        if torch.is_grad_enabled() and x.requires_grad:
            y = y.detach().requires_grad_()
        return y


class NotTypes(nn.Module):
    """Has methods that cannot be compiled for any inputs."""

    def forward(self, x):
        return x * 2

    @torch.jit.export
    def past(self, x):
        return x * [1, 2][5]

    @torch.jit.export
    def zero(self, x):
        return x * (1 // (x.dim() - 1))

    @torch.jit.export
    def overflow(self, x):
        return x * (9223372036854775807 + x.dim())

    @torch.jit.export
    def number(self, x):
        return x.dim()

    @torch.jit.export
    def nothing(self, x) -> None:
        pass

    @torch.jit.export
    def airy(self, x):
        return torch.special.airy_ai(x)

    @torch.jit.export
    def types(self, x):
        return x @ torch.ones(3, 7)


class ListInput(nn.Module):
    def forward(self, x: List[torch.Tensor]):
        y = x[0] + x[1]
        for z in x:
            y = y + z
        return y


class Attention(nn.Module):
    """Takes the branches of nn.MultiheadAttention: its fast path, masks, weights, cross attention."""

    def __init__(self):
        super().__init__()
        self.own = nn.MultiheadAttention(8, 2, batch_first=True)
        self.rows_first = nn.MultiheadAttention(8, 2)
        self.register_buffer("mask", torch.full((5, 5), float("-inf")).triu(1))

    def forward(self, x, y):
        a, _ = self.own(x, x, x, need_weights=False)
        b, weights = self.own(a, y, y)
        c = self.rows_first(b, b, b, need_weights=False, attn_mask=self.mask[:x.size(0), :x.size(0)])[0]
        return c, weights


class Offenders(nn.Module):
    """Has one method for each kind of offender."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))
        self.calls = 0
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return x * 2

    @torch.jit.export
    def item(self, x):
        return x * x.sum().item()  # LINE: host-read

    @torch.jit.export
    def branch(self, x):
        if x.sum() > 0:  # LINE: data-flow
            x = x + 1
        return x

    @torch.jit.export
    def endless(self, x):
        while bool(x.sum() < 10):  # LINE: data-flow-loop
            x = x + 1
        return x

    @torch.jit.export
    def nonzero(self, x):
        return x.nonzero()  # LINE: data-shape

    @torch.jit.export
    def masked(self, x):
        return x[x > 0]  # LINE: data-shape-mask

    @torch.jit.export
    def host(self, x):
        return x.cpu() * 2  # LINE: host-copy

    @torch.jit.export
    def resized(self, x):
        return (x * 2).resize_(2, 2)  # LINE: allocates

    @torch.jit.export
    def random(self, x):
        return x + torch.poisson(x)  # LINE: random

    @torch.jit.export
    def dropped(self, x):
        return F.dropout(x, 0.5, training=True)  # LINE: random-dropout

    @torch.jit.export
    def gradients(self, x):
        y = x * 2
        y.sum().backward()  # LINE: autograd
        return y

    @torch.jit.export
    def stream(self, x):
        torch.cuda.synchronize()  # LINE: default-stream
        return x * 2

    @torch.jit.export
    def input(self, x):
        return x.add_(1)  # LINE: mutates-input

    @torch.jit.export
    def buffer(self, x):
        self.count.add_(1)  # LINE: mutates-state
        return x + self.count

    @torch.jit.export
    def buffer_data(self, x):
        self.count.data.mul_(2)  # LINE: mutates-state-data
        return x + self.count

    @torch.jit.export
    def attribute(self, x):
        self.calls = 1  # LINE: mutates-state-attribute
        return x * 2

    @torch.jit.export
    def rows(self, x):
        y = x
        for i in range(x.size(0)):  # LINE: trip-count
            y = y + i
        return y

    @torch.jit.export
    def steps(self, x):
        for _ in range(1001):  # LINE: trip-count-many
            x = x * 2
        return x

    @torch.jit.export
    def returns(self, x):
        for i in range(4):  # LINE: trip-count-return
            if x.size(0) == i:
                return x + i
            x = x * 2
        return x

    @torch.jit.export
    def returns_by_data(self, x):
        for i in range(4):  # LINE: data-flow-return
            if x.sum() > i:
                return x + i
            x = x * 2
        return x

    @torch.jit.export
    def unknown(self, x):
        return torch.i0(x)  # LINE: no-rule


class Streams(nn.Module):
    def forward(self, x):
        torch.cuda.current_stream(0).synchronize()  # LINE: stream-object
        return x.nonzero()  # LINE: beside-stream


class OtherOutputs(nn.Module):
    """Returns other outputs for other batches."""

    def forward(self, x):
        y = x * 2
        if x.size(0) > 1:
            y = y > 0  # LINE: other-outputs
        return y


class Parts(nn.Module):
    """Overwrites parts of a value, then reads the whole and other parts; a constant of one element. Traced."""

    def forward(self, x):
        table = x.new_zeros((3, 4))
        for i, rows in enumerate((slice(0, -2), slice(-2, -1), slice(-1, None))):
            table[rows, 1:3] = i + 0.5
        table[1].add_(1)
        column = table[:, 0]
        column.add_(2).mul_(3)
        return x + table.sum(0), table, column, x.sum() * torch.tensor([2.0])


class Gate(nn.Module):
    """Has control flow that depends on data, a weight, and an argument that calls leave at its default."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5))

    def forward(self, x, limit: float = 0.0, mask: Optional[torch.Tensor] = None):
        if mask is not None:
            x = x * mask
        if bool(x.sum() > limit):
            return torch.relu(x) * self.weight.sum()
        while bool(x.mean() < -0.25):
            x = x * 0.5 + 0.125
        return x


class Halves(nn.Module):
    def forward(self, x):
        return x[:, :2].sort(dim=-1)[0], x[:, 2:].argmax(dim=-1)


class Selects(nn.Module):
    def forward(self, x):
        return x[x > 0]


class Overwrites(nn.Module):
    def forward(self, x):
        return x.relu_()


class Names(nn.Module):
    def forward(self, x):
        return x, "name"


class HostParts(nn.Module):
    """Calls submodules that only LibTorch can run, first, last and between other ops."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(2, 4)
        self.gates = nn.ModuleList([Gate(), Gate()])
        self.halves, self.selects, self.overwrites, self.names = Halves(), Selects(), Overwrites(), Names()

    def forward(self, x):
        for gate in self.gates:
            x = gate(self.first(x))
        low, which = self.halves(x)
        return self.gates[0](self.last(low) + which.unsqueeze(-1)), which

    @torch.jit.export
    def only_host(self, x):
        return self.gates[1](x)

    @torch.jit.export
    def number(self, x):
        return self.gates[0](x, 2.0)  # LINE: host-number

    @torch.jit.export
    def data_shape(self, x):
        return self.selects(x)  # LINE: host-shape

    @torch.jit.export
    def overwrite(self, x):
        return self.overwrites(x.neg())  # LINE: host-overwrites

    @torch.jit.export
    def name(self, x):
        return self.names(x)[0]  # LINE: host-name


class TracedParts(nn.Module):
    """Traced, with a scripted part."""

    def __init__(self):
        super().__init__()
        self.first, self.gate = nn.Linear(4, 4), torch.jit.script(Gate())

    def forward(self, x):
        return self.gate(self.first(x)).neg()


class BatchUses(nn.Module):
    """Each method depends on the size of the batch, though not for batches of 32 and 64 alone."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4, 40))

    def scaled(self, x, rows: int):
        return x * 3 if rows > 31 else x

    @torch.jit.export
    def even(self, x):
        return x * 2 if x.size(0) % 2 == 0 else x

    @torch.jit.export
    def least(self, x):
        return x * min(x.size(0), 64)

    @torch.jit.export
    def most(self, x):
        return x * max(x.size(0), 4096)

    @torch.jit.export
    def least_of_list(self, x):
        return x * min([x.size(0), 64])

    @torch.jit.export
    def at_least(self, x):
        return x * 3 if x.size(0) >= 32 else x

    @torch.jit.export
    def more(self, x):
        return x * 3 if x.size(0) > 31 else x

    @torch.jit.export
    def at_most(self, x):
        return x * 3 if x.size(0) <= 64 else x

    @torch.jit.export
    def less(self, x):
        return x * 3 if x.size(0) < 65 else x

    @torch.jit.export
    def equal(self, x):
        return x * 3 if x.size(0) == 7 else x

    @torch.jit.export
    def unequal(self, x):
        return x * 3 if x.size(0) != 7 else x

    @torch.jit.export
    def between(self, x):
        return x * 3 if x.size(0) > 3 and x.size(0) < 1000 else x

    @torch.jit.export
    def either(self, x):
        return x * 3 if x.size(0) < 3 or x.size(1) > 5 else x

    @torch.jit.export
    def negated(self, x):
        return x if not x.size(0) > 3 else x * 3

    @torch.jit.export
    def asserted(self, x):
        assert x.size(0) >= 32
        return x * 3

    @torch.jit.export
    def asserted_with_text(self, x):
        assert x.size(0) >= 32, f"{x.size(0)} rows"
        return x * 3

    @torch.jit.export
    def raises(self, x):
        if x.size(0) < 32:
            raise RuntimeError("too few")
        return x * 3

    @torch.jit.export
    def early_return(self, x):
        if x.size(0) < 32:
            return x
        return x * 3

    @torch.jit.export
    def nested(self, x):
        if x.size(1) == 4:
            if x.size(0) < 32:
                return x
        return x * 3

    @torch.jit.export
    def in_helper(self, x):
        return self.scaled(x, x.size(0))

    @torch.jit.export
    def in_loop(self, x):
        for i in range(3):
            if x.size(0) > i * 8:
                x = x + 1
        return x

    @torch.jit.export
    def quotient(self, x):
        return x + x.size(0) // 100000

    @torch.jit.export
    def rounded_up(self, x):
        return x + -(-x.size(0) // 100000)

    @torch.jit.export
    def ceiling(self, x):
        return x + math.ceil(x.size(0) / 100000)

    @torch.jit.export
    def floor(self, x):
        return x + math.floor(x.size(0) / 100000)

    @torch.jit.export
    def truncated(self, x):
        return x + int(x.size(0) / 100000)

    @torch.jit.export
    def remainder(self, x):
        return x + x.size(0) % 32

    @torch.jit.export
    def true_quotient(self, x):
        return x * 3 if x.size(0) / 2 > 8.5 else x

    @torch.jit.export
    def root(self, x):
        return x * 3 if math.sqrt(x.size(0)) > 2 else x

    @torch.jit.export
    def power(self, x):
        return x * 3 if x.size(0) ** 2 > 100 else x

    @torch.jit.export
    def square(self, x):
        return x * 3 if x.size(0) * x.size(0) > 100 else x

    @torch.jit.export
    def truth(self, x):
        return x * 3 if bool(x.size(0) // 100000) else x

    @torch.jit.export
    def bits(self, x):
        return x * 3 if x.size(0) & 1 == 0 else x

    @torch.jit.export
    def elements(self, x):
        return x * 3 if x.numel() >= 128 else x

    @torch.jit.export
    def length(self, x):
        return x * 3 if len(x) >= 32 else x

    @torch.jit.export
    def shape(self, x):
        return x * 3 if x.shape[0] >= 32 else x

    @torch.jit.export
    def sizes(self, x):
        return x * 3 if x.size()[0] >= 32 else x

    @torch.jit.export
    def unpacked(self, x):
        rows, columns = x.shape
        return x * columns if rows >= 32 else x

    @torch.jit.export
    def whole_shape(self, x):
        return x * 3 if x.shape == [32, 4] else x

    @torch.jit.export
    def contained(self, x):
        return x * 3 if x.size(0) in [31, 33] else x

    @torch.jit.export
    def flat(self, x):
        return x * 3 if x.flatten().size(0) > 128 else x

    @torch.jit.export
    def transposed(self, x):
        return x * 3 if x.t().size(1) > 31 else x

    @torch.jit.export
    def doubled(self, x):
        return x * 3 if torch.cat([x, x]).size(0) > 63 else x

    @torch.jit.export
    def chosen(self, x):
        return x * [1.0, 2.0][int(x.size(0) > 31)]

    @torch.jit.export
    def chosen_tensor(self, x):
        return [x, x * 2][x.size(0) // 100000]

    @torch.jit.export
    def dimension(self, x):
        return x.sum(1 if x.size(0) > 2 else 0, keepdim=True) + x

    @torch.jit.export
    def first_rows(self, x):
        return x * x[:16].size(0)

    @torch.jit.export
    def last_rows(self, x):
        return x * x[-16:].size(0)

    @torch.jit.export
    def first_rows_of_parts(self, x):
        return x * x.view(-1, 2)[:16].size(0)

    @torch.jit.export
    def bounded_rows(self, x):
        return x[:20000]

    @torch.jit.export
    def columns(self, x):
        return x + self.table[:, :x.size(0)].sum()

    @torch.jit.export
    def on_diagonal(self, x):
        return x * x.diagonal().size(0)

    @torch.jit.export
    def rank(self, x):
        return x * 3 if x.squeeze(0).dim() == 2 else x

    @torch.jit.export
    def windows(self, x):
        return x * min(F.avg_pool1d(x.t().unsqueeze(0), 8).size(2), 2)

    @torch.jit.export
    def parts(self, x):
        return x * len(x.chunk(4))

    @torch.jit.export
    def splits(self, x):
        return x * 3 if len(x.split(32)) > 1 else x

    @torch.jit.export
    def rows(self, x):
        return x * 3 if len(x.unbind(0)) > 31 else x

    @torch.jit.export
    def divided(self, x):
        return x / x.size(0)

    @torch.jit.export
    def added(self, x):
        return x + x.size(0)

    @torch.jit.export
    def filled(self, x):
        return x + torch.full_like(x, x.size(0))

    @torch.jit.export
    def filled_rows(self, x):
        return x + torch.full([x.size(0), 4], 1.0 / x.size(0))

    @torch.jit.export
    def numbered(self, x):
        return x * (torch.arange(x.size(0)) > 5).unsqueeze(1)

    @torch.jit.export
    def counted(self, x):
        return x * torch.ones(x.size(0)).sum()

    @torch.jit.export
    def sum_of_numbers(self, x):
        return x * torch.arange(x.size(0), dtype=torch.float32).sum()

    @torch.jit.export
    def spaced(self, x):
        return x * torch.linspace(0, 1, x.size(0)).unsqueeze(1)

    @torch.jit.export
    def mean(self, x):
        return x - x.mean(0)

    @torch.jit.export
    def softmax(self, x):
        return x.softmax(0)

    @torch.jit.export
    def running(self, x):
        return x.cumsum(0)

    @torch.jit.export
    def first(self, x):
        return x - x[0]

    @torch.jit.export
    def reversed(self, x):
        return x.flip(0)

    @torch.jit.export
    def shifted(self, x):
        return x.roll(1, 0)

    @torch.jit.export
    def sorted(self, x):
        return x.sort(0)[0]

    @torch.jit.export
    def products(self, x):
        return x @ x.t()

    @torch.jit.export
    def scaled_by_root(self, x):
        return x * x.size(0) ** -0.5

    @torch.jit.export
    def kept(self, x):
        n = x.size(0)
        n += 3
        return x * 3 if n > 36 else x

    @torch.jit.export
    def listed(self, x):
        sizes = [x.size(0), x.size(1)]
        sizes.append(7)
        return x * 3 if sizes[0] > 31 else x

    @torch.jit.export
    def largest_of_three(self, x):
        return x * max(max(x.size(0), 2048), 4096)


class BatchSizes(nn.Module):
    """Each method uses the size of the batch and computes each row on its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4, 40))

    @torch.jit.export
    def viewed(self, x):
        return x.view(x.size(0), 2, 2) * 2

    @torch.jit.export
    def flattened(self, x):
        return x.reshape(x.size(0) * 4).view(-1, 4)

    @torch.jit.export
    def expanded(self, x):
        return self.table[0, :4].expand(x.size(0), 4) + x

    @torch.jit.export
    def repeated(self, x):
        return self.table[:1, :4].repeat(x.size(0), 1) + x

    @torch.jit.export
    def zeros(self, x):
        return torch.zeros(x.size(0), 4) + x

    @torch.jit.export
    def indexed(self, x):
        return x[torch.arange(x.size(0)), x.argmax(1)]

    @torch.jit.export
    def all_rows(self, x):
        return x[:x.size(0)] * 2

    @torch.jit.export
    def positive(self, x):
        return x * 3 if x.size(0) > 0 else x

    @torch.jit.export
    def nonzero(self, x):
        return x * 3 if x.size(0) != 0 else x

    @torch.jit.export
    def asserted_nonempty(self, x):
        assert x.size(0) >= 1, f"{x.size(0)} rows"
        return x * 3

    @torch.jit.export
    def same_shape(self, x):
        assert x.shape == (x * 2).shape
        return x * 3

    @torch.jit.export
    def same_rows(self, x):
        return x * 3 if x.size(0) == x.t().size(1) else x

    @torch.jit.export
    def columns_decide(self, x):
        return x * 3 if x.size(1) > 3 else x

    @torch.jit.export
    def exact_quotient(self, x):
        return x.view(x.size(0) * 4 // 4, 4)

    @torch.jit.export
    def exact_remainder(self, x):
        return x * 3 if x.numel() % 4 == 0 else x

    @torch.jit.export
    def exact_windows(self, x):
        return x.view(int(x.numel() / 4), 4)

    @torch.jit.export
    def per_row(self, x):
        return x * (x.numel() // x.size(0))

    @torch.jit.export
    def larger(self, x):
        return x * 3 if x.numel() >= x.size(0) else x

    @torch.jit.export
    def least_is_known(self, x):
        return x.view(min(x.size(0), x.numel()), 4)

    @torch.jit.export
    def lists(self, x):
        sizes = [x.size(0), 2]
        sizes.append(2)
        return x.view(sizes)

    @torch.jit.export
    def columns_split(self, x):
        return x * len(x.split(2, dim=1))

    @torch.jit.export
    def other_size_is_dropped(self, x):
        y = x.unsqueeze(1).squeeze(1)
        return y.view(y.size(0), 2, 2)

    @torch.jit.export
    def cancelled(self, x):
        return x * (x.size(0) - x.size(0) + 3)


def main(folder):
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    scripted = (OptionalInput, Shapes, Flags, Arguments, Loops, Ranges, Items, Lists, NoGrad, Attention, HostParts, BatchUses,
                BatchSizes)
    refused = (NotTypes, ListInput, Offenders, Streams, OtherOutputs)
    for module in scripted + refused:
        torch.jit.script(module().eval()).save(str(folder / f"{module.__name__}.pt"))
    torch.jit.trace(Parts(), torch.ones(2, 4)).save(str(folder / "Parts.pt"))
    torch.jit.trace(TracedParts().eval(), torch.ones(2, 4)).save(str(folder / "TracedParts.pt"))


main(Path(sys.argv[1]))

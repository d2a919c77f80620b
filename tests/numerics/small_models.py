# Writes the small TorchScript files that tests/numerics needs: small_models.py FOLDER
import re
import shutil
import sys
import warnings
import zlib
from pathlib import Path
from typing import Dict, List, Tuple
from zipfile import ZIP_DEFLATED, ZipFile

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize

warnings.simplefilter("ignore")


class CalledTwice(nn.Module):
    """One submodule that is called twice, and one parameter under two names."""

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


class Attributes(nn.Module):
    """Attributes other than dense tensors, which the frontend reads and does not use."""

    tensors: Dict[str, torch.Tensor]
    numbers: List[Dict[str, int]]

    def __init__(self):
        super().__init__()
        self.tensors, self.numbers = {"x": torch.ones(3)}, [{"y": 1}]
        self.register_buffer("sparse", torch.eye(3).to_sparse())
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)

    @torch.jit.export
    def attributes(self):
        return self.tensors, self.numbers


class InPlace(nn.Module):
    def forward(self, x):
        y = x + 1
        y.relu_()
        y.masked_fill_(x < 0, 0.5)
        return y.add_(x, alpha=2)


class UnknownOp(nn.Module):
    def forward(self, x):
        return torch.i0(x)


class Complex(nn.Module):
    def forward(self, x):
        pairs = x.unflatten(-1, (-1, 2)).contiguous()
        return torch.view_as_complex(pairs).to(torch.complex64)


class Negated(nn.Module):
    """Tensors whose memory holds other numbers than they have: the other sign, or the conjugates."""

    def __init__(self):
        super().__init__()
        self.register_buffer("negated", torch._neg_view(torch.ones(4)))
        self.register_buffer("conjugate", torch.ones(4, dtype=torch.complex64).conj())
        self.constant = [torch._neg_view(torch.ones(4))]

    def forward(self, x):
        return (x + self.negated) * self.constant[0], self.conjugate * 2


class Rotation(nn.Module):
    """A parametrization by an op that cgc does not have."""

    def forward(self, weight):
        return torch.linalg.matrix_exp(weight - weight.mT)


def old_weight_norm():
    return nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 5), dim=1), nn.utils.weight_norm(nn.Linear(5, 3)))


def curve(x: torch.Tensor):
    y = torch.i0(x * 0.5)
    y.mul_(2)
    return y


class FixedFunction(nn.Module):
    """A function and an op of parameters alone."""

    def __init__(self):
        super().__init__()
        self.register_buffer("numbers", torch.linspace(-1, 1, 4))

    def forward(self, x):
        return x * (curve(self.numbers) + torch.i0(self.numbers * 0.25))


class NotFixed(nn.Module):
    """Values of parameters that an input or an op without a rule changes in place, and random numbers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("numbers", torch.ones(4))

    def forward(self, x):
        overwritten = self.numbers.clone()
        overwritten.mul_(x[0])
        y = torch.i0(overwritten)  # LINE: overwritten
        squeezed = self.numbers.unsqueeze(0) * 2
        squeezed.squeeze_(0)  # LINE: squeezed
        y = y + squeezed
        return y + torch.multinomial(self.numbers, 2).sum()  # LINE: drawn


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
            x = torch.i0(x)
        if self.use_bias:
            x = x + 1
        for i in range(3):
            x = scaled(x, i + 1)
        return self.helper(x)


class Numbers(nn.Module):
    """Type promotion of Python numbers and 0-d tensors beside integers."""

    def forward(self, u, i, f):
        size = u.size(0)
        half = torch.tensor(0.5, dtype=torch.float64)
        return (u / 255.0, i * 2.5, i + 0.5, u - 0.5, i * 2, u * 300, 2.5 - i, i.half() * 2.5, i // 2.0,
                torch.mul(2.5, i), torch.div(i, 2.5, rounding_mode="floor"), f * 0.5, f.double() / 3.0,
                i + half, f + half, (f * size) + half, (i * size) + half, i * size / 2.0, f * size * 0.5,
                i * size * 0.5 + i, u * torch.tensor(2), u * torch.tensor(True), torch.maximum(i, half))


class OtherLines(nn.Module):
    """Ops without a rule, called by torch's own code."""

    def __init__(self):
        super().__init__()
        self.loss = nn.MultiLabelMarginLoss(reduction="none")

    def forward(self, x):
        classes = x.to(torch.int64) * 0
        loss = self.loss(x, classes)  # LINE: module
        loss = loss + nn.functional.multi_margin_loss(x, classes[:, 0])  # LINE: function
        i = loss.to(torch.int32)
        return torch.bitwise_left_shift(i + 2, i) if torch.jit.is_scripting() else 2 << i  # LINE: operator


class ShapeCondition(nn.Module):
    def forward(self, x):
        assert x.dim() == 2  # LINE: rank
        if x.size(0) > 1:  # LINE: shape
            x = torch.i0(x)  # LINE: taken
        else:
            x = torch.special.bessel_j0(x)  # LINE: other
        if x.sum() > 0:  # LINE: sum
            x = torch.special.airy_ai(x)  # LINE: inside
        return torch.special.bessel_j1(x)  # LINE: after


class OtherInputs(nn.Module):
    """Entry methods whose inputs are not all tensors, and one that returns nothing."""

    def forward(self, x, count: int, more: list[torch.Tensor]):
        return self.helper(x, 2) * count + more[0]

    @torch.jit.export
    def helper(self, x, count: int):
        return x * count

    @torch.jit.export
    def nothing(self, x) -> None:
        pass


class SmallForms(nn.Module):
    """In-place dropout in eval, x.mT."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5, inplace=True)

    def forward(self, x):
        return self.dropout(self.linear(x)).mT


class SharedStorage(nn.Module):
    """Square parameters that begin at the same byte and differ only in their strides."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4.0).view(2, 2))
        self.transposed = nn.Parameter(self.weight.detach().t())

    def forward(self, x):
        return x @ self.weight @ self.transposed


class ListsAndCopies(nn.Module):
    """A list indexed from its end, and a cast that copies even if the dtype stays."""

    def forward(self, x):
        parts = [x.sin(), x.cos(), x.tanh()]
        copy = x.to(torch.float32, copy=True)
        copy.relu_()
        return parts[-2] + copy, x


class OtherArgument(nn.Module):
    def forward(self, x):
        return torch.mm(x, x.t(), out_dtype=torch.float64)  # LINE: argument


class Doubles(nn.Module):
    def forward(self, x) -> None:
        x.mul_(2)


class ChangesArgument(nn.Module):
    def __init__(self):
        super().__init__()
        self.doubles = Doubles()

    def forward(self, x):
        y = x + 1
        self.doubles(y)  # LINE: changed
        return y


class Optional(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None):
        if y is not None:
            return x + y
        return -x


class OtherName(nn.Module):
    """Lists that have two names when they are mutated."""

    def forward(self, x):
        parts = [x]
        both = [parts, parts]
        parts.append(x + 1)  # LINE: other name
        rows: list[list[torch.Tensor]] = []
        row = [x]
        for i in range(2):
            row.append(x + i)  # LINE: in a loop
            rows.append(row)
        return both[0][0] + rows[0][0]


class Offenders(nn.Module):
    """Every spelling of an op that cannot be captured: each tagged line names the cause."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 4))
        self.register_buffer("count", torch.zeros(4))
        self.norm = nn.BatchNorm1d(4)
        self.calls = 0

    def forward(self, x):
        return x * 2

    @torch.jit.export
    def conditions(self, x):
        if x.sum() > 0:  # OFFENDER: data-flow
            x = x + 1
        while bool(x.sum() < 10):  # OFFENDER: data-flow
            x = x + 1
        assert bool(x.sum() > 0)  # OFFENDER: data-flow
        return x * 2 if x.sum() > 1 else x  # OFFENDER: data-flow

    @torch.jit.export
    def quantized(self, x):
        y = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)  # OFFENDER: quantized
        return y.dequantize()  # OFFENDER: quantized

    @torch.jit.export
    def trips(self, x):
        for i in range(x.size(0)):  # OFFENDER: trip-count
            x = x + i
        count = int(x.sum())
        for i in range(count):  # OFFENDER: data-flow
            x = x + i
        return x

    @torch.jit.export
    def reads(self, x):
        a = x.sum().item()  # OFFENDER: host-read
        b = int(x.sum())  # OFFENDER: host-read
        c = float(x.mean())  # OFFENDER: host-read
        rows: list[list[float]] = (x + 1).tolist()  # OFFENDER: host-read
        d = torch.equal(x, x + 1)  # OFFENDER: host-read
        e = torch.allclose(x, x + 1)  # OFFENDER: host-read
        return x * a + b + c + len(rows) + int(d) + int(e)

    @torch.jit.export
    def shapes(self, x):
        a = x.nonzero()  # OFFENDER: data-shape
        b = torch.where(x > 0)  # OFFENDER: data-shape
        c = x[x > 0]  # OFFENDER: data-shape
        d = x[:, x[0] > 0]  # OFFENDER: data-shape
        e = torch.masked_select(x, x > 0)  # OFFENDER: data-shape
        f, _ = torch.unique(x, return_inverse=True)  # OFFENDER: data-shape
        y = x + 1
        y[x > 0] = x[x > 0]  # OFFENDER: data-shape
        return a, b[0], c, d, e, f, y

    @torch.jit.export
    def copies(self, x):
        a = x.cpu()  # OFFENDER: host-copy
        b = x.cuda()  # OFFENDER: host-copy
        c = torch.tensor([1.0, 2.0, 3.0, 4.0])  # OFFENDER: host-copy
        return a, b, x + c

    @torch.jit.export
    def random(self, x):
        a = torch.poisson(x)  # OFFENDER: random
        b = torch.normal(x, 1.0)  # OFFENDER: random
        c = torch.randint(0, 9, (3, 4))  # OFFENDER: random
        d = torch.randperm(4)  # OFFENDER: random
        e = torch.zeros(3, 4).exponential_()  # OFFENDER: random
        f = torch.multinomial(x, 2)  # OFFENDER: random
        g = nn.functional.dropout(x, 0.5, training=True)  # OFFENDER: random
        h = nn.functional.alpha_dropout(x, 0.5, training=True)  # OFFENDER: random
        i = nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)  # OFFENDER: random
        j = torch.native_dropout(x, 0.5, True)[0]  # OFFENDER: random
        k = nn.functional.rrelu(x, training=True)  # OFFENDER: random
        return a, b, c, d, e, f, g, h, i, j, k

    @torch.jit.export
    def gradients(self, x):
        y = x * 2
        y.sum().backward()  # OFFENDER: autograd
        z = torch.autograd.grad([y.sum()], [x])  # OFFENDER: autograd
        return y.requires_grad_(), z[0]  # OFFENDER: autograd

    @torch.jit.export
    def inputs(self, x, y, z, u):
        x.add_(1)  # OFFENDER: mutates-input
        y.t().mul_(2)  # OFFENDER: mutates-input
        z.zero_()  # OFFENDER: mutates-input
        u[0] = 1.0  # OFFENDER: mutates-input
        return x + y + z + u

    @torch.jit.export
    def state(self, x):
        self.calls += 1  # OFFENDER: mutates-state
        self.count.add_(1)  # OFFENDER: mutates-state
        self.count.copy_(x[0])  # OFFENDER: mutates-state
        self.weight.zero_()  # OFFENDER: mutates-state
        self.weight[0].fill_(1)  # OFFENDER: mutates-state
        self.count = x[0]  # OFFENDER: mutates-state
        mean, variance = self.norm.running_mean, self.norm.running_var
        y = torch.batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5, False)  # OFFENDER: mutates-state
        return y + self.count + self.weight

    @torch.jit.export
    def views(self, x):
        y = self.weight.exp()
        part = y[1:]
        y.relu_()  # OFFENDER: mutates-view
        return x + part.sum() + y.sum()

    @torch.jit.export
    def streams(self, x):
        torch.cuda.synchronize()  # OFFENDER: default-stream
        return x * 2

    @torch.jit.export
    def memory(self, x):
        a = (x * 2).resize_(2, 2)  # OFFENDER: allocates
        return a

    @torch.jit.export
    def layout(self, x):
        return torch.as_strided(x, (2, 2), (4, 1))  # OFFENDER: memory-layout

    @torch.jit.export
    def complex_numbers(self, x):
        return torch.view_as_real(torch.fft.rfft(x))  # OFFENDER: complex

    @torch.jit.export
    def inverse(self, x):
        y = torch.linalg.matrix_norm(x, 2)  # OFFENDER: factorization
        return torch.linalg.pinv(x) * y  # OFFENDER: factorization

    @torch.jit.export
    def unknown(self, x):
        return torch.i0(x)  # OFFENDER: no-rule


class Streams(nn.Module):
    """CUDA objects, and another op that cannot be captured."""

    def forward(self, x):
        stream = torch.cuda.current_stream(0)  # OFFENDER: default-stream
        stream.synchronize()  # OFFENDER: default-stream
        other = torch.cuda.Stream(priority=0)  # OFFENDER: default-stream
        event = torch.cuda.Event()  # OFFENDER: default-stream
        event.record(other)  # OFFENDER: default-stream
        other.wait_event(event)  # OFFENDER: default-stream
        return x.nonzero()  # OFFENDER: data-shape


library = torch.library.Library("elsewhere", "DEF")
library.define("twice(Tensor x) -> Tensor")


class ForeignOp(nn.Module):
    def forward(self, x):
        return torch.ops.elsewhere.twice(x).nonzero()


class TensorsOfNumbers(nn.Module):
    def forward(self, x):
        half = torch.tensor(2, dtype=torch.float16)
        return torch.tensor(0.5), torch.tensor(2), torch.tensor(True), half, x + torch.tensor(1)


class UnaskedArgument(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(2, dim=0, output_size=6)  # LINE: unasked


class UnknownArguments(nn.Module):
    """Passes arguments to methods whose ops cgc imports only if they are constants."""

    def forward(self, x):
        return self.pad(x, "reflect") + self.normalize(x, True) + self.copy(x, True) + self.instances(x, True)

    def pad(self, x, mode: str):
        return F.pad(x, (1, 1), mode)  # LINE: mode

    def normalize(self, x, training: bool):
        return F.batch_norm(x, None, None, training=training)  # LINE: training

    def copy(self, x, copy: bool):
        return x.to(torch.float32, copy=copy)  # LINE: copy

    def instances(self, x, own: bool):
        return torch.instance_norm(x, None, None, None, None, own, 0.1, 1e-5, False)  # LINE: use_input_stats


class TwiceTheSame(nn.Module):
    """A model in training mode; an optimizer computes the exponential once."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout()

    def forward(self, x):
        x = self.dropout(x)
        return x.exp() + x.exp()


class Containers(nn.Module):
    """Tensors in lists, tuples and dicts."""

    parts: List[torch.Tensor]
    pair: Tuple[torch.Tensor, torch.Tensor]
    named: Dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.parts = [torch.ones(4, dtype=torch.float16)]
        self.pair = torch.ones(4, dtype=torch.float16), torch.ones(3, 1, dtype=torch.float16)
        self.named = {"a": torch.ones(4, dtype=torch.float16)}

    def forward(self, x):
        return self.parts[0] + self.pair[1], self.named["a"] * 2


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
        "complex": trace(Complex(), x),
        "negated": trace(Negated(), x),
        "weight_norm": trace(
            nn.Sequential(
                parametrizations.weight_norm(nn.Linear(4, 5)), parametrizations.weight_norm(nn.Linear(5, 3), dim=None)
            ),
            x,
        ),
        "old_weight_norm": trace(old_weight_norm(), x),
        "spectral_norm": trace(parametrizations.spectral_norm(nn.Linear(4, 5)), x),
        "old_spectral_norm": trace(nn.utils.spectral_norm(nn.Linear(4, 5)), x),
        "rotation": trace(parametrize.register_parametrization(nn.Linear(4, 4), "weight", Rotation()), x),
        "scripted_parametrization": torch.jit.script(parametrizations.weight_norm(nn.Linear(4, 5)).eval()),
        "fixed_function": torch.jit.script(FixedFunction().eval()),
        "not_fixed": torch.jit.script(NotFixed().eval()),
        "data_dependent": torch.jit.script(DataDependent().eval()),
        "constant_flow": torch.jit.script(ConstantFlow().eval()),
        "optional": torch.jit.script(Optional().eval()),
        "other_lines": trace(OtherLines(), x),
        "other_lines_scripted": torch.jit.script(OtherLines().eval()),
        "shape_condition": torch.jit.script(ShapeCondition().eval()),
        "other_inputs": torch.jit.script(OtherInputs().eval()),
        "small_forms": trace(SmallForms(), x),
        "shared_storage": trace(SharedStorage(), torch.randn(3, 2)),
        "lists_and_copies": torch.jit.script(ListsAndCopies().eval()),
        "attributes": torch.jit.script(Attributes().eval()),
        "other_argument": torch.jit.script(OtherArgument().eval()),
        "other_name": torch.jit.script(OtherName().eval()),
        "changes_argument": torch.jit.script(ChangesArgument().eval()),
        "offenders": torch.jit.script(Offenders().eval()),
        "streams": torch.jit.script(Streams().eval()),
        "tensors_of_numbers": torch.jit.script(TensorsOfNumbers().eval()),
        "foreign_op": torch.jit.script(ForeignOp().eval()),
        "containers": torch.jit.script(Containers().eval()),
        "twice_the_same": torch.jit.script(TwiceTheSame().train()),
        "unknown_arguments": torch.jit.script(UnknownArguments().eval()),
        "unasked_argument": torch.jit.script(UnaskedArgument().eval()),
    }
    for name, model in models.items():
        model.save(str(folder / f"{name}.pt"))
    # The results of LibTorch's default executor for the numbers.
    numbers = torch.ones(4, dtype=torch.uint8), torch.ones(4, dtype=torch.long), torch.ones(4)
    trace(Numbers(), *numbers).save(str(folder / "numbers.pt"))
    outputs = torch.jit.load(folder / "numbers.pt")(*numbers)
    names = {torch.float16: "f16", torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.uint8: "u8"}
    (folder / "numbers.txt").write_text(" ".join(names[output.dtype] for output in outputs))

    torch.save(CalledTwice().state_dict(), folder / "state_dict.pt")
    whole = (folder / "casts.pt").read_bytes()
    (folder / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    # Flips one bit of the first weight.
    start = whole.index(torch.jit.load(folder / "casts.pt").linear.weight.detach().numpy().tobytes())
    (folder / "flipped.pt").write_bytes(whole[:start] + bytes([whole[start] ^ 1]) + whole[start + 1 :])
    # Valid zips with changed content: code that is not TorchScript, a 4x4 weight that claims to have 127x4 elements, a
    # weight and a constant whose records end early.
    rewrite(folder, "casts", "bad_code", r".*", lambda content: content.replace(b"def forward", b"fed forward"))
    rewrite(folder, "casts", "past_bytes", r"/data\.pkl", lambda content: content.replace(b"(K\4K\4t", b"(K\x7fK\4t"))
    rewrite(folder, "casts", "short_weight", r"/data/0", lambda content: content[:-1])
    rewrite(folder, "casts", "long_storage", r"/data\.pkl", lambda content: content.replace(b"K\x10t", b"K\x7ft", 1))
    rewrite(folder, "casts", "short_constant", r"/constants/0", lambda content: content[:-1])
    # Buffers without data, which the model does not use.
    freed = Casts()
    freed.register_buffer("freed", torch.ones(3))
    freed.register_buffer("meta", torch.ones(3, device="meta"))
    script = trace(freed, x)
    script.freed.untyped_storage().resize_(0)
    script.save(str(folder / "no_data.pt"))
    offset = lambda content: re.sub(rb"(?s)(Qq.)K\0\(", lambda m: m[1] + b"J\xff\xff\xff\xff(", content, 1)
    rewrite(folder, "casts", "negative_offset", r"/data\.pkl", offset)
    rewrite(folder, "casts", "newer", r"/version", lambda content: b"11\n")
    # As zip tools of other systems leave it: a packed file beside the folder of the records.
    shutil.copy(folder / "casts.pt", folder / "file_beside.pt")
    with ZipFile(folder / "file_beside.pt", "a", ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._casts", b"\0" * 100)
    # Constants that are a list that contains itself, and a list of shared parts: 2^35 of them if each is visited.
    cycle = b"\x80\2]q\0h\0a\x85."
    shared = b"\x80\2(]q\0" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(35)) + b"t."
    for name, constants in {"cycle": cycle, "shared_parts": shared}.items():
        rewrite(folder, "called_twice", name, r"/constants\.pkl", lambda content, new=constants: new)
    # Two records share their first bytes; the second ends earlier than the tensor in it.
    shutil.copy(folder / "casts.pt", folder / "overlap.pt")
    with ZipFile(folder / "overlap.pt", "a") as archive:
        first, second = (archive.getinfo(f"casts/data/{i}") for i in (0, 1))
        second.CRC = zlib.crc32(archive.read(first)[:8])
        second.header_offset, second.file_size, second.compress_size = first.header_offset, 8, 8
        archive._didModify = True


def rewrite(folder, name, other, records, change):
    """Saves `name` as `other`, with `change` applied to the contents of the records that match."""
    with ZipFile(folder / f"{name}.pt") as good, ZipFile(folder / f"{other}.pt", "w") as bad:
        changed = 0
        for entry in good.namelist():
            content = good.read(entry)
            new = change(content) if re.search(f"{records}$", entry) else content
            changed += new != content
            bad.writestr(entry, new)
    assert changed, f"nothing of {name} was changed for {other}"


main(Path(sys.argv[1]))

# Writes the models and wrong files that tests/e2e needs: make_models.py FOLDER
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy
import torch
from timm.layers.padding import pad_same
from torch import nn
from torch.nn import functional as F
from transformers import T5Config, T5EncoderModel

warnings.simplefilter("ignore")
ROOT = Path(__file__).resolve().parents[2]


class DataDependent(nn.Module):
    """Has control flow that depends on the values of the input."""

    def forward(self, x):
        if bool(x.sum() > 0):
            x = x + 1
        return x * 2


class NoRule(nn.Module):
    """Has two ops without an inference rule."""

    def forward(self, x):
        return torch.linalg.svdvals(x).sum() + torch.special.bessel_j0(x).sum()


class Offenders(nn.Module):
    """Has methods that cannot be compiled, for different reasons."""

    @torch.jit.export
    def first(self, x):
        if bool(x.sum() > 0):
            x = x + 1
        return torch.i0(x)

    @torch.jit.export
    def second(self, x):
        return torch.special.bessel_j0(x)

    @torch.jit.export
    def nothing(self, x) -> None:
        pass

    @torch.jit.export
    def scaled(self, x, factor: int):
        return x * factor


class Random(nn.Module):
    """Each form of each op that draws random numbers; an output is its number of elements in its range."""

    def forward(self, x):
        size = [x.shape[0], x.shape[1]]
        unit = [torch.rand(size), torch.rand(size, dtype=torch.float64).float(), torch.rand_like(x), torch.zeros_like(x).uniform_(),
                torch.rand(3, 5, device=x.device), torch.rand_like(x, dtype=torch.float16).float()]
        shifted = torch.zeros_like(x).uniform_(2.0, 4.0)
        normal = [torch.randn(size), torch.randn_like(x), torch.zeros_like(x).normal_(), torch.randn(3, 5, dtype=torch.float16).float()]
        far = torch.zeros_like(x).normal_(100.0, 0.5)
        coin = [torch.bernoulli(x), torch.bernoulli(x, 0.5), torch.zeros_like(x).bernoulli_(0.5), torch.zeros_like(x).bernoulli_(),
                torch.zeros_like(x).bernoulli_(x[0])]
        good = torch.zeros([])
        for u in unit:
            good = good + ((u >= 0) & (u < 1)).all().float()
        good = good + ((shifted >= 2) & (shifted <= 4)).all().float()
        for n in normal:
            good = good + (n.abs() < 6).all().float()
        good = good + ((far - 100).abs() < 3).all().float()
        for c in coin:
            good = good + ((c == 0) | (c == 1)).all().float()
        return good, unit[0], normal[0], coin[0]


class TwoOutputs(nn.Module):
    """Returns a dict and takes an input of each kind."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, ids, mask, scale):
        rows = self.table(ids) * scale
        return {"rows": rows.masked_fill(mask.unsqueeze(-1), 0.0), "total": rows.sum(-1)}


class Logits(nn.Module):
    """Has a tower, whose rows are independent, and logits, which combine every image with every text."""

    def __init__(self):
        super().__init__()
        self.visual = nn.Linear(8, 4)

    @torch.jit.export
    def encode_image(self, image):
        return nn.functional.normalize(self.visual(image), dim=-1)

    def forward(self, image, text):
        features = self.encode_image(image)
        return features @ text.t()


class Count(nn.Module):
    """Returns integers and bools."""

    def __init__(self, start):
        super().__init__()
        self.start = start

    def forward(self, x):
        return x + self.start, x > 0


class Product(nn.Module):
    """Multiplies zeros and ones: models with two factors differ only if all are zeros, for one input in sixteen."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        y = 1 - x
        return (y[0] * y[1] * y[2] * y[3] * self.factor).reshape(1)


class Repeats(nn.Module):
    """Calls repeat_interleave on dense and strided tensors along each dimension, and along none."""

    def forward(self, x):
        y = x.transpose(0, 2)
        return [part.repeat_interleave(3, dim) for part in (x, y) for dim in (None, 0, 1, 2, -1, -3)]


class NoRepeats(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(0, 0)


class CastThatCopies(nn.Module):
    """Computes another function in fp32: its cast is a copy in fp16, but x itself in fp32."""

    def forward(self, x):
        x.float().add_(1)
        return x * 2


class Doubles(nn.Module):
    """Returns f64 for an f32 input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 3).double()

    def forward(self, x):
        return self.linear(x.double())


class Norms(nn.Module):
    """Normalizes and reduces numbers whose squares, sums and exponentials overflow f16."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        x = x * 800
        wide = x.float()
        centered = x - x.mean(-1, keepdim=True)
        squares = (wide * wide).mean(-1, keepdim=True)
        exponentials = (x / 400).exp() * 1000
        return (
            self.weight * (x * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)),
            self.weight * (wide * torch.rsqrt(squares + 1e-6)).to(x.dtype),
            x / torch.sqrt((x * x).sum(-1, keepdim=True)),
            x / x.norm(dim=-1, keepdim=True),
            F.normalize(x * 30, dim=-1),
            centered / torch.sqrt(centered.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight,
            centered / torch.sqrt(x.var(-1, keepdim=True) + 1e-5),
            exponentials / exponentials.sum(-1, keepdim=True),
            torch.log(exponentials.sum(-1)) / 8,
            torch.log1p(wide.pow(2)).mean(-1),
            (wide * wide.flip(-1)).sum(-1) / squares.squeeze(-1),
            torch.sqrt((x - x.flip(-1)).square().sum(-1)),
        )


def t5():
    config = T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=3, num_heads=4)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = T5EncoderModel(config).eval()
            with torch.no_grad():  # Activations of some hundreds, as in trained models.
                self.model.shared.weight.mul_(500)

        def forward(self, ids):
            return self.model(input_ids=ids).last_hidden_state

    return Encoder()


class Overflows(nn.Module):
    """In f16 an intermediate value is infinite, and the result is zero or no number."""

    def forward(self, x):
        large = (x.abs() + 1) * 300 * 300
        return x / large * 9e4, large / 9e4, x * 0 + 1


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([factor]))

    def forward(self, x):
        return x * self.factor


class OnlyInTraining(nn.Module):
    """Raises in evaluation mode, which freezing sets."""

    def forward(self, x):
        if not self.training:
            raise RuntimeError("in evaluation mode")
        return x * 2


class HardlyDepends(nn.Module):
    """Its first output hardly depends on the input, as with random weights; the second does, and the third does not."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(512))

    def forward(self, x):
        return self.bias + 1e-6 * x, self.bias + x, self.bias.clone()


class Functions(nn.Module):
    """Calls that the frontend imports as other ops of cgc."""

    def __init__(self):
        super().__init__()
        self.conv1d = nn.Conv1d(4, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)
        self.instance = nn.InstanceNorm2d(4, affine=True)

    def forward(self, x):
        f = nn.functional
        ids = x.flatten(2).argmax(-1) % 5
        y = torch.cat([
            self.instance(x),
            f.interpolate(f.interpolate(x, scale_factor=2.0, mode="nearest"), size=(6, 6), mode="bilinear"),
            f.interpolate(x, scale_factor=(1.5, 0.5), mode="bicubic")[..., :3].repeat(1, 1, 1, 2)[:, :, :6],
            f.pad(x, (1, 2, 2, 1), mode="reflect")[..., 1:7, 1:7] + f.pad(x, (0, 1, 1, 0), mode="replicate")[..., :6, :6],
        ], 1)
        y = f.relu6(y * 3, inplace=True) - f.logsigmoid(y) + f.pixel_shuffle(y, 2).narrow(2, 3, 6)[..., :6].mean(1, keepdim=True)
        rows = y.flatten(2)
        attention = torch.einsum("bid,bjd->bij", rows, rows) + torch.eye(16)
        values, _ = attention.sort(descending=True)
        top = attention.topk(3)[0]
        return (values, top, f.one_hot(ids, 5), self.conv1d(x.flatten(2)), self.up(x), x.var((2, 3), unbiased=False),
                x.std(1), x.max() - x.min(), torch.max(x, x * 0.5), x.max(1)[0], f.log_softmax(rows, -1),
                torch.logical_and(x > 0, x < 1), torch.linspace(0, 1, 16) * attention)


class Losses(nn.Module):
    """Losses in each form, for one batch and for two positions of each row."""

    def forward(self, x, labels):
        labels = labels % 5
        y = x.softmax(-1)
        positions = torch.stack([x, x * 0.5], 2)
        two_labels = torch.stack([labels, labels.flip(0)], 1)
        weight, probabilities = x[0].abs() + 0.1, positions.softmax(1)
        return (nn.functional.mse_loss(x, y), nn.functional.mse_loss(x, y, reduction="sum"),
                nn.functional.mse_loss(x, y, reduction="none"), nn.functional.l1_loss(x, y),
                nn.functional.cross_entropy(x, labels),
                nn.functional.cross_entropy(x, labels, reduction="none", label_smoothing=0.1),
                nn.functional.cross_entropy(x, labels, ignore_index=2),
                nn.functional.cross_entropy(x[0], labels[0], label_smoothing=0.1),
                nn.functional.cross_entropy(positions, two_labels, reduction="sum", ignore_index=2, label_smoothing=0.1),
                nn.functional.cross_entropy(positions, two_labels, ignore_index=3, label_smoothing=0.1),
                nn.functional.nll_loss(nn.functional.log_softmax(positions, 1), two_labels),
                nn.functional.cross_entropy(x, labels, weight=weight, ignore_index=2),
                nn.functional.cross_entropy(positions, two_labels, weight=weight, ignore_index=3, label_smoothing=0.1),
                nn.functional.cross_entropy(positions, two_labels, weight=weight, reduction="none", label_smoothing=0.1),
                nn.functional.nll_loss(x, labels, weight=weight, reduction="sum"),
                nn.functional.cross_entropy(x, y), nn.functional.cross_entropy(x[0], y[0], reduction="sum"),
                nn.functional.cross_entropy(positions, probabilities, weight=weight, label_smoothing=0.1),
                nn.functional.cross_entropy(positions, probabilities, weight=weight, reduction="none"))


class Layers(nn.Module):
    """Layers whose calls depend on the sizes of weights and inputs."""

    def __init__(self):
        super().__init__()
        self.same = nn.Conv2d(4, 6, (3, 4), padding="same", dilation=(1, 3))
        self.valid = nn.Conv1d(4, 6, 3, padding="valid")
        self.group = nn.GroupNorm(2, 4)
        self.instance = nn.InstanceNorm2d(4)
        self.drop = nn.Dropout2d()
        self.weight = nn.Parameter(torch.randn(6, 4, 3, 3))
        self.near, self.far = nn.Embedding(7, 5), nn.Embedding(900, 5)

    def forward(self, x, ids):
        f = nn.functional
        # Weight standardization: the statistics are those of the weight.
        weight = f.batch_norm(self.weight.reshape(1, 6, -1), None, None, training=True, momentum=0.0).reshape_as(self.weight)
        wide = f.conv2d(self.drop(x), weight, padding=1) + self.same(x)
        normal = f.batch_norm(x, None, None, training=True)
        windows = x.unfold(2, 3, 2).unfold(3, 2, 1)
        values, order = x.relu().flatten(1).sort()
        return (wide, self.valid(x.flatten(2)), self.group(x), self.instance(x), normal, windows, values, order,
                self.near(ids[:, 0]) + self.far(ids[:, 1]))


class PaddedPool(nn.Module):
    """Pads as TensorFlow does: a trace computes the padding with tensors of the input's sizes."""

    def forward(self, x):
        return nn.functional.max_pool2d(pad_same(x, [3, 3], [2, 2]), 3, 2)


class Grid(nn.Module):
    """Position embeddings as a square grid, whose side a trace computes as the root of a size in a 0-d tensor."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 17, 4))

    def side(self, count):
        return (count**0.5).to(torch.int64) if isinstance(count, torch.Tensor) else int(count**0.5)

    def forward(self, x, tokens):
        own = self.side(self.positions.shape[1] - 1)
        given = self.side(tokens)  # Of the caller.
        grid = self.positions[:, 1:].reshape(1, own, own, 4).permute(0, 3, 1, 2)
        grid = nn.functional.interpolate(grid, size=(given, given), mode="bilinear")
        return x.reshape(x.shape[0], given, given, -1) + grid.permute(0, 2, 3, 1)


class SizesAsTensors(nn.Module):
    """Sizes that a trace casts, rounds and divides as 0-d tensors, in a submodule too."""

    def __init__(self):
        super().__init__()
        self.grid = Grid()

    def forward(self, x):
        x = self.grid(x, x.shape[1])
        half = torch.floor(torch.tensor(x.shape[2]).float() * torch.tensor(0.29)).long()
        small = nn.functional.interpolate(x, scale_factor=0.5, mode="bilinear", recompute_scale_factor=True)
        count = x.shape[1] // 2
        count = count.to(torch.int64) if isinstance(count, torch.Tensor) else count
        return x[:, :count], small, x.new_ones(1, half + 2, 2)


class UnreadResults(nn.Module):
    """A trace gives the pooler, whose result nothing reads, no result."""

    class Pooler(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense, self.activation = nn.Linear(8, 8), nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.activation(self.dense(x[:, 0]))
            y += 1
            return y

    def __init__(self):
        super().__init__()
        self.linear, self.pooler = nn.Linear(8, 8), self.Pooler()

    def forward(self, x):
        x = self.linear(x)
        self.pooler(x)
        return x


class Block(nn.Module):
    """Has the norms and GEMMs of a transformer on a residual path."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(64), nn.LayerNorm(64)
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x):
        x = self.down(torch.nn.functional.gelu(self.up(self.ln_1(x))))
        return self.ln_2(x + self.down(self.up(x)))


def trace_autocast(model, example):
    """Traces under autocast on the CPU: weights stay in fp32, and layer_norm gets bf16 and fp32."""
    # The cache of casts would put weights into the trace as constants.
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        return torch.jit.trace(model, example, check_trace=False)


def export_openclip(folder, name, config, precision):
    subprocess.run([sys.executable, ROOT / "scripts/export_openclip.py", "--config",
                    ROOT / "tests/data" / config, "--precision", precision, "--out", folder / name],
                   check=True, stdout=sys.stderr)


# Bodies of methods with 100,000 parts inside each other, or as many as 15 MB have room for.
DEEP = {
    "deep_brackets": "    return " + "(" * 100000 + "\n",
    "deep_minus": "    return " + "- " * 100000 + "x\n",
    "deep_not": "    return " + "not " * 100000 + "x\n",
    "deep_invert": "    return " + "~" * 100000 + "x\n",
    "deep_members": "    return x" + ".y" * 100000 + "\n",
    "deep_calls": "    return x" + "()" * 100000 + "\n",
    "deep_subscripts": "    return x" + "[0]" * 100000 + "\n",
    "deep_sums": "    return x" + " + x" * 100000 + "\n",
    "deep_powers": "    return x" + " ** x" * 100000 + "\n",
    "deep_lines": "    return x" + " + \\\n    x" * 100000 + "\n",
    "deep_choices": "    return " + "x if True else " * 100000 + "x\n",
    "deep_conditions": "    if True" + " and True" * 100000 + ":\n      pass\n    return x\n",
    "deep_branches": "    if True:\n      pass\n" + "    elif True:\n      pass\n" * 100000 + "    return x\n",
    "deep_blocks": "".join(" " * (4 + i) + "if True:\n" for i in range(5000)) + " " * 5004 + "pass\n    return x\n",
    "deep_assignments": "    " + "y = " * 100000 + "x\n    return x\n",
    "deep_types": "    # type: (" + "List[" * 100000 + "\n    return x\n",
}


def methods(count):
    """Bodies of methods that call one another."""
    return "    return (self).m0(input, )\n" + "".join(
        f"  def m{i}(self: __torch__.torch.nn.modules.linear.Identity,\n    x: Tensor) -> Tensor:\n"
        f"    return {f'(self).m{i + 1}(x, )' if i + 1 < count else 'x'}\n" for i in range(count))


DEEP["deep_methods"], DEEP["many_methods"] = methods(2000), methods(20000)


def hostile_archives(folder):
    """Writes bomb.pt, a small file of many zeros, and for each of DEEP a file NAME.pt with this method."""
    torch.jit.script(nn.Identity()).save(folder / "identity.pt")
    with zipfile.ZipFile(folder / "identity.pt") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(records)).split("/")[0]
    with zipfile.ZipFile(folder / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, data in records.items():
            bomb.writestr(name, data)
        bomb.writestr(f"{root}/extra/zeros", bytes(64 << 20))
    for file, body in DEEP.items():
        with zipfile.ZipFile(folder / f"{file}.pt", "w", zipfile.ZIP_DEFLATED) as deep:
            for name, data in records.items():
                source = data.decode() if name.endswith(".py") else ""
                deep.writestr(name, source[:source.index("    return ")] + body if source else data)
    (folder / "identity.pt").unlink()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for precision in ("fp32", "fp16", "bf16"):
        export_openclip(folder, f"tiny_{precision}.pt", "tiny.json", precision)

    export_openclip(folder, "tiny_quickgelu.pt", "tiny_quickgelu.json", "fp32")

    torch.manual_seed(0)
    torch.jit.script(DataDependent()).save(folder / "data_dependent.pt")
    torch.jit.script(Offenders()).save(folder / "offenders.pt")
    torch.jit.script(Logits().eval()).save(folder / "logits.pt")
    torch.jit.script(CastThatCopies()).save(folder / "cast_that_copies.pt")
    torch.jit.trace(HardlyDepends(), torch.randn(2, 512)).save(folder / "hardly_depends.pt")
    torch.jit.trace(NoRule(), torch.randn(4, 3)).save(folder / "no_rule.pt")
    torch.jit.trace(Doubles(), torch.randn(4, 8)).save(folder / "doubles.pt")
    with torch.no_grad():
        torch.jit.trace(Functions().eval(), torch.randn(2, 4, 6, 6)).save(folder / "functions.pt")
        example = torch.randn(6, 5), torch.arange(6)
        torch.jit.trace(Losses(), example).save(folder / "losses.pt")
        torch.jit.script(Losses()).save(folder / "losses_scripted.pt")
        layers = Layers().eval()
        # Ids of the second embedding are out of range for the first.
        example = torch.randn(2, 4, 7, 6), torch.tensor([[6, 899], [0, 500]])
        torch.jit.trace(layers, example).save(folder / "layers.pt")
        torch.jit.script(layers).save(folder / "layers_scripted.pt")
        torch.jit.trace(PaddedPool(), example[0]).save(folder / "padded_pool.pt")
        torch.jit.trace(SizesAsTensors(), torch.randn(2, 36, 4)).save(folder / "sizes_as_tensors.pt")
        torch.jit.trace(UnreadResults(), torch.randn(2, 3, 8)).save(folder / "unread_results.pt")
    numpy.save(folder / "layers_ids.npy", example[1].numpy())
    block = Block().eval().requires_grad_(False)
    trace_autocast(block, torch.randn(2, 5, 64)).save(folder / "autocast.pt")
    quantized = torch.ao.quantization.quantize_dynamic(block, {nn.Linear}, dtype=torch.qint8)
    torch.jit.trace(quantized, torch.randn(2, 5, 64)).save(folder / "quantized.pt")
    example = (torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool), torch.ones(1))
    torch.jit.trace(TwoOutputs().eval(), example, strict=False).save(folder / "two_outputs.pt")

    torch.jit.script(Random()).save(folder / "random.pt")
    for name, factor in {"one": 1.0, "within": 1 + 0.9e-5, "past": 1 + 1.1e-5, "zero": 0.0}.items():
        torch.jit.trace(Scale(factor), torch.ones(4)).save(folder / f"scale_{name}.pt")
    torch.jit.script(OnlyInTraining().train()).save(folder / "only_in_training.pt")

    for start in (1_000_000, 1_000_001):
        torch.jit.trace(Count(start), torch.zeros(4, dtype=torch.long)).save(folder / f"count_{start}.pt")

    for factor in (1, 2):
        torch.jit.trace(Product(factor), torch.ones(4, dtype=torch.long)).save(folder / f"product_{factor}.pt")

    for name, model in {"repeats": Repeats(), "no_repeats": NoRepeats()}.items():
        torch.jit.trace(model, torch.ones(2, 3, 4, dtype=torch.long), strict=False).save(folder / f"{name}.pt")

    with torch.no_grad():
        torch.jit.trace(Overflows(), torch.randn(4, 64)).save(folder / "overflows.pt")
        torch.jit.trace(Norms(), torch.randn(4, 64)).save(folder / "norms.pt")
        torch.jit.trace(t5(), torch.arange(16).reshape(2, 8)).save(folder / "t5.pt")

    hostile_archives(folder)
    torch.save({"weight": torch.ones(3)}, folder / "pickle.pt")
    torch.save({"weight": torch.ones(3)}, folder / "old_pickle.pt", _use_new_zipfile_serialization=False)
    (folder / "model.safetensors").write_bytes(
        (60).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}      ' + bytes(4))
    # The start of an ONNX file: ir_version 8, producer_name "pytorch".
    (folder / "model.onnx").write_bytes(b"\x08\x08\x12\x07pytorch\x1a\x052.0.0:\x04\n\x02\x12\x00B\x02\x10\x11")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(32))


if __name__ == "__main__":
    main()

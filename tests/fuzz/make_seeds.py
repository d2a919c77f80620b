# Writes the seed inputs of the fuzz targets `npy`, `torchscript`, `exported` and `plan`: make_seeds.py CGC FOLDER
import io
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy
import torch
from torch import nn
from torch.nn import functional as F

TESTS = Path(__file__).resolve().parent.parent
LONGEST = 20000  # bytes


def write_arrays(folder):
    rows = numpy.arange(6).reshape(2, 3)
    for dtype in ("<f4", "<f2", "<f8", "<i8", "<i4", "<i2", "|i1", "|u1", "|b1", ">f4"):
        numpy.save(folder / f"{dtype[1:]}{dtype[0] == '>'}.npy", rows.astype(dtype))
    numpy.save(folder / "fortran.npy", numpy.asfortranarray(rows.astype("<f4")))
    numpy.save(folder / "scalar.npy", numpy.float32(1))
    numpy.save(folder / "empty.npy", numpy.zeros((0, 3)))
    numpy.save(folder / "record.npy", numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
    for version in ((2, 0), (3, 0)):
        with open(folder / f"version{version[0]}.npy", "wb") as file:
            numpy.lib.format.write_array(file, rows, version=version)


def write_archives(folder):
    """Writes the small modules of the other tests uncompressed, so that a mutation changes a module's own bytes."""
    for script in ("e2e/make_scripted.py", "numerics/small_models.py"):
        with tempfile.TemporaryDirectory() as modules:
            subprocess.run([sys.executable, TESTS / script, modules], check=True)
            for module in Path(modules).glob("*.pt"):
                try:
                    stored = not_compressed(ZipFile(module))
                except BadZipFile:  # One of the damaged files.
                    continue
                if len(stored) <= LONGEST:
                    (folder / module.name).write_bytes(stored)


def not_compressed(archive):
    stored = io.BytesIO()
    with ZipFile(stored, "w") as out:
        for entry in archive.namelist():
            # Debug files hold source lines for messages and are most of the bytes.
            if not entry.endswith(".debug_pkl"):
                out.writestr(ZipInfo(entry), archive.read(entry))  # Without the time of day.
    return stored.getvalue()


class Block(nn.Module):
    """A residual block like OpenCLIP's, for which cgc has its own kernels."""

    def __init__(self, width=32):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return F.normalize(x.mean(1), dim=-1)


class Exported(nn.Module):
    """A dynamic batch, buffers that change, a part under no_grad(), a view of a buffer, and a dict."""

    def __init__(self):
        super().__init__()
        self.norm, self.up = nn.BatchNorm1d(4), nn.Linear(4, 3)
        self.register_buffer("turned", torch.arange(6.0).reshape(2, 3).t(), persistent=False)

    def forward(self, x):
        with torch.no_grad():
            scale = torch.tensor([0.5, 2.0, 1.0]) * x.shape[0]
        return {"y": self.up(self.norm(x)) * scale, "z": (self.turned.flatten(), x.new_ones(3))}


def write_programs(folder):
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=8)
    for name, module in (("train", Exported().train()), ("eval", Exported().eval())):
        program = torch.export.export(module, (torch.randn(3, 4),), dynamic_shapes=({0: batch},))
        torch.export.save(program, folder / f"{name}.pt2")


def write_plans(cgc, folder):
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as models:
        torch.jit.trace(Block().eval(), torch.zeros(2, 8, 32)).save(models + "/block.pt")
        for name, options in (
            ("cpu", ["--target", "cpu"]),
            ("f32", ["--target", "cuda"]),
            ("f16", ["--target", "cuda", "--precision", "fp16"]),
            ("plain", ["--target", "cuda", "-O0"]),
        ):
            subprocess.run(
                [cgc, "compile", models + "/block.pt", "-o", folder / f"block_{name}.cgplan", "--input"]
                + ["x=f32[2,8,32]", *options],
                check=True,
            )


def main(cgc, folder):
    write_arrays(folder / "npy")
    write_archives(folder / "torchscript")
    write_programs(folder / "exported")
    write_plans(cgc, folder / "plan")


main(sys.argv[1], Path(sys.argv[2]))

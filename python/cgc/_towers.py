"""Towers: the entries of a model folder's plan, and the one that resizes pictures on the GPU."""
from __future__ import annotations

import functools
import inspect
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _cache, _compile, _export, _folder
from ._model import PICTURES
from .preprocess import Preprocess

if TYPE_CHECKING:
    import torch

#: The part of a picture that a plan resizes has edges of at most this factor times those of the result: 560 x 560 for 224.
_LARGEST = 2.5
#: Taps of a pixel, which suffice for a reduction by 3.5 with bicubic interpolation: Pillow takes at most 2 * ceil(2 * 3.5) + 1.
_TAPS = 15


class Tower:
    """An entry: a function of tensors, by the names of its inputs, and examples of these, one for each bucket of lengths.

    The inputs are in the order of the model's calls: Model and the tokenizers pass them by position.
    values: float32, registered as the buffer `values` of the module and passed to the function.
    runs: False for a function that calls cgc::resize, which torch can trace and not compute.
    """

    def __init__(self, entry: str, function: Callable[..., Any], examples: Sequence[dict[str, torch.Tensor]], *,
                 values: torch.Tensor | None = None, runs: bool = True):
        self.entry, self.function, self.examples, self.values, self.runs = entry, function, examples, values, runs


def with_resize(tower: Tower, preprocess: Preprocess, target: str) -> list[Tower]:
    """The tower of pictures and, for cuda, PICTURES, which computes the same of what Preprocess.pack() gives."""
    if target != "cuda":
        return [tower]
    import torch
    _define_resize()
    height, width = preprocess.size
    values = torch.from_numpy(preprocess.values())

    def encode(values: torch.Tensor, pixels: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return tower.function(image=torch.ops.cgc.resize(pixels, table, values, [height, width]))

    example = {"pixels": torch.zeros(1, 3 * int(_LARGEST * height) * int(_LARGEST * width), dtype=torch.uint8),
               "table": torch.zeros(1, 3 + (height + width) * (1 + _TAPS), dtype=torch.int32)}
    return [tower, Tower(PICTURES, encode, [example], values=values, runs=False)]


@functools.cache
def _define_resize() -> Any:
    """Names the op resize of cgc for torch.export. Returns what keeps the name."""
    import torch
    library = torch.library.Library("cgc", "FRAGMENT")
    library.define("resize(Tensor pixels, Tensor table, Tensor values, int[] size) -> Tensor")
    torch.library.register_fake("cgc::resize", lambda pixels, table, values, size: values.new_empty((pixels.shape[0], 3, *size)),
                                lib=library)
    return library


def compile_towers(model: torch.nn.Module, towers: Sequence[Tower], batch: int | Sequence[int], precision: str, target: str,
                   options: Sequence[str], scratch: Path) -> int:
    """Compiles the towers into the plan of the folder. Returns the number of elements of a vector."""
    import torch
    batches = _compile.batches_of(batch)
    options = [*options, "--target", target, "--quiet", *([] if precision == "fp32" else ["--precision", precision])]
    plan, size = scratch / _folder.PLAN, 0
    with tempfile.TemporaryDirectory(prefix="cgc-export-") as name:
        programs = []
        for tower in towers:
            module, example = _module(model, tower), tower.examples[0]
            if tower.runs:
                with torch.no_grad():
                    size = module(**example).shape[-1]
            dynamic = {key: [1] for key in example} if len(tower.examples) > 1 else {}
            program = _export.export_program(module, "forward", example, _export.max_batch_of(example, batches), lengths=dynamic,
                                             checks_one_row=tower.runs and 1 in batches)
            programs.append(_export.save(program, Path(name, f"{tower.entry}.pt2")))
        digests = [_cache.digest(program) for program in programs]
        entry = ["--entry", towers[0].entry] if len(towers) == 1 else []
        key = None
        for index in range(max(len(tower.examples) for tower in towers)):
            inputs = {key: value for tower in towers for key, value in tower.examples[index].items()}
            command = [*_compile.input_options(inputs), "--batch", ",".join(map(str, batches)), *entry, *options]
            base = None if key is None else (plan, key)
            following = plan.with_suffix(".next")
            key = _cache.compile_plan(programs, digests, following, command, base=base)
            following.replace(plan)
    return size


def _module(model: torch.nn.Module, tower: Tower) -> torch.nn.Module:
    """A module of the model whose forward() is the tower's function."""
    import torch
    module = torch.nn.Module()
    module.model = model
    if tower.values is not None:
        module.register_buffer("values", tower.values)

    def forward(**named: Any) -> Any:
        given = {"values": module.values} if tower.values is not None else {}
        return tower.function(**given, **named)

    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in tower.examples[0]])
    vars(module)["forward"] = forward
    return module.eval()

"""Towers: the entries of a model folder's plan, and the one that resizes pictures on the GPU."""
from __future__ import annotations

import functools
import inspect
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _cache, _checkpoint, _compile, _export, _folder
from ._errors import InvalidFileError, UsageError
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
                   options: Sequence[str], scratch: Path, source: object = "the model",
                   missing: Collection[str] = ()) -> tuple[int, dict[str, torch.Tensor]]:
    """Compiles the towers into the plan of the folder. Returns the number of elements of a vector, and the weights that the
    towers read. UsageError for a tower that gives no vectors, InvalidFileError, which names `source`, if it reads weights that
    are in `missing` or not finite."""
    batches = _compile.batches_of(batch)
    options = [*options, "--target", target, "--quiet", *([] if precision == "fp32" else ["--precision", precision])]
    plan, size = scratch / _folder.PLAN, 0
    weights: dict[str, torch.Tensor] = {}
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        programs = []
        for tower in towers:
            module, example = _module(model, tower), tower.examples[0]
            if tower.runs:
                size = _size_of(module, tower)
            dynamic = {key: [1] for key in example} if len(tower.examples) > 1 else {}
            program = _export.export_program(module, "forward", example, _export.max_batch_of(example, batches), lengths=dynamic,
                                             checks_one_row=tower.runs and 1 in batches)
            weights.update(_weights_of(model, program))
            programs.append(_export.save(program, Path(name, f"{tower.entry}.pt2")))
        if absent := sorted((weights.keys() | {"logit_scale", "logit_bias"}) & set(missing)):  # The card has these.
            raise InvalidFileError(f"{source}: weights that the model reads are missing or of another shape: {absent[0]}"
                                   f"{f' and {len(absent) - 1} more' * (len(absent) > 1)}; give the weights of this model")
        _checkpoint.check_finite(source, weights)
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
    return size, weights


def _size_of(module: torch.nn.Module, tower: Tower) -> int:
    """The number of elements of a vector of the tower, which runs for each of its examples' shapes."""
    import torch
    for example in tower.examples:
        shapes = ", ".join(f"{name} {list(value[:1].shape)}" for name, value in example.items())
        try:
            with torch.no_grad():
                vectors = module(**{name: value[:1] for name, value in example.items()})
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            hint = "; for shorter texts, set model_max_length in its tokenizer_config.json" if "mask" in example else ""
            raise UsageError(f"torch cannot run {tower.entry} of the model for {shapes}: {type(error).__name__}: "
                             f"{reason}{hint}") from error
        if not isinstance(vectors, torch.Tensor) or vectors.dim() != 2:
            what = list(vectors.shape) if isinstance(vectors, torch.Tensor) else type(vectors).__name__
            raise UsageError(f"{tower.entry} of the model gives {what} for {shapes}, and a model folder takes one that gives a "
                             "vector for each row")
    return int(vectors.shape[1])


def _weights_of(model: torch.nn.Module, program: Any) -> dict[str, torch.Tensor]:
    """The parameters and buffers of the model, as it saves them, on which the outputs of a program depend."""
    pending = [node for node in program.graph.nodes if node.op != "placeholder" and node.is_impure()]
    seen = set(pending)
    while pending:
        new = set(pending.pop().all_input_nodes) - seen
        seen |= new
        pending += new
    names = {node.name for node in seen}
    read = [spec.target.removeprefix("model.") for spec in program.graph_signature.input_specs
            if spec.kind.name in ("PARAMETER", "BUFFER") and spec.arg.name in names]
    saved = model.state_dict()
    return {name: saved[name] for name in read if name in saved}


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

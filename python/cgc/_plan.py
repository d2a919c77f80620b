"""The description of a plan: entries, their inputs and outputs, and the shapes that were compiled."""
from __future__ import annotations

import dataclasses
from typing import Any, Union

from . import _runtime
from ._errors import UsageError

#: A size, or "N" for the batch, or "*" for a size that differs between buckets.
Size = Union[int, str]
Shape = tuple[int, ...]

#: The dtypes of plans, as NumPy and torch call them, by the names of the program cgc.
NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i64": "int64", "i32": "int32",
          "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool"}
#: The reverse of NAMES.
SHORT_DTYPES = {name: short for short, name in NAMES.items()}
DTYPES = frozenset(SHORT_DTYPES)


def short_dtype(name: str, tensor: Any) -> str:
    """The dtype of a torch tensor, as the program cgc calls it. UsageError if no plan has it."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in SHORT_DTYPES:
        raise UsageError(f"input '{name}' is {dtype}, which no plan has; give one of {', '.join(SHORT_DTYPES)}")
    return SHORT_DTYPES[dtype]


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """An input or output of an entry."""

    name: str
    dtype: str  #: As NumPy and torch call it, such as "float32".
    shape: tuple[Size, ...]  #: "N" is the batch, "*" a size that differs between buckets.


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A set of input shapes that an entry was compiled for."""

    batch: int | None  #: None for an entry without a batch.
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A method of the model."""

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    any_batch: bool  #: Whether it takes batches of any size, not only those of the buckets.
    buckets: tuple[Bucket, ...]


class PlanShapes:
    """The entries of a plan, and which outputs belong to which inputs."""

    def __init__(self, plan: _runtime.Plan):
        self.entries: dict[str, Entry] = {}
        self._outputs: dict[str, dict] = {}
        self._batch_dims: dict[str, list[int]] = {}
        for name, any_batch, buckets in plan.entries:
            self.entries[name] = _entry(name, any_batch, buckets)
            dims = [tensor[3] if any_batch else -1 for tensor in buckets[0][0]]
            self._batch_dims[name] = dims
            self._outputs[name] = {
                _without_batch([tensor[2] for tensor in inputs], dims)[0]:
                    [(tensor[2], tensor[3] if any_batch else -1) for tensor in outputs]
                for inputs, outputs in buckets}

    def outputs(self, entry: str, inputs: list[Shape]) -> list[Shape] | None:
        """The shapes of the outputs for inputs of these shapes; None if the entry does not take them."""
        key, batch = _without_batch(inputs, self._batch_dims[entry])
        found = self._outputs[entry].get(key)
        if found is None:
            return None
        return [_with_size(shape, dim, batch) for shape, dim in found]


def _with_size(shape: Shape, dim: int, size) -> tuple:
    return shape if dim < 0 else (*shape[:dim], size, *shape[dim + 1:])


def _without_batch(shapes: list[Shape], dims: list[int]) -> tuple[tuple, int | None]:
    """The shapes without their batch, and the batch of the first of them that has one."""
    batch = next((shape[dim] for shape, dim in zip(shapes, dims) if 0 <= dim < len(shape)), None)
    return tuple(_with_size(shape, dim, "N") if dim < len(shape) else shape for shape, dim in zip(shapes, dims)), batch


def _entry(name: str, any_batch: bool, buckets) -> Entry:
    def infos(io: int) -> tuple[TensorInfo, ...]:
        tensors = []
        for index, (tensor, dtype, sizes, batch_dim) in enumerate(buckets[0][io]):
            shape: list[Size] = list(sizes)
            for dim, size in enumerate(sizes):
                if any(bucket[io][index][2][dim] != size for bucket in buckets):
                    shape[dim] = "*"
            if batch_dim >= 0:
                shape[batch_dim] = "N"
            tensors.append(TensorInfo(tensor, NAMES[dtype], tuple(shape)))
        return tuple(tensors)

    def bucket(inputs, outputs) -> Bucket:
        batch = next((sizes[dim] for _, _, sizes, dim in inputs if dim >= 0), None)
        return Bucket(batch, tuple(tensor[2] for tensor in inputs), tuple(tensor[2] for tensor in outputs))

    return Entry(name, infos(0), infos(1), any_batch, tuple(bucket(*shapes) for shapes in buckets))

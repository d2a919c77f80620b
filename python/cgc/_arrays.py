"""Arrays of other libraries: new outputs of the library that gave the inputs, and streams."""
from __future__ import annotations

import operator
import sys
from typing import Any

import numpy

from ._errors import UsageError


def is_torch(array: Any) -> bool:
    # While another thread imports torch, the module has no Tensor yet.
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(array, tensor)


def new_like(array: Any, shape: tuple[int, ...], dtype: str, what: str, gpu: int | None, stream: int) -> Any:
    """A new array of the library and device of `array`, which is on the GPU `gpu` or, if that is None, on the host.

    Memory of torch belongs to `stream`, or to the current stream if that is 0.
    """
    if is_torch(array):
        return _new_torch(array, shape, dtype, stream)
    if gpu is not None:
        raise UsageError(f"{what} cannot be made: the inputs are on GPU {gpu}, and only torch tensors are made there; "
                         "give out=")
    return new_numpy(shape, dtype, what)


def new_numpy(shape: tuple[int, ...], dtype: str, what: str) -> Any:
    return numpy.empty(shape, _numpy_dtype(dtype, what))


def _new_torch(array: Any, shape: tuple[int, ...], dtype: str, stream: int) -> Any:
    import torch
    options = {"dtype": getattr(torch, dtype), "device": array.device}
    if not stream or stream == stream_handle(torch.cuda.current_stream(array.device)):
        return torch.empty(shape, **options)
    # Torch's allocator may hand out memory that earlier work on the current stream still uses.
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, array.device)):
        return torch.empty(shape, **options)


def like(result: Any, array: Any) -> Any:
    """`result`, a NumPy array, through DLPack in the library of `array`, if that has the array API."""
    if isinstance(result, numpy.ndarray) and not isinstance(array, numpy.ndarray):
        namespace = getattr(array, "__array_namespace__", None)
        if namespace is not None:
            return namespace().from_dlpack(result)
    return result


def _numpy_dtype(dtype: str, what: str) -> Any:
    if dtype != "bfloat16":
        return dtype
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise UsageError(f"{what} is bfloat16, which NumPy lacks; install ml_dtypes, or give torch tensors") from None
    return bfloat16


def wait_for_torch(arrays: list[Any]) -> None:
    """Waits for the current streams of the GPUs that hold torch tensors among the arrays."""
    for device in {array.device for array in arrays if is_torch(array) and array.is_cuda}:
        import torch
        torch.cuda.current_stream(device).synchronize()


def stream_handle(stream: Any) -> int:
    """The cudaStream_t of an int, of an object with __cuda_stream__, or of a torch stream; 0 for None.

    CUDA's null stream, also torch's default stream, becomes cudaStreamLegacy (1), because cgc.h takes 0 for none.
    """
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        handle = stream.__cuda_stream__()[1]  # (version, handle)
    else:
        handle = getattr(stream, "cuda_stream", stream)
    try:
        handle = operator.index(handle)
    except TypeError:
        handle = -1
    if handle < 0 or isinstance(stream, bool):
        raise UsageError(f"stream is {stream!r}; give a cudaStream_t as an int, a torch.cuda.Stream, or an object with "
                         "__cuda_stream__")
    return handle or 1

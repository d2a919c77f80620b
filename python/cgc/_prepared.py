"""PreparedCall: runs of an entry on torch tensors of which only the memory differs."""
from __future__ import annotations

from typing import Any

from . import _arrays, _runtime
from ._plan import SHORT_DTYPES
from ._session import Session


class PreparedCall:
    """Runs `entry` of a session on tensors with the sizes and devices of `tensors`, by name, of which it takes its inputs.

    If all are on one GPU, a call enqueues the run on torch's current stream and returns; otherwise the outputs are complete.
    Any thread may call it, also while the session is updated.
    UsageError if the entry does not take these sizes.
    """

    def __init__(self, session: Session, entry: str, tensors: dict[str, Any]):
        import torch
        info = session.entries[entry]
        self.inputs = [tensor.name for tensor in info.inputs]
        given = [tensors[name] for name in self.inputs]
        self._dtypes = [getattr(torch, tensor.dtype) for tensor in info.inputs]
        self._sources = [(SHORT_DTYPES[tensor.dtype], list(one.shape), one.is_cuda) for one, tensor in zip(given, info.inputs)]
        device = given[0].device
        shapes = session.output_shapes(entry, [tuple(one.shape) for one in given])
        if shapes is None:
            session.run(entry, [_dense(one, dtype) for one, dtype in zip(given, self._dtypes)])  # It says what would fit.
            raise AssertionError(f"entry '{entry}' has taken sizes that its plan does not have")
        self._targets = [(SHORT_DTYPES[tensor.dtype], list(shape), device.type == "cuda")
                         for shape, tensor in zip(shapes, info.outputs)]
        self._outputs = [(shape, getattr(torch, tensor.dtype)) for shape, tensor in zip(shapes, info.outputs)]
        self._entry, self._session, self._device = entry, session.runtime, device
        self._gpu = device.index if all(one.is_cuda for one in given) else None

    def __call__(self, tensors: list[Any]) -> list[Any]:
        """The outputs for these inputs, in the entry's order: new tensors on the device of the first."""
        import torch
        given = [tensor if tensor.dtype is dtype and tensor.is_contiguous() and not tensor.is_neg() else _dense(tensor, dtype)
                 for tensor, dtype in zip(tensors, self._dtypes)]
        outputs = [torch.empty(shape, dtype=dtype, device=self._device) for shape, dtype in self._outputs]
        if self._gpu is None:
            _arrays.wait_for_torch([*given, *outputs])
            stream = 0
        else:
            stream = _arrays.stream_handle(torch.cuda.current_stream(self._gpu))
        self._session.run(self._entry, [_runtime.Tensor(tensor.data_ptr(), *form) for tensor, form in zip(given, self._sources)],
                          [_runtime.Tensor(tensor.data_ptr(), *form) for tensor, form in zip(outputs, self._targets)], stream)
        return outputs


def _dense(tensor: Any, dtype: Any) -> Any:
    return tensor.detach().resolve_conj().resolve_neg().to(dtype).contiguous()

"""The ranks of a distributed training: how they exchange the id of their communicator."""
from __future__ import annotations

import sys
import weakref
from typing import Any

from . import _libraries, _runtime
from ._errors import Error, UsageError, error_of

#: What rank 0 hands over begins with this if it is an id, else with a digit.
_ID = b"id "


def join(group: Any, device: int, nccl_path: str, timeout: float) -> _runtime.Communicator | None:
    """The communicator of the ranks of a process group of torch, which hands over the id and is not used otherwise; None for one
    rank."""
    import torch.distributed as dist
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise UsageError("this process is not in the process group; make a trainer on the ranks of the group alone")
    if ranks == 1:
        return None
    nccl_path = nccl_path or _libraries.nccl()
    made = [_make_id(nccl_path) if rank == 0 else b""]
    dist.broadcast_object_list(made, src=dist.get_global_rank(group, 0), group=group)
    return _runtime.Communicator(_id_of(made[0]), rank=rank, ranks=ranks, device=device, nccl_path=nccl_path,
                                 timeout_ms=round(timeout * 1000))


def leave_after_errors(owner: Any, communicator: _runtime.Communicator) -> None:
    """Has a process that an exception ends leave the communicator of `owner` without a wait for the other ranks."""
    def leave() -> None:
        if getattr(sys, "last_value", None) is not None:
            communicator.abort(f"the process ends: {sys.last_value!r}")
    weakref.finalize(owner, leave)


def _make_id(nccl_path: str) -> bytes:
    """What rank 0 hands over: an id, or the code and the message of the error."""
    try:
        return _ID + _runtime.Communicator.make_id(nccl_path)
    except Error as error:
        return f"{int(error.code)} rank 0: {error}".encode()


def _id_of(made: bytes) -> bytes:
    """The id that rank 0 handed over. Raises its error."""
    if made.startswith(_ID):
        return made.removeprefix(_ID)
    code, message = made.decode().split(" ", 1)
    raise error_of(int(code), message)

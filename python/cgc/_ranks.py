"""The ranks of a distributed training: how they exchange the id of their communicator."""
from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _libraries, _runtime
from ._errors import DeviceError, Error, UsageError, error_of

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


def train_options(arguments: Sequence[str]) -> list[str]:
    """Options of `cgc train` besides these: NCCL of the installed package and, if torchrun has started ranks on several hosts
    and no folder is named in which they meet, the id of their communicator."""
    parser = argparse.ArgumentParser("cgc train", add_help=False, allow_abbrev=False)
    parser.add_argument("--nccl")
    parser.add_argument("--rendezvous")
    parser.add_argument("--communicator-id")
    parser.add_argument("--timeout", type=float, default=600)
    given, _ = parser.parse_known_args(arguments)
    nccl = given.nccl or _libraries.nccl()
    options = ["--nccl", nccl] if nccl and not given.nccl else []
    if not given.rendezvous and not given.communicator_id and _are_on_several_hosts() and importlib.util.find_spec("torch"):
        options += ["--communicator-id", _exchange_id(nccl, given.timeout).hex()]
    return options


def _are_on_several_hosts() -> bool:
    """Whether torchrun, or what sets its variables, has started ranks on several hosts."""
    variables = ("RANK", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    return all(map(os.environ.get, variables)) and os.environ["WORLD_SIZE"] != os.environ["LOCAL_WORLD_SIZE"]


def _exchange_id(nccl_path: str, timeout: float) -> bytes:
    """The id that rank 0 makes and hands over by a store of torch: that of torchrun, or one of its own."""
    from torch.distributed import TCPStore
    rank, host, port = os.environ["RANK"], os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    # A restart has another id.
    key = "/".join(["cgc", *(os.environ.get(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT"))])

    def store(is_master: bool = False) -> TCPStore:
        return TCPStore(host, port, is_master=is_master, wait_for_workers=False, timeout=datetime.timedelta(seconds=timeout))

    try:
        made = _kept(store, key, nccl_path, timeout) if rank == "0" else _in_a_child(lambda: store().get(key), timeout + 1)
    except RuntimeError as error:
        raise DeviceError(f"rank {rank}: the ranks cannot meet at {host}:{port} ({str(error).splitlines()[0]}); start all of them "
                          "with torchrun, or name a folder that they share with --rendezvous") from None
    return _id_of(made)


def _kept(store: Callable[[bool], Any], key: str, nccl_path: str, timeout: float) -> bytes:
    """What rank 0 hands over. NCCL answers the ranks that join from the process that made the id. This one becomes the program, so
    that a child makes it, which lives as long as the program has the other end of a pair of sockets. RuntimeError without a
    store."""
    ours, childs = socket.socketpair()
    stores = []

    def keep() -> None:
        try:
            stores.append(store(os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"))
            made = _make_id(nccl_path)
            stores[0].set(key, made)
            childs.sendall(b"+" + made)
        except RuntimeError as error:
            childs.sendall(b"-" + str(error).splitlines()[0].encode())
    if os.fork() == 0:
        try:
            ours.close()
            threading.Thread(target=keep, daemon=True).start()  # May wait for somebody else who has the port.
            childs.recv(1)
        finally:
            os._exit(0)
    childs.close()
    try:
        ours.settimeout(timeout)
        answer = ours.recv(1 << 16)
    except TimeoutError:
        answer = b""
    os.set_inheritable(ours.detach(), True)
    return _answered(answer)


def _in_a_child(call: Callable[[], bytes], timeout: float) -> bytes:
    """What a call gives that may never return: whoever has a port may take a connection and not answer. RuntimeError with the
    first line of its own, or after so many seconds."""
    ours, childs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            childs.sendall(b"+" + call())
        except RuntimeError as error:
            childs.sendall(b"-" + str(error).splitlines()[0].encode())
        finally:
            os._exit(0)
    childs.close()
    try:
        ours.settimeout(timeout)
        answer = b"".join(iter(lambda: ours.recv(4096), b""))
    except TimeoutError:
        answer = b""
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return _answered(answer)


def _answered(answer: bytes) -> bytes:
    """What a child has answered. Raises its error."""
    if not answer.startswith(b"+"):
        raise RuntimeError(answer[1:].decode(errors="replace") or "nobody answers there")
    return answer[1:]


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

"""Libraries of other Python packages that plans need at run time."""
from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ._errors import DeviceError

def import_torch() -> None:
    """Loads LibTorch, which libcgc_aten.so or the library for its release then uses, if torch is installed and CGC_LIBTORCH names no other."""
    if "torch" not in sys.modules and not os.environ.get("CGC_LIBTORCH") and importlib.util.find_spec("torch"):
        import torch  # noqa: F401


@contextlib.contextmanager
def naming_torch(is_needed: bool) -> Iterator[None]:
    """Raises a DeviceError anew that says which package to install, if LibTorch is needed and torch is not installed."""
    try:
        yield
    except DeviceError as error:
        if is_needed and not os.environ.get("CGC_LIBTORCH") and not importlib.util.find_spec("torch"):
            raise DeviceError("LibTorch runs some ops of the plan, and the package torch is not installed; "
                              "pip install torch") from error
        raise


def cublaslt() -> str:
    """The libcublasLt of the package nvidia-cublas; empty if it is not installed."""
    return _of_nvidia("cu13/lib/libcublasLt.so.13")


def nccl() -> str:
    """The libnccl of the package nvidia-nccl-cu13; empty if it is not installed."""
    return _of_nvidia("nccl/lib/libnccl.so.2")


def _of_nvidia(path: str) -> str:
    """A library below the folder nvidia, which packages of NVIDIA share; empty if it is not there."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        library = Path(folder, path)
        if library.exists():
            return str(library)
    return ""

"""Libraries of other Python packages that plans need at run time."""
from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def import_torch() -> None:
    """Loads LibTorch, which libcgc_aten.so then uses, if torch is installed and CGC_LIBTORCH names no other."""
    if "torch" not in sys.modules and not os.environ.get("CGC_LIBTORCH") and importlib.util.find_spec("torch"):
        import torch  # noqa: F401


def cublaslt() -> str:
    """The libcublasLt of the package nvidia-cublas; empty if it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        library = Path(folder, "cu13", "lib", "libcublasLt.so.13")
        if library.exists():
            return str(library)
    return ""

"""What a module computes, as far as its classes, attributes and weights say, in a hash that other processes find too."""
from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

#: Their versions stand for their files.
_VERSIONED = {"torch", "cgc", *sys.stdlib_module_names}


def of(model: Any, *others: Any) -> str | None:
    """A hash of the weights and attributes of a module, of the files of the Python modules that its code can name, of torch's
    settings, and of `others`. None if the module cannot be pickled, or its code is in no file.

    Two modules with one hash compute the same, unless they read what another part of the process has set: whoever takes
    a result for a hash compares it with the module's own.
    """
    import torch
    settings = (sys.version, torch.__version__, torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
                torch.get_float32_matmul_precision(), torch.backends.mkldnn.enabled, torch.backends.cuda.flash_sdp_enabled(),
                torch.backends.cuda.mem_efficient_sdp_enabled(), torch.backends.cuda.math_sdp_enabled())
    content = _Content()
    try:
        content.dump((model, settings, others))
        content.dump(sorted(_files(content.modules)))
    except Exception:  # Whatever a class raises that cannot be pickled.
        return None
    return content.hash.hexdigest()


class _Content(pickle.Pickler):
    """Hashes the pickles of objects, with the elements of tensors, and notes the Python modules of their classes."""

    def __init__(self) -> None:
        super().__init__(self)
        self.hash = hashlib.sha256()
        self.modules: set[str] = set()
        self._tensors: dict[int, tuple[int, bytes]] = {}  #: By id().
        self._kept: list[Any] = []  #: Alive, so that no other object gets the id.

    def write(self, block: Any) -> None:
        self.hash.update(block)

    def persistent_id(self, value: Any) -> Any:
        import torch
        for of_module in (value, type(value)):
            if isinstance(name := getattr(of_module, "__module__", None), str):
                self.modules.add(name)
        if isinstance(value, type):
            self.modules.update(base.__module__ for base in value.__mro__)
        if not isinstance(value, torch.Tensor):
            return None
        if id(value) not in self._tensors:
            elements = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            self._tensors[id(value)] = len(self._tensors), hashlib.sha256(elements).digest()
            self._kept.append(value)
        return *self._tensors[id(value)], type(value), value.dtype, value.device, value.shape, value.requires_grad


def _files(names: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """The files of these Python modules and of those that their globals name, and so on, with sizes and times."""
    seen, found = set(names), list(names)
    while found:
        name = found.pop()
        module = sys.modules.get(name)
        if name.partition(".")[0] in _VERSIONED or module is None:
            continue
        file = getattr(module, "__file__", None)
        if file is None and not hasattr(module, "__path__"):
            raise FileNotFoundError(name)
        if file is not None:
            status = os.stat(file)
            yield file, status.st_size, status.st_mtime_ns
        for value in list(vars(module).values()):
            other = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(other, str) and other not in seen:
                seen.add(other)
                found.append(other)

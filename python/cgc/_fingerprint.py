"""What a module computes, as far as its classes, attributes and weights say, in a hash that other processes find too."""
from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy

#: Their versions stand for their code.
_VERSIONED = {"torch", "numpy", "cgc", *sys.stdlib_module_names}


def of(model: Any, *others: Any) -> str | None:
    """A hash of the weights and attributes of a module, of torch's settings, of `others`, and of the Python modules that its
    code can name: their files, functions, classes and plain globals. None if the module cannot be pickled.

    Two modules with one hash compute the same, unless they read something else that the process has set: whoever takes a
    result for a hash compares it with the module's own.
    """
    import torch
    settings = (sys.version, torch.__version__, numpy.__version__, torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
                torch.get_float32_matmul_precision(), torch.backends.mkldnn.enabled, torch.backends.cuda.flash_sdp_enabled(),
                torch.backends.cuda.mem_efficient_sdp_enabled(), torch.backends.cuda.math_sdp_enabled())
    content = _Content()
    pickler = _Pickler(content)
    try:
        pickler.dump((model, settings, others))
        for fact in _sources(pickler.modules):
            content.write(repr(fact).encode(errors="surrogatepass"))
    except Exception:  # Whatever a class raises that cannot be pickled.
        return None
    return content.hash.hexdigest()


class _Content:
    """A file that hashes what is written to it."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, block: Any) -> None:
        self.hash.update(block)


class _Pickler(pickle.Pickler):
    """Has hashes in place of the elements of tensors, and notes the Python modules of the classes of objects."""

    def __init__(self, content: _Content) -> None:
        super().__init__(content)
        self.modules: set[str] = set()
        self._tensors: dict[int, tuple[int, bytes]] = {}  #: By id().
        self._kept: list[Any] = []  #: Alive, so that no other object gets the id.

    def persistent_id(self, value: Any) -> Any:
        import torch
        for of_module in (value, type(value)):
            if isinstance(name := getattr(of_module, "__module__", None), str):
                self.modules.add(name)
        if isinstance(value, type):
            self.modules.update(base.__module__ for base in value.__mro__)
        if type(value) in (set, frozenset):  # In another order in each process.
            return type(value).__name__, sorted(map(repr, value))
        if not isinstance(value, torch.Tensor):
            return None
        if id(value) not in self._tensors:
            elements = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            self._tensors[id(value)] = len(self._tensors), hashlib.sha256(elements).digest()
            self._kept.append(value)
        return *self._tensors[id(value)], type(value), value.dtype, value.device, value.shape, value.requires_grad


def _sources(names: Iterable[str]) -> Iterator[Any]:
    """What is to be known of the code of these Python modules and of those that their globals name, and so on."""
    seen, found = set(names), sorted(names, reverse=True)
    while found:
        name = found.pop()
        module = sys.modules.get(name)
        if name.partition(".")[0] in _VERSIONED or module is None:
            continue
        if (file := getattr(module, "__file__", None)) is not None:
            status = os.stat(file)
            yield file, status.st_size, status.st_mtime_ns
        for key, value in sorted(vars(module).items()):
            if not key.startswith("__"):
                yield name, key, _facts(value)
            named = value if isinstance(value, (type, FunctionType)) else type(value)
            other = value.__name__ if isinstance(value, ModuleType) else named.__module__
            if isinstance(other, str) and other not in seen:
                seen.add(other)
                found.append(other)


def _facts(value: Any, depth: int = 0) -> Any:
    """What another process finds, too, of a global or of an attribute of a class: its value if it is plain, its code."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if depth > 3:
        return None
    if type(value) in (tuple, list):
        return [_facts(each, depth + 1) for each in value]
    if type(value) in (set, frozenset):
        return sorted(repr(_facts(each, depth + 1)) for each in value)
    if type(value) is dict:
        return [(repr(_facts(key, depth + 1)), _facts(each, depth + 1)) for key, each in list(value.items())]
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, [_facts(each, depth) for each in value.co_consts]
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value.fget if isinstance(value, property) else value
    if isinstance(function, FunctionType):
        return _facts(function.__code__, depth), _facts(function.__defaults__, depth)
    if isinstance(value, type) and value.__module__.partition(".")[0] not in _VERSIONED:
        return [(key, _facts(each, depth + 1)) for key, each in sorted(vars(value).items()) if key != "__doc__"]
    return None

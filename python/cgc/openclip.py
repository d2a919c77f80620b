"""Models of open_clip: accelerate() swaps the towers of a live one for compiled ones; export() writes a model folder."""
from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from . import _compile
from ._errors import UsageError
from ._module import CompiledModule
from ._openclip_export import export

if TYPE_CHECKING:
    import torch

__all__ = ["Accelerated", "accelerate", "export"]
METHODS = ("encode_image", "encode_text")


def accelerate(model: torch.nn.Module, **settings: Any) -> Accelerated:
    """Lets `model.encode_image` and `model.encode_text`, which forward() calls too, run as compiled modules.

    model: a module in evaluation mode with these methods, as those of open_clip.
    settings: those of compile() without `output`, such as precision="fp16".
    While gradients are enabled or the model is in training mode, the methods are the model's own.
    Returns a context manager; its restore(), or the end of its `with` block, gives the model its own methods back.
    """
    _compile.import_torch()
    if missing := [method for method in METHODS if not callable(getattr(model, method, None))]:
        raise UsageError(f"{type(model).__name__} has no method '{missing[0]}'; give a CLIP model, or call cgc.compile()")
    if taken := [method for method in METHODS if method in vars(model)]:
        raise UsageError(f"'{taken[0]}' of the model is accelerated or replaced already; restore() it first")
    return Accelerated(model, settings)


class Accelerated:
    """The compiled towers of a model: what accelerate() gives."""

    def __init__(self, model: torch.nn.Module, settings: dict[str, Any]):
        self._model = model
        self.encode_image, self.encode_text = (_compile.compile(_module_of(model, method), **settings) for method in METHODS)
        self._switches = {method: _Switch(model, getattr(model, method), getattr(self, method)) for method in METHODS}
        vars(model).update(self._switches)

    def restore(self) -> None:
        """Gives the model its own methods back. Does nothing the second time."""
        for method, switch in self._switches.items():
            if vars(self._model).get(method) is switch:
                del vars(self._model)[method]

    def __enter__(self) -> Accelerated:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def __repr__(self) -> str:
        return f"<cgc.openclip.Accelerated of {type(self._model).__name__}: {self.encode_image!r}, {self.encode_text!r}>"


def _module_of(model: torch.nn.Module, method: str) -> torch.nn.Module:
    """A module whose forward() is the method."""
    import torch
    module = torch.nn.Module()
    module.model = model
    own = getattr(model, method)

    def forward(*arguments: Any, **named: Any) -> Any:
        return own(*arguments, **named)

    forward.__signature__ = inspect.signature(own)  # type: ignore[attr-defined]
    vars(module)["forward"] = forward
    module.training = model.training  # eval() would change the model.
    return module


class _Switch:
    """A method of the model that runs as a compiled module where that computes the same."""

    def __init__(self, model: torch.nn.Module, own: Any, compiled: CompiledModule):
        functools.update_wrapper(self, own)
        self._model, self._own, self._compiled = model, own, compiled

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        import torch
        run = self._own if self._model.training or torch.is_grad_enabled() else self._compiled
        return run(*arguments, **named)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UsageError("an accelerated model cannot be copied or pickled: a copy would run this one; restore() it first")

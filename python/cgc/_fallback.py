"""What runs a module that cannot be compiled as a whole: torch, with submodules that are compiled."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class BySubmodule:
    """A copy of a module that shares its parameters and buffers, and whose children with parameters are compiled.

    A container that has no forward(), such as a ModuleList, is copied likewise. A child that is used twice is compiled
    once. One whose attributes change, or those of a module in it, runs with torch from then on: its program has the old ones.
    """

    def __init__(self, module: torch.nn.Module, path: str, compile_child: Callable[[torch.nn.Module, str], Any]):
        self.children: dict[str, Any] = {}  #: What `compile_child` made, by the path of the child.
        self._compile_child = compile_child
        self._copies: dict[torch.nn.Module, torch.nn.Module] = {}
        self._module = self._copy(module, path)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._module(*arguments, **named)

    def _copy(self, module: torch.nn.Module, path: str) -> torch.nn.Module:
        return _copy(module, lambda name, child: self._copy_of_child(child, f"{path}.{name}"))

    def _copy_of_child(self, child: torch.nn.Module, path: str) -> torch.nn.Module:
        import torch
        if child not in self._copies:
            if next(child.parameters(), None) is None or isinstance(child, torch.jit.ScriptModule):
                self._copies[child] = child
            elif type(child).forward is torch.nn.Module.forward:
                self._copies[child] = self._copy(child, path)
            else:
                # A program has what the hooks compute.
                own = {name: vars(child)[name] for name in ("forward", "_forward_hooks", "_forward_pre_hooks") if name in vars(child)}
                compiled = {name: type(hooks)() for name, hooks in own.items() if name != "forward"}
                compiled["forward"] = self.children[path] = self._compile_child(child, path)

                def run_with_torch() -> None:
                    vars(made).pop("forward", None)
                    vars(made).update(own)

                self._copies[child] = made = _watched(child, run_with_torch)
                vars(made).update(compiled)
        return self._copies[child]


def _copy(module: torch.nn.Module, copy_child: Callable[[str, torch.nn.Module], torch.nn.Module]) -> torch.nn.Module:
    made = copy.copy(module)
    vars(made)["_modules"] = type(module._modules)(
        (name, child if child is None else copy_child(name, child)) for name, child in module._modules.items())
    return made


def _watched(module: torch.nn.Module, changed: Callable[[], Any]) -> torch.nn.Module:
    """A copy of the module and of those in it. To assign one of its attributes calls `changed`, and assigns it to the module,
    too."""
    made = _copy(module, lambda _, child: _watched(child, changed))

    def assign(self: torch.nn.Module, name: str, value: Any) -> None:
        changed()
        setattr(module, name, value)
        super(own, self).__setattr__(name, value)

    own = type(type(module).__name__, (type(module),), {"__setattr__": assign, "__module__": type(module).__module__})
    made.__class__ = own
    return made

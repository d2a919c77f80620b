"""Files of a torch module for the program cgc: exported programs, or TorchScript."""
from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ._errors import UsageError


def positional(model: Any, method: str) -> list[str]:
    """The names of the parameters that may be given by position."""
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return [argument.name for argument in getattr(model, method).schema.arguments[1:]]
    return [name for name, parameter in inspect.signature(getattr(model, method)).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]


def save_programs(model: Any, inputs: dict[str, Any], entries: Sequence[str], batch: Sequence[int], folder: Path) -> list[Path]:
    """Exports each entry by torch.export to a file with its name. Dimension 0 of all inputs is dynamic if `batch` has other
    values than the examples."""
    import torch
    sizes = {tensor.shape[0] for tensor in inputs.values() if tensor.dim()}
    is_dynamic = bool(batch) and sizes != set(batch)
    paths = []
    for entry, names in _given_of_each(model, entries, inputs).items():
        program = export_program(model, entry, {name: inputs[name] for name in names}, max(batch) if is_dynamic else None)
        paths.append(folder / f"{entry}.pt2")
        torch.export.save(program, paths[-1])
    return paths


def export_program(model: Any, entry: str, inputs: dict[str, Any], max_batch: int | None,
                   constants: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The torch.export.ExportedProgram of a method with these inputs and constants. With `max_batch`, dimension 0 of all
    inputs is dynamic: up to this value, or more. UsageError if torch cannot export it."""
    import torch
    shapes = None
    if max_batch is not None:
        # An example of one row would fix the dimension, and torch would take one of at most 2 for one of 2.
        inputs = {name: torch.cat([tensor, tensor]) if tensor.dim() and len(tensor) == 1 else tensor
                  for name, tensor in inputs.items()}
        sizes = [tensor.shape[0] for tensor in inputs.values() if tensor.dim()]
        rows = torch.export.Dim("batch", min=1, max=max(64, 2 * max(max_batch, *sizes)))
        shapes = {name: {0: rows} if tensor.dim() else None for name, tensor in inputs.items()}
    with _as(model, "forward", entry, list(inputs), constants), _failures("torch.export cannot export the model", _last_lines):
        with torch.no_grad():
            return torch.export.export(model, (), inputs, dynamic_shapes=shapes, strict=False)


def torch_script(model: Any, inputs: dict[str, Any], entries: Sequence[str] | None, exporter: str) -> Any:
    """The model as a torch.jit.ScriptModule: traced or, if `exporter` is "script", its code."""
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return model
    given = _given_of_each(model, entries or (), inputs)
    with contextlib.ExitStack() as stack:
        for entry, names in given.items():
            # torch.jit.trace_module passes examples by position.
            if exporter == "trace" and names != positional(model, entry)[:len(names)]:
                stack.enter_context(_as(model, entry, entry, names))
        with _failures(f"torch.jit cannot {exporter} the model", str):
            if exporter == "script":
                return torch.jit.script(model)
            examples = {entry: tuple(inputs[name] for name in names) for entry, names in given.items()}
            with torch.no_grad():
                return torch.jit.trace_module(model, examples, check_trace=False, strict=False)


def _given_of_each(model: Any, entries: Sequence[str], inputs: dict[str, Any]) -> dict[str, list[str]]:
    """The names of the inputs that each entry takes, in its order."""
    given = {entry: _given(model, entry, inputs) for entry in entries}
    if unknown := [name for name in inputs if not any(name in names for names in given.values())]:
        raise UsageError(f"{' and '.join(f'{entry}()' for entry in given)} of the model take{'s' * (len(given) == 1)} no "
                         f"input '{unknown[0]}'")
    return given


def _given(model: Any, entry: str, inputs: dict[str, Any]) -> list[str]:
    if not hasattr(model, entry):
        raise UsageError(f"the model has no method '{entry}'")
    parameters = inspect.signature(getattr(model, entry)).parameters
    names = [name for name in parameters if name in inputs]
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values()):
        names += [name for name in inputs if name not in names]
    missing = [name for name, parameter in parameters.items()
               if name not in inputs and parameter.default is parameter.empty
               and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
    if missing:
        raise UsageError(f"{entry}() of the model needs '{missing[0]}', of which no example is given")
    return names


@contextlib.contextmanager
def _failures(what: str, describe: Callable[[Exception], str]) -> Iterator[None]:
    """Raises a UsageError in place of every exception, of the model's own code, too."""
    try:
        yield
    except Exception as error:
        raise UsageError(f"{what}: {type(error).__name__}: {describe(error)[:1000]}") from error


def _last_lines(error: Exception) -> str:
    """The message and the model's own line, which is the last outside of torch."""
    import traceback

    import torch
    folder = str(Path(torch.__file__).parent)
    own = [frame for frame in traceback.extract_tb(error.__traceback__)
           if not frame.filename.startswith((folder, "<", __file__))]
    where = f" (at {own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{str(error).strip()[:900]}{where}"


@contextlib.contextmanager
def _as(model: Any, name: str, entry: str, parameters: list[str],
        constants: Mapping[str, Any] = MappingProxyType({})) -> Iterator[None]:
    """Makes the method `name` of the model its method `entry` with these parameters, and no others, for the context.
    Parameters in `constants` have these values."""
    method, own = getattr(model, entry), getattr(model, name)

    def call(*arguments: Any, **named: Any) -> Any:
        with _attribute(model, name, own):  # The method may call it.
            return method(**dict(zip(parameters, arguments)), **named, **constants)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD) for parameter in parameters])
    with _attribute(model, name, call):
        yield


@contextlib.contextmanager
def _attribute(model: Any, name: str, value: Any) -> Iterator[None]:
    """Sets an attribute of the object itself, not of its class, for the context."""
    had, before = name in vars(model), vars(model).get(name)
    vars(model)[name] = value
    try:
        yield
    finally:
        if had:
            vars(model)[name] = before
        else:
            del vars(model)[name]

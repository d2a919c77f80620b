"""compile(): makes a plan of a torch module with the program cgc."""
from __future__ import annotations

import operator
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from . import _cache, _export, _program
from ._errors import DeviceError, UsageError
from ._module import CompiledModule
from ._plan import short_dtype

if TYPE_CHECKING:
    import torch

@overload
def compile(model: torch.nn.Module, inputs: Any, *, output: Union[str, os.PathLike[str]],
            batch: int | Sequence[int] | None = None, entries: str | Sequence[str] | None = None,
            precision: str | None = None, target: str | None = None,
            exporter: Literal["export", "trace", "script"] = "export", options: Sequence[str] = ()) -> Path: ...
@overload
def compile(model: torch.nn.Module, inputs: Any = None, *, batch: int | Sequence[int] | None = None,
            precision: str | None = None, target: str | None = None, options: Sequence[str] = (),
            shapes: Literal["auto", "wait", "error"] = "auto", limit: int = 16,
            executor: str = "graph", fallback: Literal["eager"] | None = None) -> CompiledModule: ...
def compile(model: torch.nn.Module,
            inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor | None = None, *,
            output: Union[str, os.PathLike[str], None] = None, batch: int | Sequence[int] | None = None,
            entries: str | Sequence[str] | None = None, precision: str | None = None, target: str | None = None,
            exporter: Literal["export", "trace", "script"] = "export", options: Sequence[str] = (),
            shapes: Literal["auto", "wait", "error"] = "auto", limit: int = 16, executor: str = "graph",
            fallback: Literal["eager"] | None = None) -> Path | CompiledModule:
    """Compiles a torch module: into a module that is called like it or, with `output`, into a plan file.

    model: a module in evaluation mode, or, for a file, one that torch.jit made.
    inputs: example inputs, tensors or NumPy arrays: a dict by the names of the methods' parameters, or the arguments of
        forward(). A parameter without an example keeps its default value. Without `output` they may be left out: nothing
        is compiled before the first call.
    batch: the value or values of dimension 0 of all inputs to compile for [that of the examples].
    precision: "fp16", "bf16", "fp32" or "tf32" [the model's own].
    target: "cuda" or "cpu" [cuda; without `output`, cpu where torch finds no GPU].
    options: further options of `cgc compile`, such as ["--require-native"].

    For a file, which is returned as its path:
    entries: the method or methods to export and compile, each with those of its parameters that `inputs` has [forward].
        Of a module that torch.jit made: [all whose inputs are given].
    exporter: "export": torch.export, of torch 2.9 or later. "trace" or "script": torch.jit, of the torch that this package
        was built for. A module that torch.jit made is compiled as it is.

    For a module (cgc.CompiledModule):
    shapes: what a call with a batch or with inputs does that are not compiled. "auto": the model itself, or a larger
        bucket, answers while a thread compiles. "wait": it compiles. "error": it raises UsageError.
    limit: the number of batches to compile for each form of inputs with shapes="auto".
    executor: that of load().
    fallback: "eager": where the model cannot be exported or compiled for the inputs of a call, torch runs it, and its
        submodules with parameters are compiled, each by itself, and so on for each of those. What stays with torch is said
        once. [None: the whole model stays with torch or, unless shapes="auto", the call raises the error]

    Raises the error of the program cgc, which compiles; DeviceError if torch is missing; UsageError if torch cannot export
    the model.
    """
    torch = import_torch()
    if exporter not in ("export", "trace", "script"):
        raise UsageError(f"exporter is {exporter!r}; give 'export', 'trace' or 'script'")
    check_model(model)
    if isinstance(entries, str):
        entries = [entries]
    batch = batches_of(batch)
    is_scripted = isinstance(model, torch.jit.ScriptModule)
    if output is None:
        if is_scripted or entries or exporter != "export":
            raise UsageError("a compiled module calls forward() of a module that torch.export can read; give output=, for a "
                             "plan file, with entries, with exporter and for a module that torch.jit made")
        target = target or ("cuda" if torch.cuda.is_available() else "cpu")
        module = CompiledModule(model, precision=precision, target=target, shapes=shapes, limit=limit, executor=executor,
                                options=options, fallback=fallback)
        if inputs is not None:
            given = {name: tensor(name, value) for name, value in by_name(model, inputs).items()}
            module.compile(given, batch)
        elif batch:
            raise UsageError("batch needs inputs: examples of what forward() takes; without them, calls decide")
        return module
    if inputs is None:
        raise UsageError("a plan file needs inputs: examples of what the methods take")
    target = target or "cuda"
    if not is_scripted and entries is None:
        entries = ["forward"]
    named = {name: tensor(name, value) for name, value in by_name(model, inputs).items()}
    output = Path(output)
    command = ["--target", target, "--quiet", *input_options(named)]
    for option, values in (("--batch", batch), ("--entry", entries), ("--precision", precision and [precision])):
        if values:
            command += [option, ",".join(map(str, values))]
    command += options
    with tempfile.TemporaryDirectory(prefix="cgc-compile-") as folder:
        if is_scripted or exporter != "export":
            path = Path(folder, "model.pt")
            _export.torch_script(model, named, entries, exporter).save(str(path))
            _program.run(["compile", str(path), "-o", str(output), *command])
        else:
            paths = _export.save_programs(model, named, entries or (), batch, Path(folder))
            _cache.compile_plan(paths, [_cache.digest(path) for path in paths], output, command)
    return output


def import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise DeviceError("torch, which exports the model, is missing; pip install torch") from None
    return torch


def check_model(model: Any, is_training: bool = False) -> None:
    """UsageError for what cannot be exported, and for a module in the other mode."""
    import torch
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"the model is {type(model).__name__}; give a torch.nn.Module")
    if hasattr(model, "_orig_mod"):
        raise UsageError("the model is what torch.compile returned, which cannot be exported; give the module that it "
                         "was made of (model._orig_mod)")
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise UsageError(f"the model is {type(model).__name__}, which spreads a batch over devices; give the module in it "
                         "(model.module)")
    if model.training and not is_training:
        raise UsageError("the model is in training mode; call model.eval() first")
    if is_training and not model.training:
        raise UsageError("the model is in evaluation mode; call model.train(), and eval() on the parts that stay so")


def batches_of(batch: int | Sequence[int] | None) -> list[int]:
    given = [] if batch is None else batch if isinstance(batch, Sequence) else [batch]
    return [operator.index(each) for each in given]


def input_options(tensors: Mapping[str, Any]) -> list[str]:
    """The options --input of the program."""
    options = []
    for name, given in tensors.items():
        options += ["--input", f"{name}={short_dtype(name, given)}[{','.join(map(str, given.shape))}]"]
    return options


def tensor(name: str, value: Any) -> Any:
    """The tensor of an example input. UsageError if torch makes none of it."""
    import torch
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"input '{name}' is {type(value).__name__}, of which torch makes no tensor ({error}); give a "
                         "tensor or a NumPy array") from None


def by_name(model: Any, inputs: Any) -> dict[str, Any]:
    """Example inputs by the names of forward()'s parameters."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    arguments = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = _export.positional(model, "forward")
    if len(arguments) > len(names):
        raise UsageError(f"forward() of the model has {len(names)} positional parameters, and {len(arguments)} inputs were "
                         "given; give a dict by their names")
    return dict(zip(names, arguments))

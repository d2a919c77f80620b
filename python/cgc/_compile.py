"""compile(): makes a plan of a torch module with the program cgc."""
from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._errors import DeviceError, UsageError, error_of

if TYPE_CHECKING:
    import torch

#: The environment variable that names the program cgc.
PROGRAM_VARIABLE = "CGC_PROGRAM"

_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int64": "i64", "int32": "i32",
           "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool"}


def compile(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor, *,
            output: Union[str, os.PathLike[str]], batch: Sequence[int] | None = None,
            entries: Sequence[str] | None = None, precision: str | None = None, target: str = "cuda",
            script: bool = False, options: Sequence[str] = ()) -> Path:
    """Compiles a torch module into the plan file `output`, and returns its path.

    model: a module in evaluation mode, or one that torch.jit made.
    inputs: example inputs: a dict by the names of the methods' parameters, or the arguments of forward().
    batch: the values of dimension 0 of all inputs to compile for [that of the examples].
    entries: the methods to trace and compile, each with those of its parameters that `inputs` has [forward]. Of a
        module that torch.jit made: [all whose inputs are given].
    precision: "fp16", "bf16", "fp32" or "tf32" [the model's own].
    target: "cuda" or "cpu".
    script: compile the module's code with torch.jit.script instead of tracing it.
    options: further options of `cgc compile`, such as ["--require-native"].

    Runs `cgc compile`: the program that CGC_PROGRAM names, or cgc in this package's folder or in PATH. Raises the error
    of the program; DeviceError if torch or the program is missing.
    """
    try:
        import torch
    except ImportError:
        raise DeviceError("cgc.compile needs torch, which traces the model; install torch 2.11.0") from None
    program = find_program()
    if not isinstance(model, torch.jit.ScriptModule) and entries is None:
        entries = ["forward"]
    named = _by_name(model, inputs)
    with tempfile.TemporaryDirectory(prefix="cgc-compile-") as folder:
        path = Path(folder, "model.pt")
        _exported(model, named, entries, script).save(str(path))
        command = [program, "compile", str(path), "-o", os.fspath(output), "--target", target, "--quiet"]
        for name, tensor in named.items():
            command += ["--input", f"{name}={_dtype(name, tensor)}[{','.join(map(str, tensor.shape))}]"]
        for option, values in (("--batch", batch), ("--entry", entries), ("--precision", precision and [precision])):
            if values:
                command += [option, ",".join(map(str, values))]
        environment = {"CGC_LIBTORCH": str(Path(torch.__file__).parent), **os.environ}
        done = subprocess.run([*command, *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace")
    if done.returncode:
        raise error_of(done.returncode, done.stderr.strip() or f"{program} ended with status {done.returncode}")
    return Path(output)


def find_program() -> str:
    """The path of the program cgc. DeviceError if there is none."""
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise DeviceError(f"{PROGRAM_VARIABLE} is {named!r}, which is no program; set it to the path of cgc")
        return named
    found = shutil.which("cgc", path=os.path.dirname(os.path.abspath(__file__))) or shutil.which("cgc")
    if not found:
        raise DeviceError("the program cgc, which compiles models, is neither in the package nor in PATH; build and "
                          f"install cgc, and set {PROGRAM_VARIABLE} to its path")
    return found


def _by_name(model: Any, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    arguments = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = _parameters(model, "forward")
    if len(arguments) > len(names):
        raise UsageError(f"forward() of the model has {len(names)} parameters, and {len(arguments)} inputs were given")
    return dict(zip(names, arguments))


def _parameters(model: Any, method: str) -> list[str]:
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return [argument.name for argument in getattr(model, method).schema.arguments[1:]]
    return list(inspect.signature(getattr(model, method)).parameters)


def _exported(model: Any, inputs: dict[str, Any], entries: Sequence[str] | None, script: bool) -> Any:
    """The model as a torch.jit.ScriptModule."""
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return model
    if script:
        return torch.jit.script(model)
    examples = {}
    for entry in entries or ():
        if not hasattr(model, entry):
            raise UsageError(f"the model has no method '{entry}'")
        examples[entry] = tuple(inputs[name] for name in _parameters(model, entry) if name in inputs)
    with torch.no_grad():
        return torch.jit.trace_module(model, examples, check_trace=False, strict=False)


def _dtype(name: str, tensor: Any) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise UsageError(f"input '{name}' is {dtype}, which no plan has; give one of {', '.join(_DTYPES)}")
    return _DTYPES[dtype]

"""compile(): makes a plan of a torch module with the program cgc."""
from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._errors import DeviceError, UsageError, error_of
from ._libraries import TORCH_VERSION

if TYPE_CHECKING:
    import torch

#: The environment variable that names the program cgc.
PROGRAM_VARIABLE = "CGC_PROGRAM"

_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int64": "i64", "int32": "i32",
           "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool"}


def compile(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor, *,
            output: Union[str, os.PathLike[str]], batch: int | Sequence[int] | None = None,
            entries: str | Sequence[str] | None = None, precision: str | None = None, target: str = "cuda",
            script: bool = False, options: Sequence[str] = ()) -> Path:
    """Compiles a torch module into the plan file `output`, and returns its path.

    model: a module in evaluation mode, or one that torch.jit made.
    inputs: example inputs, tensors or NumPy arrays: a dict by the names of the methods' parameters, or the arguments of
        forward(). A parameter without an example keeps its default value.
    batch: the value or values of dimension 0 of all inputs to compile for [that of the examples].
    entries: the method or methods to trace and compile, each with those of its parameters that `inputs` has [forward].
        Of a module that torch.jit made: [all whose inputs are given].
    precision: "fp16", "bf16", "fp32" or "tf32" [the model's own].
    target: "cuda" or "cpu".
    script: compile the module's code with torch.jit.script instead of tracing it.
    options: further options of `cgc compile`, such as ["--require-native"].

    Runs `cgc compile`: the program that CGC_PROGRAM names, or cgc in this package's folder or in PATH. Raises the error
    of the program; DeviceError if torch or the program is missing; UsageError if torch cannot export the model.
    """
    try:
        import torch
    except ImportError:
        raise DeviceError("cgc.compile needs torch, which traces the model; pip install "
                          f"torch=={TORCH_VERSION}") from None
    program = find_program()
    _check_model(model)
    if isinstance(entries, str):
        entries = [entries]
    if isinstance(batch, int):
        batch = [batch]
    if not isinstance(model, torch.jit.ScriptModule) and entries is None:
        entries = ["forward"]
    named = {name: _tensor(name, value) for name, value in _by_name(model, inputs).items()}
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


def _check_model(model: Any) -> None:
    import torch
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"the model is {type(model).__name__}; give a torch.nn.Module")
    if hasattr(model, "_orig_mod"):
        raise UsageError("the model is what torch.compile returned, which cannot be exported; give the module that it "
                         "was made of (model._orig_mod)")
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise UsageError(f"the model is {type(model).__name__}, which spreads a batch over devices; give the module in it "
                         "(model.module)")


def _tensor(name: str, value: Any) -> Any:
    import torch
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"input '{name}' is {type(value).__name__}, of which torch makes no tensor ({error}); give a "
                         "tensor or a NumPy array") from None


def _by_name(model: Any, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    arguments = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    names = _positional(model, "forward")
    if len(arguments) > len(names):
        raise UsageError(f"forward() of the model has {len(names)} positional parameters, and {len(arguments)} inputs were "
                         "given; give a dict by their names")
    return dict(zip(names, arguments))


def _positional(model: Any, method: str) -> list[str]:
    """The names of the parameters that may be given by position."""
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return [argument.name for argument in getattr(model, method).schema.arguments[1:]]
    return [name for name, parameter in inspect.signature(getattr(model, method)).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]


def _exported(model: Any, inputs: dict[str, Any], entries: Sequence[str] | None, script: bool) -> Any:
    """The model as a torch.jit.ScriptModule."""
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return model
    given = {entry: _given(model, entry, inputs) for entry in entries or ()}
    if unknown := [name for name in inputs if not any(name in names for names in given.values())]:
        raise UsageError(f"{' and '.join(f'{entry}()' for entry in given)} of the model take{'s' * (len(given) == 1)} no "
                         f"input '{unknown[0]}'")
    with contextlib.ExitStack() as stack:
        for entry, names in given.items():
            # torch.jit.trace_module passes examples by position.
            if not script and names != _positional(model, entry)[:len(names)]:
                stack.enter_context(_taking(model, entry, names))
        try:
            if script:
                return torch.jit.script(model)
            examples = {entry: tuple(inputs[name] for name in names) for entry, names in given.items()}
            with torch.no_grad():
                return torch.jit.trace_module(model, examples, check_trace=False, strict=False)
        except Exception as error:  # Of the model's own code, too.
            raise UsageError(f"torch.jit cannot {'script' if script else 'trace'} the model: {type(error).__name__}: "
                             f"{str(error)[:500]}") from error


def _given(model: Any, entry: str, inputs: dict[str, Any]) -> list[str]:
    """The names of the inputs that the method takes, in its order."""
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
def _taking(model: Any, entry: str, names: list[str]) -> Iterator[None]:
    """Makes the method `entry` of the model take the parameters `names` by position, and no others, for the context."""
    method = getattr(model, entry)

    def call(*arguments: Any) -> Any:
        return method(**dict(zip(names, arguments)))

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    own = vars(model).get(entry)
    vars(model)[entry] = call
    try:
        yield
    finally:
        if own is None:
            del vars(model)[entry]
        else:
            vars(model)[entry] = own


def _dtype(name: str, tensor: Any) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise UsageError(f"input '{name}' is {dtype}, which no plan has; give one of {', '.join(_DTYPES)}")
    return _DTYPES[dtype]

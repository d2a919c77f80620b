"""CompiledModule: a torch module whose calls run plans, one for each form of its inputs."""
from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import shutil
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _cache, _export
from ._errors import Error, UsageError
from ._plan import SHORT_DTYPES
from ._session import Session, load

if TYPE_CHECKING:
    import torch

#: What a call with inputs or a batch does that are not compiled.
SHAPES = ("auto", "wait", "error")


@dataclasses.dataclass
class _Program:
    """What one form of inputs runs."""

    inputs: dict[str, tuple[str, list[int | str]]]  #: Dtype and sizes of each, "N" for a dynamic batch.
    path: Path  #: The exported program.
    digest: str  #: Of its content.
    most: int  #: The largest batch that it is exported for.
    outputs: _export.Outputs
    device: int | None  #: The GPU of the inputs, if they are on one.
    batches: list[int] = dataclasses.field(default_factory=list)
    is_chosen: bool = False  #: Whether compile() was given the batches: others run in them.
    session: Session | None = None
    plan: Path | None = None
    key: str = ""  #: Of the plan in the cache.
    pending: Future[None] | None = None
    failed: set[int] = dataclasses.field(default_factory=set)  #: Batches that cgc cannot compile.
    seconds: float = 0.0  #: Of compilation.

    @property
    def takes_rows(self) -> bool:
        """Whether the batch is a dimension of every input."""
        return all("N" in sizes for _, sizes in self.inputs.values())

    def takes(self, batch: int) -> bool:
        """Whether its session runs this batch, in whatever bucket."""
        return self.session is not None and (batch in self.batches or self.session.entries["forward"].any_batch)

    def describe(self) -> str:
        return ", ".join(f"{name}={dtype}[{', '.join(map(str, sizes))}]" for name, (dtype, sizes) in self.inputs.items())


class CompiledModule:
    """A torch module in evaluation mode, compiled for the inputs of its calls: what compile() gives without `output`.

    A call takes the arguments of forward() and returns what it returns, with new tensors on the device of the first input
    and without gradients. Any thread may call it; nothing else may call the model while it is exported, in the first call
    with inputs of a new form. The weights are those of that call: after a change, a
    call warns, and refresh() takes the new ones.
    """

    def __init__(self, model: torch.nn.Module, *, precision: str | None, target: str, shapes: str, limit: int,
                 executor: str, options: Sequence[str]):
        for name, value, choices in (("shapes", shapes, SHAPES), ("target", target, ("cuda", "cpu")),
                                     ("precision", precision, (None, "fp16", "bf16", "fp32", "tf32")),
                                     ("executor", executor, ("graph", "stream", "reference"))):
            if value not in choices:
                raise UsageError(f"{name} is {value!r}; give one of {', '.join(map(str, choices))}")
        if limit < 1:
            raise UsageError(f"limit is {limit}; it must be at least 1")
        self._model = model
        self._signature = inspect.signature(model.forward)  # torch.export sees another one.
        self._command = ["--target", target, "--quiet", *(["--precision", precision] if precision else []), *options]
        self._shapes, self._limit, self._executor = shapes, limit, executor
        self._process = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="cgc-module-"))
        weakref.finalize(self, _remove, self._folder, self._process)
        self._programs: dict[Any, _Program] = {}
        self._refused: set[Any] = set()  # Forms that stay with torch.
        self._is_dynamic = True  # Until torch cannot export the model with a dynamic batch.
        self._ahead: list[tuple[Mapping[str, Any], Sequence[int]]] = []  # What compile() was given.
        self._weights: list[Any] = []  # Of the programs, and their versions.
        self._versions: list[int] = []
        self._compile_lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "cgc-compile")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if os.getpid() != self._process:
            raise UsageError("the module was compiled before this process was forked; compile it in each process")
        if self._versions != [weight._version for weight in self._weights]:
            self._versions = [weight._version for weight in self._weights]
            warnings.warn(f"the weights of {type(self._model).__name__} have changed since it was compiled, and its plans have "
                          "the old ones; call refresh()", stacklevel=2)
        if self._shapes != "auto":
            tensors, constants = self._bind(arguments, named)
            if (batch := _batch_of(tensors)) == 0:
                return self._answer(arguments, named)
            program = self._program_of(tensors, constants, batch)
            if batch not in program.batches and not (program.is_chosen and program.takes(batch)):
                if self._shapes == "error":
                    raise UsageError(f"the model is not compiled for a batch of {batch}, but for {program.batches}; give "
                                     "compile() this batch, or shapes='auto'")
                self._compile(program, [batch])
            return self._run(program, tensors)
        form = None
        try:
            tensors, constants = self._bind(arguments, named)
            batch, form = _batch_of(tensors), _form(tensors, constants, True)
            if batch and form not in self._refused:
                program = self._program_of(tensors, constants, batch)
                if batch not in program.batches and not (program.is_chosen and program.takes(batch)):
                    self._compile_later(program, batch)
                if program.takes(batch):
                    return self._run(program, tensors)
        except Error as error:  # Nothing has run.
            if form not in self._refused:
                self._refused.add(form)
                self._warn(error)
        return self._answer(arguments, named)

    def compile(self, inputs: Mapping[str, Any], batch: Sequence[int]) -> None:
        """Compiles now, for inputs of this form, by the names of forward()'s parameters, and these batches [that of the inputs]."""
        try:
            tensors, constants = self._bind((), inputs)
        except TypeError as error:
            raise UsageError(f"the inputs do not fit forward(): {error}") from None
        given = _batch_of(tensors)
        batches = sorted(set(batch)) or [given]
        if batches[0] < 1:
            raise UsageError(f"batch is {batches[0]}; it must be at least 1")
        program = self._program_of(tensors, constants, batches[-1], is_ahead=True)
        if batches != [given] and not any("N" in sizes for _, sizes in program.inputs.values()):
            raise UsageError(f"the model fixes its batch, and the inputs have one of {given}; leave batch out")
        self._compile(program, batches)
        program.is_chosen = True
        self._ahead.append((inputs, batch))

    def refresh(self) -> None:
        """Takes the present weights of the model: compiles for what compile() was given before it returns, and for the rest in
        later calls."""
        with _export.LOCK:
            self._programs, self._refused, self._is_dynamic, self._weights, self._versions = {}, set(), True, [], []
        ahead, self._ahead = self._ahead, []
        for inputs, batch in ahead:
            self.compile(inputs, batch)

    def save(self, path: Any) -> Path:
        """Writes the plan to a file for load(). UsageError unless the model is compiled for exactly one form of inputs."""
        path = Path(path)
        with self._compile_lock:
            plans = [program.plan for program in list(self._programs.values()) if program.plan]
            if len(plans) != 1:
                raise UsageError(f"the model is compiled for {len(plans)} forms of inputs, and a file holds one; give "
                                 "cgc.compile() the inputs")
            temporary = path.with_name(f"{path.name}.tmp.{os.getpid()}")
            try:
                shutil.copyfile(plans[0], temporary)
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        return path

    def __repr__(self) -> str:
        programs = "; ".join(f"{program.describe()} for batches {program.batches} in {program.seconds:.1f} s"
                             for program in list(self._programs.values()))
        return f"<cgc.CompiledModule of {type(self._model).__name__}: {programs or 'nothing is compiled yet'}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UsageError("a compiled module has plans on a GPU and cannot be pickled or copied; save() its plan and load() "
                         "that, or compile the model again")

    def _bind(self, arguments: tuple, named: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of forward() that are tensors, and those that are neither tensors nor at their defaults."""
        import torch
        tensors, constants = {}, {}
        for name, value in self._signature.bind(*arguments, **named).arguments.items():
            parameter = self._signature.parameters[name]
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                raise UsageError(f"forward() takes '{name}' by position only; wrap the model in one that names it")
            for key, each in value.items() if parameter.kind == parameter.VAR_KEYWORD else [(name, value)]:
                if isinstance(each, torch.Tensor):
                    tensors[key] = each
                elif isinstance(each, (bool, int, float, str, type(None))):
                    if type(each) is not type(parameter.default) or repr(each) != repr(parameter.default):
                        constants[key] = each
                else:
                    raise UsageError(f"argument '{key}' of forward() is {type(each).__name__}; give tensors, numbers or text")
        if not tensors:
            raise UsageError("no argument of forward() is a tensor")
        return tensors, constants

    def _program_of(self, tensors: dict[str, Any], constants: dict[str, Any], most: int, is_ahead: bool = False) -> _Program:
        """The program of this form, exported for batches up to `most`, or more."""
        def find() -> _Program | None:
            for is_dynamic in (True, False):
                program = self._programs.get(_form(tensors, constants, is_dynamic))
                if program and program.most >= most:
                    return program
            return None

        if program := find():
            return program
        if self._shapes == "error" and not is_ahead:
            raise UsageError("the model is not compiled for such inputs; give them to cgc.compile(), or shapes='auto'")
        with _export.LOCK:
            if not (program := find()):
                if len(self._programs) >= self._limit:
                    raise UsageError(f"the model is compiled for {len(self._programs)} forms of inputs, which is the limit; "
                                     "give compile() a larger limit")
                program, is_dynamic = self._export(tensors, constants, most)
                if not self._weights:
                    self._weights = [weight for weight in (*self._model.parameters(), *self._model.buffers())
                                     if not weight.is_inference()]
                    self._versions = [weight._version for weight in self._weights]
                self._programs[_form(tensors, constants, is_dynamic)] = program
        return program

    def _export(self, tensors: dict[str, Any], constants: dict[str, Any], most: int) -> tuple[_Program, bool]:
        """The program, and whether its batch is dynamic."""
        batch = _batch_of(tensors)
        batched = [name for name, tensor in tensors.items() if tensor.dim() and len(tensor) == batch]
        if self._is_dynamic and batched:
            with contextlib.suppress(UsageError):
                exported = _export.export_program(self._model, "forward", tensors, most, batched=batched, constants=constants)
                return self._save(exported, tensors, _export.most_rows(most, batch), True), True
        exported = _export.export_program(self._model, "forward", tensors, None, constants=constants)
        program = self._save(exported, tensors, max(most, batch), False)
        self._is_dynamic = False
        return program, False

    def _save(self, exported: Any, tensors: dict[str, Any], most: int, is_dynamic: bool) -> _Program:
        import torch
        outputs = _export.Outputs(exported)
        path = self._folder / f"{len(self._programs)}-{most}.pt2"
        torch.export.save(exported, path)
        inputs = {name: (str(tensor.dtype).removeprefix("torch."), _sizes(tensor, _batch_of(tensors), is_dynamic))
                  for name, tensor in tensors.items()}
        device = next((tensor.device.index for tensor in tensors.values() if tensor.device.type == "cuda"), None)
        return _Program(inputs, path, _cache.digest(path), most, outputs, device)

    def _compile_later(self, program: _Program, batch: int) -> None:
        if batch in program.failed or (program.pending and not program.pending.done()) or len(program.batches) >= self._limit:
            return

        def compile_it() -> None:
            try:
                self._compile(program, [batch])
            except Exception as error:
                program.failed.add(batch)
                self._warn(error)

        with contextlib.suppress(RuntimeError):  # The interpreter is ending.
            program.pending = self._worker.submit(compile_it)

    def _warn(self, error: Exception) -> None:
        warnings.warn(f"cgc does not run {type(self._model).__name__} for these inputs, which stays with torch: {error}",
                      stacklevel=3)

    def _answer(self, arguments: tuple, named: Mapping[str, Any]) -> Any:
        """The model's own answer."""
        import torch
        with _export.LOCK, torch.no_grad():
            return self._model(*arguments, **named)

    def _compile(self, program: _Program, batches: Sequence[int]) -> None:
        """Adds buckets to the plan of the program, and lets its session serve them."""
        with self._compile_lock:
            begin = time.monotonic()
            missing = [batch for batch in batches if batch not in program.batches]
            for some in [missing] if program.takes_rows else [[batch] for batch in missing]:
                if some:
                    self._add_buckets(program, some)
            program.seconds += time.monotonic() - begin

    def _add_buckets(self, program: _Program, batches: list[int]) -> None:
        plan = program.path.with_suffix(f".{len(program.batches)}.cgplan")
        command = [*self._command]
        for name, (dtype, sizes) in program.inputs.items():
            given = ",".join(str(batches[0] if size == "N" else size) for size in sizes)
            command += ["--input", f"{name}={SHORT_DTYPES[dtype]}[{given}]"]
        if program.takes_rows:
            command += ["--batch", ",".join(map(str, batches))]
        program.key = _cache.compile_plan([program.path], [program.digest], plan, command,
                                          base=(program.plan, program.key) if program.plan else None)
        if program.session:
            program.session.update(plan)
        else:
            program.session = load(plan, executor=self._executor, device=program.device, max_batch=program.most)
        if program.plan:
            program.plan.unlink()
        program.plan = plan
        program.batches = sorted({*program.batches, *batches})

    def _run(self, program: _Program, tensors: dict[str, Any]) -> Any:
        import torch
        session = program.session
        assert session is not None
        results = session.run("forward", {info.name: _dense(tensors[info.name], getattr(torch, info.dtype))
                                          for info in session.entries["forward"].inputs})
        return program.outputs.rebuild(results if isinstance(results, tuple) else (results,))


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # Not in a fork.
        shutil.rmtree(folder, ignore_errors=True)


def _dense(tensor: Any, dtype: Any) -> Any:
    return tensor.detach().resolve_conj().resolve_neg().to(dtype).contiguous()


def _batch_of(tensors: dict[str, Any]) -> int:
    """The first dimension of the first input that has one; 1 if none has."""
    return next((tensor.shape[0] for tensor in tensors.values() if tensor.dim()), 1)


def _sizes(tensor: Any, batch: int, is_dynamic: bool) -> list[int | str]:
    """The sizes, with "N" for a dynamic batch."""
    return ["N", *tensor.shape[1:]] if is_dynamic and tensor.dim() and len(tensor) == batch else list(tensor.shape)


def _form(tensors: dict[str, Any], constants: dict[str, Any], is_dynamic: bool) -> tuple:
    """What calls that one program serves have in common."""
    import torch
    batch = _batch_of(tensors)
    kinds = sorted({tensor.device.type for tensor in tensors.values()})
    autocast = [(kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)]
    return (tuple((name, tensor.dtype, tensor.device, *_sizes(tensor, batch, is_dynamic)) for name, tensor in tensors.items()),
            tuple((name, type(value).__name__, repr(value)) for name, value in sorted(constants.items())), *autocast)

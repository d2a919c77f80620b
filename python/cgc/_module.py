"""CompiledModule: a torch module whose calls run plans, one for each form of its inputs."""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import html
import inspect
import itertools
import json
import operator
import os
import shutil
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _cache, _export, _fingerprint, _program
from ._errors import BusyError, DeviceError, Error, OutOfMemoryError, UsageError
from ._plan import short_dtype
from ._prepared import PreparedCall
from ._session import Session, load

if TYPE_CHECKING:
    import torch

    from ._fallback import BySubmodule

#: What a call with inputs or a batch does that are not compiled.
SHAPES = ("auto", "wait", "error")

#: Which sizes of a program are dynamic: none, the batch, or also those of inputs of integers and bools, such as the length of
#: a text.
_STATIC, _BATCH, _LENGTHS = range(3)
#: A batch, and the sizes that _LENGTHS has besides.
_Bucket = tuple[int, ...]
#: The calls of a module that are kept ready.
_MOST_CALLS = 4096
_version_of = operator.attrgetter("_version")


@dataclasses.dataclass
class _Program:
    """What one form of inputs runs."""

    inputs: dict[str, tuple[str, list[int | str]]]  #: Dtype and sizes of each, "N" for a dynamic batch, "L0" for a length.
    path: Path  #: The exported program; there is no such file if only the cache knows it.
    digest: str  #: Of its content.
    most: int  #: The largest batch that it is exported for.
    outputs: _export.Outputs
    device: int | None  #: The GPU of the inputs, if they are on one.
    level: int  #: Which sizes are dynamic.
    export: str | None  #: Names what the cache has of the export.
    is_checked: bool = True  #: Whether it was exported in this process, or its results were compared with the model's.
    buckets: list[_Bucket] = dataclasses.field(default_factory=list)
    is_chosen: bool = False  #: Whether compile() was given the batches: others run in them.
    session: Session | None = None
    plan: Path | None = None
    key: str = ""  #: Of the plan in the cache.
    pending: Future[None] | None = None
    failed: set[_Bucket] = dataclasses.field(default_factory=set)  #: Those that cgc cannot compile.
    seconds: float = 0.0  #: Of compilation.

    @property
    def takes_rows(self) -> bool:
        """Whether the batch is a dimension of every input."""
        return all("N" in sizes for _, sizes in self.inputs.values())

    @property
    def has_lengths(self) -> bool:
        return any("L0" in sizes for _, sizes in self.inputs.values())

    def needs(self, bucket: _Bucket) -> bool:
        """Whether it has to be compiled for this bucket."""
        return bucket not in self.buckets and not (self.is_chosen and self.takes(bucket))

    def takes(self, bucket: _Bucket) -> bool:
        """Whether its session runs this bucket, or one of more rows for it."""
        return self.session is not None and (bucket in self.buckets or (
            self.session.entries["forward"].any_batch and any(one[1:] == bucket[1:] for one in self.buckets)))

    def describe(self) -> str:
        inputs = ", ".join(f"{name}={dtype}[{', '.join(map(str, sizes))}]" for name, (dtype, sizes) in self.inputs.items())
        if self.has_lengths:
            return f"{inputs} for batches and lengths {self.buckets} in {self.seconds:.1f} s"
        return f"{inputs} for batches {[bucket[0] for bucket in self.buckets]} in {self.seconds:.1f} s"


class _NotNow(UsageError):
    """The model may be compiled, but not in this call."""


class _NotExported(_NotNow):
    """The cache has an export of the model, and not the plan of a bucket."""

    def __init__(self) -> None:
        super().__init__("the model has to be exported for this batch; call it again")


class CompiledModule:
    """A torch module in evaluation mode, compiled for the inputs of its calls: what compile() gives without `output`.

    A call takes the arguments of forward() and returns what it returns, with new tensors on the device of the first input
    and without gradients. On GPU tensors it runs on torch's current stream and returns before the GPU has finished, as the
    model does; an index out of range is then an error of the next call. Any thread may call it; nothing else may call the model while it is exported, in the first call
    with inputs of a new form. The weights are those of that call: after a change, a call warns, and refresh() takes the new
    ones.
    """

    def __init__(self, model: torch.nn.Module, *, precision: str | None, target: str, shapes: str, limit: int,
                 executor: str, options: Sequence[str], fallback: str | None = None,
                 part: str | None = None):
        for option, value, choices in (("shapes", shapes, SHAPES), ("target", target, ("cuda", "cpu")),
                                       ("precision", precision, (None, "fp16", "bf16", "fp32", "tf32")),
                                       ("executor", executor, ("graph", "stream", "reference")),
                                       ("fallback", fallback, (None, "eager"))):
            if value not in choices:
                raise UsageError(f"{option} is {value!r}; give one of {', '.join(map(str, choices))}")
        if limit < 1:
            raise UsageError(f"limit is {limit}; it must be at least 1")
        if fallback and shapes == "error":
            raise UsageError("fallback='eager' compiles submodules in calls, which shapes='error' refuses; give shapes='wait'")
        self._model, self._name, self._is_part = model, part or type(model).__name__, part is not None
        self._fallback = fallback
        self._settings = {"precision": precision, "target": target, "shapes": shapes, "limit": limit, "executor": executor,
                          "options": options, "fallback": fallback}  # Of submodules, too.
        self._by_submodule: BySubmodule | None = None
        self._signature = inspect.signature(model.forward)  # torch.export sees another one.
        self._command = ["--target", target, "--quiet", *(["--precision", precision] if precision else []), *options]
        self._shapes, self._limit, self._executor = shapes, limit, executor
        self._process = os.getpid()
        self._folder = Path(tempfile.mkdtemp(prefix="cgc-module-"))
        weakref.finalize(self, _remove, self._folder, self._process)
        self._programs: dict[Any, _Program] = {}
        self._numbers = itertools.count()  # Of the files of programs.
        self._refused: dict[Any, bool] = {}  # Forms that stay with torch, and whether their submodules are compiled.
        self._calls: dict[Any, _Call] = {}  # Those that need nothing but the memory of their tensors.
        self._level = _LENGTHS  # What torch can export the model with, as far as is known.
        self._trusts_cache = True  # Until an export in it is another model's, or lacks a plan.
        self._ahead: list[tuple[Mapping[str, Any], Sequence[int]]] = []  # What compile() was given.
        self._weights: list[Any] = []  # Of the programs, and their versions.
        self._versions = 0  # Their sum, as a version only grows.
        self._is_old = False  # Whether the weights have changed since.
        self._compile_lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "cgc-compile")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if os.getpid() != self._process:
            raise UsageError("the module was compiled before this process was forked; compile it in each process")
        if self._versions != sum(map(_version_of, self._weights)):
            self._versions, self._is_old = sum(map(_version_of, self._weights)), True
            warnings.warn(f"the weights of {self._name} have changed since it was compiled, and its plans have "
                          "the old ones; call refresh()", stacklevel=2)
        calls, key = self._calls, _key(arguments, named)
        if call := calls.get(key):
            return call.run(arguments, named)
        form = call = None
        try:
            tensors, constants = self._bind(arguments, named)
            bucket, form = _bucket_of(tensors), _form(tensors, constants, _LENGTHS)
            if bucket[0] and form not in self._refused:
                program = self._program_of(tensors, constants, bucket[0])
                if program.needs(bucket):
                    if self._shapes == "error":
                        raise UsageError(f"the model is not compiled for a batch of {bucket[0]}, but for {program.describe()}; "
                                         "give compile() this batch, or shapes='auto'")
                    if self._shapes == "wait":
                        program = self._compile(program, [bucket], tensors, constants)
                    elif program.is_checked or not self._load_known(program, bucket):
                        program = self._program_of(tensors, constants, bucket[0])
                        self._compile_later(program, bucket, form)
                if program.takes(bucket):
                    call = self._prepare(program, tensors, arguments)
                    if not self._is_right(program, call, arguments, named):
                        call = None
                    elif not program.needs(bucket):
                        calls[key] = call
        except Error as error:
            self._refuse(form, error)
        return call.run(arguments, named) if call else self._answer(arguments, named, form)

    def compile(self, inputs: Mapping[str, Any], batch: Sequence[int]) -> None:
        """Compiles now for inputs of this form, by the names of forward()'s parameters, and these batches [that of the inputs]."""
        try:
            tensors, constants = self._bind((), inputs)
        except TypeError as error:
            raise UsageError(f"the inputs do not fit forward(): {error}") from None
        given = _batch_of(tensors)
        batches = sorted(set(batch)) or [given]
        if batches[0] < 1:
            raise UsageError(f"batch is {batches[0]}; it must be at least 1")
        lengths = _bucket_of(tensors)[1:]
        try:
            program = self._program_of(tensors, constants, batches[-1], is_ahead=True)
            if batches != [given] and not any("N" in sizes for _, sizes in program.inputs.values()):
                raise _NotNow(f"the model fixes its batch, and the inputs have one of {given}; leave batch out")
            program = self._compile(program, [(one, *lengths) for one in batches], tensors, constants)
            if not program.is_checked and not (program.takes((given, *lengths)) and
                                               self._is_right(program, self._prepare(program, tensors, ()), (), inputs)):
                self._forget(program)
                program = self._program_of(tensors, constants, batches[-1], is_ahead=True)
                program = self._compile(program, [(one, *lengths) for one in batches], tensors, constants)
            program.is_chosen = True
        except Error as error:
            if not self._falls_back(error):
                raise
            self._refuse(_form(tensors, constants, _LENGTHS), error)
        self._ahead.append((inputs, batch))

    def refresh(self) -> None:
        """Takes the present weights of the model: compiles for what compile() was given before it returns, and for the rest in
        later calls."""
        with _export.LOCK:
            self._programs, self._refused, self._calls, self._level = {}, {}, {}, _LENGTHS
            self._by_submodule = None
            self._weights, self._versions, self._is_old, self._trusts_cache = [], 0, False, True
        ahead, self._ahead = self._ahead, []
        for inputs, batch in ahead:
            self.compile(inputs, batch)

    def save(self, path: Any) -> Path:
        """Writes the plan to a file for load(). UsageError unless the model is compiled for exactly one form of inputs."""
        path = Path(path)
        with self._compile_lock:
            plans = [program.plan for program in list(self._programs.values()) if program.plan]
            if self._by_submodule:
                raise UsageError("the submodules of the model are compiled, and a file holds one plan; give cgc.compile() a "
                                 "submodule")
            if len(plans) != 1:
                raise UsageError(f"the model is compiled for {len(plans)} forms of inputs, and a file holds one; give "
                                 "cgc.compile() the inputs")
            _cache.copy_whole(plans[0], path)
        return path

    def __repr__(self) -> str:
        programs = [program.describe() for program in list(self._programs.values())]
        if self._by_submodule:
            programs += map(repr, self._by_submodule.children.values())
        return f"<cgc.CompiledModule of {self._name}: {'; '.join(programs) or 'nothing is compiled yet'}>"

    def _repr_html_(self) -> str:
        """The repr and, if Graphviz is installed, a drawing of each plan, for notebooks."""
        drawings = [f"<pre>{html.escape(repr(self))}</pre>"]
        drawing = self._folder / f"{next(self._numbers)}.svg"
        with self._compile_lock:
            for program in list(self._programs.values()):
                if program.plan:
                    with contextlib.suppress(Error):
                        _program.run(["inspect", str(program.plan), "--svg", str(drawing), "--quiet"])
                        svg = drawing.read_text()
                        drawings.append(f'<div style="overflow: auto; max-height: 40em">{svg[svg.index("<svg"):]}</div>')
        drawing.unlink(missing_ok=True)
        return "".join(drawings)

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
            for level in range(self._level, -1, -1):
                program = self._programs.get(_form(tensors, constants, level))
                if program and program.most >= most:
                    return program
            return None

        if program := find():
            return program
        if self._shapes == "error" and not is_ahead:
            raise UsageError("the model is not compiled for such inputs; give them to cgc.compile(), or shapes='auto'")
        with _export.LOCK:
            if not (program := find()):
                if self._is_old:
                    raise _NotNow("the weights of the model have changed since it was compiled for others; call refresh()")
                if len(self._programs) >= self._limit:
                    raise _NotNow(f"the model is compiled for {len(self._programs)} forms of inputs, which is the limit; "
                                  "give compile() a larger limit")
                fingerprint = _fingerprint.of(self._model, _cache.surroundings()) if _cache.is_on() else None
                # Of zeros, many models compute the same, so that a comparison of results says nothing.
                may_know = fingerprint and self._trusts_cache and not any(map(_export.is_constant, tensors.values()))
                program = (self._known(fingerprint, tensors, constants, most) if may_know else None) or \
                    self._export(tensors, constants, most, fingerprint)
                if not self._weights:
                    self._weights = [weight for weight in (*self._model.parameters(), *self._model.buffers())
                                     if not weight.is_inference()]
                    self._versions = sum(map(_version_of, self._weights))
                self._programs[_form(tensors, constants, program.level)] = program
        return program

    def _known(self, fingerprint: str, tensors: dict[str, Any], constants: dict[str, Any], most: int) -> _Program | None:
        """A program that another process has exported, from the cache; None if there is none."""
        for level in range(self._level, -1, -1):
            export = _export_name(fingerprint, tensors, constants, level)
            with contextlib.suppress(Exception):  # Whatever torch raises for a tree that it cannot read.
                if facts := _cache.find_export(export):
                    outputs = _export.Outputs.from_json(facts["outputs"])
                    if facts["most"] >= most and not (self._is_part and not outputs.are_new):
                        program = self._made(tensors, facts["digest"], facts["most"], outputs, level, export, is_checked=False)
                        self._level = level
                        return program
        return None

    def _load_known(self, program: _Program, bucket: _Bucket) -> bool:
        """Whether the cache has the plan of a program that it knows. If not, the program is dropped."""
        try:
            self._add_buckets(program, [bucket])
        except _NotExported:
            self._drop(program)
            return False
        return True

    def _need_export(self, program: _Program) -> None:
        if not program.path.exists():
            raise _NotExported

    def _is_right(self, program: _Program, call: _Call, arguments: tuple, named: Mapping[str, Any]) -> bool:
        """Whether a program of the cache computes what the model does, which is found out once. One that does not goes."""
        if not program.is_checked:
            weights = [*self._model.parameters(), *self._model.buffers()]
            is_exact = self._settings["precision"] in (None, "fp32") and not _autocast(("cpu", "cuda")) and \
                all(weight.dtype.itemsize >= 4 for weight in weights if weight.is_floating_point())
            if not _export.agree(call.run(arguments, named), self._answer(arguments, named, None), 1e-3 if is_exact else 5e-2):
                self._forget(program)
                return False
            program.is_checked = True
        return True

    def _forget(self, program: _Program) -> None:
        """Removes a program that is another model's, also from the cache."""
        self._drop(program)
        if program.export:
            _cache.add_export(program.export, None)

    def _drop(self, program: _Program) -> None:
        """Lets the next call export the model in place of a program of the cache."""
        with _export.LOCK:
            self._programs = {form: other for form, other in self._programs.items() if other is not program}
            self._calls, self._trusts_cache = {}, False

    def _export(self, tensors: dict[str, Any], constants: dict[str, Any], most: int, fingerprint: str | None) -> _Program:
        """The program with as many dynamic sizes as torch allows."""
        batch, level = _batch_of(tensors), self._level
        batched = [name for name, tensor in tensors.items() if tensor.dim() and len(tensor) == batch]
        while level > _STATIC and batched:
            lengths = {name: [dim for dim, size in enumerate(sizes) if dim and isinstance(size, str)]
                       for name, sizes in _sizes(tensors, level).items()}
            try:
                exported = _export.export_program(self._model, "forward", tensors, most, batched=batched, lengths=lengths,
                                                  constants=constants)
            except UsageError:
                level = _BATCH if any(lengths.values()) else _STATIC
                continue
            self._level = level if _export.keeps(exported, lengths) else _BATCH
            return self._save(exported, tensors, constants, _export.most_rows(most, batch), self._level, fingerprint)
        exported = _export.export_program(self._model, "forward", tensors, None, constants=constants)
        self._level = _STATIC
        return self._save(exported, tensors, constants, max(most, batch), _STATIC, fingerprint)

    def _save(self, exported: Any, tensors: dict[str, Any], constants: dict[str, Any], most: int, level: int,
              fingerprint: str | None) -> _Program:
        outputs = _export.Outputs.of(exported)
        if self._is_part and not outputs.are_new:
            raise UsageError("its outputs share memory with its inputs or one another, and those of a plan are new")
        program = self._made(tensors, "", most, outputs, level,
                             _export_name(fingerprint, tensors, constants, level) if fingerprint else None)
        program.digest = _cache.digest(_export.save(exported, program.path))
        if program.export:
            with contextlib.suppress(Exception):  # torch cannot write each tree.
                facts = {"digest": program.digest, "most": most, "outputs": outputs.to_json()}
                if _export.Outputs.from_json(json.loads(json.dumps(facts["outputs"]))) == outputs:
                    _cache.add_export(program.export, facts)
        return program

    def _made(self, tensors: dict[str, Any], digest: str, most: int, outputs: _export.Outputs, level: int, export: str | None,
              **settings: Any) -> _Program:
        inputs = {name: (short_dtype(name, tensors[name]), sizes) for name, sizes in _sizes(tensors, level).items()}
        device = next((tensor.device.index for tensor in tensors.values() if tensor.device.type == "cuda"), None)
        return _Program(inputs, self._folder / f"{next(self._numbers)}.pt2", digest, most, outputs, device, level, export,
                        **settings)

    def _compile_later(self, program: _Program, bucket: _Bucket, form: Any) -> None:
        if bucket in program.failed or (program.pending and not program.pending.done()) or len(program.buckets) >= self._limit:
            return

        def compile_it() -> None:
            try:
                self._add_buckets(program, [bucket])
            except _NotExported:
                self._drop(program)  # The next call exports it.
            except Exception as error:
                if program.has_lengths:
                    self._level = _BATCH  # The next call exports a program of these lengths alone.
                    return
                program.failed.add(bucket)
                if self._falls_back(error):
                    self._refuse(form, error)
                else:
                    self._warn("with torch", error)

        with contextlib.suppress(RuntimeError):  # The interpreter is ending.
            program.pending = self._worker.submit(compile_it)

    def _falls_back(self, error: Exception) -> bool:
        """Whether submodules are compiled after this error of the whole."""
        return self._fallback == "eager" and not isinstance(error, (_NotNow, DeviceError, OutOfMemoryError, BusyError))

    def _refuse(self, form: Any, error: Exception) -> None:
        """Leaves inputs of a form to torch, or raises the error."""
        by_submodule = self._falls_back(error)
        if self._shapes != "auto" and not by_submodule:
            raise error
        if form not in self._refused:
            self._refused[form] = by_submodule
            if by_submodule:
                self._programs = {form: program for form, program in list(self._programs.items()) if program.plan}
                if not self._programs:
                    self._weights, self._versions = [], 0
            self._warn("with torch but for its submodules" if by_submodule and self._model._modules else "with torch", error)

    def _warn(self, stays: str, error: Exception) -> None:
        warnings.warn(f"cgc does not run {self._name} for these inputs, which stays {stays}: {error}", stacklevel=4)

    def _answer(self, arguments: tuple, named: Mapping[str, Any], form: Any) -> Any:
        """The model's own answer, or that of its submodules."""
        import torch
        with _export.LOCK, torch.no_grad():
            if not self._refused.get(form):
                return self._model(*arguments, **named)
            if not self._by_submodule:
                from ._fallback import BySubmodule
                self._by_submodule = BySubmodule(self._model, self._name, self._compile_child)
            return self._by_submodule(*arguments, **named)

    def _compile_child(self, child: torch.nn.Module, path: str) -> CompiledModule:
        return CompiledModule(child, part=path, **self._settings)

    def _compile(self, program: _Program, buckets: Sequence[_Bucket], tensors: dict[str, Any],
                 constants: dict[str, Any]) -> _Program:
        """Adds buckets to the program or, if cgc cannot compile it with dynamic lengths, to one without, and returns it."""
        try:
            self._add_buckets(program, buckets)
        except Error as error:
            if isinstance(error, _NotExported):
                self._drop(program)
            elif program.has_lengths:
                self._level = _BATCH
            else:
                raise
            program = self._program_of(tensors, constants, max(bucket[0] for bucket in buckets), is_ahead=True)
            self._add_buckets(program, buckets)
        return program

    def _add_buckets(self, program: _Program, buckets: Sequence[_Bucket]) -> None:
        """Adds buckets of the same lengths to the plan of the program, and lets its session serve them."""
        with self._compile_lock:
            begin = time.monotonic()
            missing = [bucket for bucket in buckets if bucket not in program.buckets]
            for some in [missing] if program.takes_rows else [[bucket] for bucket in missing]:
                if some:
                    self._extend_plan(program, some)
            program.seconds += time.monotonic() - begin

    def _extend_plan(self, program: _Program, buckets: list[_Bucket]) -> None:
        plan = program.path.with_suffix(f".{len(program.buckets)}.cgplan")
        command = [*self._command]
        batch, *lengths = buckets[0]
        values = {"N": batch, **{f"L{index}": length for index, length in enumerate(lengths)}}
        for name, (dtype, sizes) in program.inputs.items():
            given = ",".join(str(values.get(size, size)) for size in sizes)
            command += ["--input", f"{name}={dtype}[{given}]"]
        if program.takes_rows:
            command += ["--batch", ",".join(str(bucket[0]) for bucket in buckets)]
        program.key = _cache.compile_plan([program.path], [program.digest], plan, command,
                                          base=(program.plan, program.key) if program.plan else None,
                                          before=lambda: self._need_export(program))
        if program.session:
            program.session.update(plan)
        else:
            program.session = load(plan, executor=self._executor, device=program.device, max_batch=program.most)
        if program.plan:
            program.plan.unlink()
        program.plan = plan
        program.buckets = sorted({*program.buckets, *buckets})

    def _prepare(self, program: _Program, tensors: dict[str, Any], arguments: tuple) -> _Call:
        """The call with these arguments, of which `tensors` has the tensors by name."""
        assert program.session is not None
        prepared = PreparedCall(program.session, "forward", tensors)
        by_position = list(self._signature.parameters)[:len(arguments)]
        if len(self._calls) >= _MOST_CALLS:
            self._calls.clear()
        return _Call(prepared, [by_position.index(name) if name in by_position else name for name in prepared.inputs],
                     program.outputs)


@dataclasses.dataclass
class _Call:
    """A call of a compiled module, but for the memory of its tensors."""

    prepared: PreparedCall
    inputs: list[int | str]  #: Where each is: its position among the arguments, or its name.
    outputs: _export.Outputs

    def run(self, arguments: tuple, named: Mapping[str, Any]) -> Any:
        tensors = [arguments[at] if isinstance(at, int) else named[at] for at in self.inputs]
        return self.outputs.rebuild(self.prepared(tensors))


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # Not in a fork.
        shutil.rmtree(folder, ignore_errors=True)


def _batch_of(tensors: dict[str, Any]) -> int:
    """The first dimension of the first input that has one; 1 if none has."""
    return next((tensor.shape[0] for tensor in tensors.values() if tensor.dim()), 1)


def _sizes(tensors: dict[str, Any], level: int) -> dict[str, list[int | str]]:
    """The sizes of each tensor, with names for those that are dynamic."""
    batch, lengths = _batch_of(tensors), _lengths_of(tensors)
    sizes: dict[str, list[int | str]] = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        if level >= _BATCH and tensor.dim() and len(tensor) == batch:
            sizes[name][0] = "N"
        if level >= _LENGTHS and not tensor.is_floating_point():
            sizes[name][1:] = [f"L{lengths.index(size)}" if size in lengths else size for size in tensor.shape[1:]]
    return sizes


def _lengths_of(tensors: dict[str, Any]) -> list[int]:
    """The different sizes, but the first, of tensors of integers and bools. Those of 0 and 1 are programs of their own."""
    return list(dict.fromkeys(size for tensor in tensors.values() if not tensor.is_floating_point()
                              for size in tensor.shape[1:] if size > 1))


def _bucket_of(tensors: dict[str, Any]) -> _Bucket:
    return _batch_of(tensors), *_lengths_of(tensors)


def _key(arguments: tuple, named: Mapping[str, Any]) -> tuple | None:
    """What calls that differ in the memory of their tensors alone have in common; None for arguments that no program takes."""
    import torch
    kinds: list[tuple] = []
    for value in (*arguments, *named.values()):
        if isinstance(value, torch.Tensor):
            kinds.append((value.dtype, value.device, value.shape, value.layout))
        elif isinstance(value, (bool, int, float, str, type(None))):
            kinds.append((type(value), repr(value)))
        else:
            return None
    return len(arguments), *named, *kinds, *_autocast(("cpu", "cuda"))


def _autocast(kinds: Iterable[str]) -> list[tuple]:
    """The kinds of devices, of these, whose ops are under autocast, with its dtype."""
    import torch
    return [(kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)]


def _export_name(fingerprint: str, tensors: dict[str, Any], constants: dict[str, Any], level: int) -> str:
    """Names the export of a module with this fingerprint for this form of inputs in the cache."""
    return hashlib.sha256(f"{fingerprint} {level} {_form(tensors, constants, level)}".encode()).hexdigest()


def _form(tensors: dict[str, Any], constants: dict[str, Any], level: int) -> tuple:
    """What calls that one program serves have in common."""
    sizes = _sizes(tensors, level)
    return (tuple((name, tensor.dtype, tensor.device, *sizes[name]) for name, tensor in tensors.items()),
            tuple((name, type(value).__name__, repr(value)) for name, value in sorted(constants.items())),
            *_autocast(sorted({tensor.device.type for tensor in tensors.values()})))

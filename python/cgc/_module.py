"""CompiledModule: a torch module whose calls run plans, one for each form of its inputs."""
from __future__ import annotations

import dataclasses
import inspect
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _export, _program
from ._errors import Error, UsageError, error_of
from ._session import Session, load

if TYPE_CHECKING:
    import torch

#: What a call with a batch that is not compiled does.
SHAPES = ("auto", "wait", "error")


@dataclasses.dataclass
class _Program:
    """What one form of inputs runs: names, dtypes, sizes but the batch, and constants."""

    inputs: dict[str, Any]  #: Names, dtypes and sizes, for people.
    path: Path  #: The exported program.
    is_dynamic: bool  #: Whether it takes other batches than that of its export.
    tree: Any  #: torch's TreeSpec of the outputs.
    leaves: list[Any]  #: Of the tree: the torch.dtype of a tensor, or a value.
    batches: list[int] = dataclasses.field(default_factory=list)
    is_chosen: bool = False  #: Whether compile() was given the batches: others run in them.
    session: Session | None = None
    plan: Path | None = None
    pending: Future[None] | None = None
    has_failed: bool = False
    seconds: float = 0.0  #: Of compilation.


class CompiledModule:
    """A torch module in evaluation mode, compiled for the inputs of its calls: what compile() gives without `output`.

    A call takes the arguments of forward() and returns what it returns, with new tensors on the device of the first input
    and without gradients. Any thread may call it. The weights are those of the first call with such inputs.
    """

    def __init__(self, model: torch.nn.Module, *, precision: str | None, target: str, shapes: str, limit: int,
                 executor: str, options: Sequence[str]):
        if shapes not in SHAPES:
            raise UsageError(f"shapes is {shapes!r}; give one of {', '.join(SHAPES)}")
        self._model = model
        self._signature = inspect.signature(model.forward)  # torch.export sees another one.
        self._command = ["--target", target, "--quiet", *(["--precision", precision] if precision else []), *options]
        self._shapes, self._limit, self._executor = shapes, limit, executor
        self._folder = tempfile.TemporaryDirectory(prefix="cgc-module-")
        self._programs: dict[Any, _Program] = {}
        self._is_dynamic = True  # Until torch cannot export the model with a dynamic batch.
        self._model_lock = threading.Lock()  # torch.export changes the model while it runs.
        self._compile_lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "cgc-compile")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        tensors, constants = self._bind(arguments, named)
        batch = next((tensor.shape[0] for tensor in tensors.values() if tensor.dim()), 0)
        program = self._program_of(tensors, constants, batch)
        session = program.session
        takes_any = session is not None and session.entries["forward"].any_batch
        if batch not in program.batches and not (takes_any and program.is_chosen):
            if self._shapes == "error":
                raise UsageError(f"the model is not compiled for a batch of {batch}, but for {program.batches}; give it to "
                                 "compile(batch=...), or shapes='auto'")
            if self._shapes == "wait":
                self._compile(program, [batch])
            else:
                self._compile_later(program, batch)
        if batch in program.batches or takes_any:
            return self._run(program, tensors)
        import torch
        with self._model_lock, torch.no_grad():
            return self._model(*arguments, **named)

    def compile(self, inputs: Mapping[str, Any], batch: Sequence[int]) -> None:
        """Compiles for these inputs and batches now."""
        tensors, constants = self._bind((), inputs)
        program = self._program_of(tensors, constants, max(batch), always=True)
        self._compile(program, batch)
        program.is_chosen = True

    def save(self, path: Any) -> Path:
        """Writes the plan to a file for load(). UsageError unless the model is compiled for exactly one form of inputs."""
        plans = [program.plan for program in self._programs.values() if program.plan]
        if len(plans) != 1:
            raise UsageError(f"the model is compiled for {len(plans)} forms of inputs, and a file holds one; give compile() "
                             "the inputs")
        shutil.copyfile(plans[0], path)
        return Path(path)

    def __repr__(self) -> str:
        programs = "; ".join(f"{', '.join(program.inputs.values())} for batches {program.batches} in {program.seconds:.1f} s"
                             for program in self._programs.values())
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
            if parameter.kind == parameter.VAR_POSITIONAL:
                raise UsageError(f"forward() takes '*{name}', whose arguments have no names; wrap the model in one that "
                                 "names them")
            for key, each in value.items() if parameter.kind == parameter.VAR_KEYWORD else [(name, value)]:
                if isinstance(each, torch.Tensor):
                    tensors[key] = each
                elif isinstance(each, (bool, int, float, str, type(None))):
                    if type(each) is not type(parameter.default) or each != parameter.default:
                        constants[key] = each
                else:
                    raise UsageError(f"argument '{key}' of forward() is {type(each).__name__}; give tensors, numbers or text")
        if not tensors:
            raise UsageError("no argument of forward() is a tensor")
        return tensors, constants

    def _program_of(self, tensors: dict[str, Any], constants: dict[str, Any], batch: int, always: bool = False) -> _Program:
        def find() -> _Program | None:
            return self._programs.get(_form(tensors, constants, True)) or self._programs.get(_form(tensors, constants, False))

        if program := find():
            return program
        if self._shapes == "error" and not always:
            raise UsageError("the model is not compiled for such inputs; give them to compile(), or shapes='auto'")
        with self._model_lock:
            if not (program := find()):
                exported = self._export(tensors, constants, batch)
                program = self._save(exported, tensors)
                self._programs[_form(tensors, constants, program.is_dynamic)] = program
        return program

    def _export(self, tensors: dict[str, Any], constants: dict[str, Any], batch: int) -> Any:
        if self._is_dynamic:
            try:
                return _export.export_program(self._model, "forward", tensors, batch, constants)
            except UsageError:
                fixed = _export.export_program(self._model, "forward", tensors, None, constants)
                self._is_dynamic = False
                return fixed
        return _export.export_program(self._model, "forward", tensors, None, constants)

    def _save(self, exported: Any, tensors: dict[str, Any]) -> _Program:
        import torch
        path = Path(self._folder.name, f"{len(self._programs)}.pt2")
        torch.export.save(exported, path)
        rows = ["N"] if self._is_dynamic else []
        inputs = {name: f"{name}={_name(tensor.dtype)}[{', '.join(map(str, [*rows, *tensor.shape[len(rows):]]))}]"
                  for name, tensor in tensors.items()}
        nodes = exported.graph.output_node().args[0]
        specs = exported.graph_signature.output_specs
        leaves = [node.meta["val"].dtype if isinstance(node, torch.fx.Node) else node
                  for node, spec in zip(nodes, specs) if spec.kind.name == "USER_OUTPUT"]
        return _Program(inputs, path, self._is_dynamic, exported.call_spec.out_spec, leaves)

    def _compile_later(self, program: _Program, batch: int) -> None:
        if program.has_failed or (program.pending and not program.pending.done()) or len(program.batches) >= self._limit:
            return

        def compile_it() -> None:
            try:
                self._compile(program, [batch])
            except Error as error:
                program.has_failed = True
                warnings.warn(f"cgc cannot compile {type(self._model).__name__}, which stays with torch: {error}", stacklevel=2)

        program.pending = self._worker.submit(compile_it)

    def _compile(self, program: _Program, batches: Sequence[int]) -> None:
        """Adds buckets to the plan of the program, and lets its session serve them."""
        with self._compile_lock:
            batches = [batch for batch in batches if batch not in program.batches]
            if not batches:
                return
            begin = time.monotonic()
            plan = program.path.with_suffix(f".{len(program.batches)}.cgplan")
            command = ["compile", str(program.path), "-o", str(plan), *self._command]
            if program.is_dynamic:
                command += ["--batch", ",".join(map(str, batches))]
            if program.plan:
                command += ["--add-to", str(program.plan)]
            done = _program.run(command)
            if done.returncode:
                raise error_of(done.returncode, done.stderr.strip())
            if program.session:
                program.session.update(plan)
            else:
                program.session = load(plan, executor=self._executor)
            if program.plan:
                program.plan.unlink()
            program.plan, program.seconds = plan, program.seconds + time.monotonic() - begin
            program.batches = sorted({*program.batches, *batches})

    def _run(self, program: _Program, tensors: dict[str, Any]) -> Any:
        import torch
        session = program.session
        assert session is not None
        infos = session.entries["forward"].inputs
        results = session.run("forward", {info.name: tensors[info.name].detach().to(getattr(torch, info.dtype)).contiguous()
                                          for info in infos})
        given = iter(results if isinstance(results, tuple) else (results,))
        # Of the dtypes of the model, whatever the precision of the plan is.
        leaves = [next(given).to(leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in program.leaves]
        return torch.utils._pytree.tree_unflatten(leaves, program.tree)


def _form(tensors: dict[str, Any], constants: dict[str, Any], is_dynamic: bool) -> tuple:
    """What calls that one program serves have in common."""
    first = 1 if is_dynamic else 0
    return (is_dynamic, tuple((name, tensor.dtype, tuple(tensor.shape[first:])) for name, tensor in tensors.items()),
            tuple((name, type(value).__name__, value) for name, value in sorted(constants.items())))


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")

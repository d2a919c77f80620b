"""train(): compiles the training step of a torch module. Trainer runs the steps of a training plan."""
from __future__ import annotations

import collections
import operator
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy

from . import _arrays, _cache, _compile, _export, _libraries, _optimizer, _ranks, _runtime
from ._errors import UsageError
from ._plan import NAMES, PlanShapes
from ._session import EXECUTORS, check_dtype, choice, in_order, load_plan

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

PathLike = Union[str, "os.PathLike[str]"]
#: A factor on the learning rate for a number of steps that were made, as in torch.optim.lr_scheduler.LambdaLR.
Schedule = Callable[[int], float]
#: The results of steps that losses() keeps.
_KEPT_LOSSES = 65536


def train(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor, *,
          optimizer: str | torch.optim.Optimizer, loss: int = 0, groups: str | Mapping[str, Mapping[str, float]] | None = None,
          schedule: str | Schedule | None = None, clip_norm: float | None = None, clip_value: float | None = None,
          clamp: str | Mapping[str, Sequence[float]] | None = None, ema: float | None = None,
          autocast: Literal["bf16", "fp16"] | None = None, accumulate: int = 1, batch: int | Sequence[int] | None = None,
          data_parallel: bool = False, ranks: int = 1, shard_optimizer: bool = False,
          target: Literal["cuda", "cpu"] | None = None, output: PathLike | None = None, options: Sequence[str] = (),
          **settings: Any) -> Trainer:
    """Compiles the training step of a module whose forward() returns the loss: forward and backward pass and optimizer.

    model: a module in training mode. Its parameters that require gradients are trained. It is not changed: sync() copies
        what was trained into it.
    inputs: example inputs, as for compile().
    optimizer: a torch.optim.SGD, Adam or AdamW over the parameters of the model, which is not changed, or the text of
        `cgc compile --optimizer`, such as "adamw,lr=5e-4,weight_decay=0.1".
    loss: the output of forward() that is the loss, by its index.
    groups: for an optimizer that is text: {"GLOB|GLOB": {"weight_decay": 0, "lr_scale": 0.1}}, where "@vectors" are the
        parameters of fewer than two dimensions.
    schedule: a function from the number of steps made to a factor on the learning rate, as for LambdaLR, or the text of
        `cgc compile --schedule`, which the device computes.
    clip_norm, clip_value: as clip_grad_norm_ and clip_grad_value_.
    clamp: {"PATH": (MIN, MAX)}: limits of parameters after each step.
    ema: the decay of an exponential moving average of the parameters.
    autocast: "bf16" or "fp16", with a loss scale.
    accumulate: the number of batches whose mean gradient makes a step.
    batch: the values of dimension 0 of all inputs to compile for [that of the examples].
    data_parallel, ranks: those of `cgc compile`, for the ranks of a process_group (docs/training.md). With data_parallel, inputs
        and batches are those of a rank, each with a loss of its own; with ranks=N, inputs are those of the whole step, of which a
        rank is given the N-th part. All ranks call train() with the same, and with equal parameters.
    shard_optimizer: the ranks divide moments and averages among themselves, for memory.
    target: "cuda" or "cpu" [cpu where torch finds no GPU].
    output: a file for the plan, which Trainer() and `cgc train` read.
    options: further options of `cgc compile`, such as ["--recompute", "blocks"].
    settings: those of Trainer().

    Raises as compile() does, and UsageError for an optimizer that cgc does not have.
    """
    torch = _compile.import_torch()
    _compile.check_model(model, is_training=True)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError("no parameter of the model requires a gradient; call requires_grad_() on those to train")
    accumulate = _positive("accumulate", accumulate)
    if not isinstance(optimizer, str) and groups:
        raise UsageError("groups are those of the optimizer; leave groups out, or give the optimizer as text")
    if not (schedule is None or isinstance(schedule, str) or callable(schedule)):
        raise UsageError(f"schedule is {schedule!r}; give text, or a function from the number of steps to a factor")
    tensors = {name: _compile.tensor(name, value) for name, value in _compile.by_name(model, inputs).items()}
    _export.given(model, "forward", tensors)
    batches = _compile.batches_of(batch)
    program = _export.export_program(model, "forward", tensors, _export.max_batch_of(tensors, batches),
                                     min_batch=min(batches, default=1), is_training=True)
    outputs = _export.Outputs.of(program)
    target = target or ("cuda" if torch.cuda.is_available() else "cpu")
    command = ["--train", "forward", "--target", target, "--loss", str(outputs.leaf(operator.index(loss)))]
    if isinstance(optimizer, str):
        command += ["--optimizer", optimizer]
    else:
        names = _trained_names(model, program, [*command, *_compile.input_options(tensors)])
        command += _optimizer.options_of(optimizer, model, names, schedule is not None)
    for option, value in (("--groups", groups if groups is None or isinstance(groups, str) else _optimizer.groups_text(groups)),
                          ("--clamp", clamp if clamp is None or isinstance(clamp, str) else _optimizer.clamp_text(clamp)),
                          ("--schedule", schedule if isinstance(schedule, str) else None), ("--clip-norm", clip_norm),
                          ("--clip-value", clip_value), ("--ema", ema), ("--autocast", autocast)):
        if value is not None:
            command += [option, str(value)]
    if accumulate > 1:
        command.append("--accumulate")
    if data_parallel:
        command.append("--data-parallel")
    if ranks != 1:
        command += ["--ranks", str(_positive("ranks", ranks))]
    if shard_optimizer:
        command.append("--shard-optimizer")
    with tempfile.TemporaryDirectory(prefix="cgc-train-") as folder:
        exported, plan = _export.save(program, Path(folder, "forward.pt2")), Path(output or Path(folder, "step.cgplan"))
        _cache.compile_plan([exported], [_cache.digest(exported)], plan,
                            ["--quiet", *command, *_compile.input_options(tensors),
                             *(["--batch", ",".join(map(str, batches))] if batches else []), *options])
        trainer = Trainer(plan, accumulate=accumulate, schedule=None if isinstance(schedule, str) else schedule, **settings)
    trainer._model = model
    trainer._positional = [name for name in _export.positional(model, "forward") if name in tensors]
    trainer._outputs = outputs
    return trainer


def _trained_names(model: torch.nn.Module, program: Any, options: Sequence[str]) -> list[str]:
    """The names that the parameters which the program reads have in its plan. A tied one has several: a plan tells which."""
    names = _export.parameters_of(program)
    if len(names) == len([name for name, _ in model.named_parameters() if name in names]):
        return names
    with tempfile.TemporaryDirectory(prefix="cgc-train-") as folder:
        exported, plan = _export.save(program, Path(folder, "forward.pt2")), Path(folder, "names.cgplan")
        _cache.compile_plan([exported], [_cache.digest(exported)], plan, ["--quiet", *options])
        return [name for name, role, _, _ in _runtime.Plan(str(plan)).states if role == "parameter"]


class Trainer:
    """Makes the steps of a training plan: what train() gives, and of the file at `path`.

    A call enqueues a step on a batch, given as the arguments of forward() or as one list, tuple or dict of them, and returns
    before a GPU has finished. With accumulate=N, every N-th call ends a step. On GPU tensors a step runs on torch's current
    stream; they are not copied, and may be freed after the call. Arrays in pinned memory must not be written before the step
    is complete.

    accumulate: as for train(); the plan is one with `cgc compile --accumulate`.
    schedule: a function, as for train().
    process_group: a process group of torch.distributed, such as dist.group.WORLD, of which each rank makes a trainer, with a
        plan of data_parallel or ranks=N. It hands over an id; NCCL then joins the ranks. All of them make the same calls in the
        same order. Rank 0 writes checkpoints.
    timeout: the seconds that a rank waits for the others before it fails.
    device: the GPU [0; with a process group torch.cuda.current_device()].
    executor, threads, memory_limit, op_libraries and *_path: those of load(). nccl_path: libnccl.so.2 or its folder [that of the
        package nvidia-nccl-cu13].

    One thread at a time may use a trainer. UsageError, before anything is enqueued, for a batch that does not fit, and for a
    label or index out of range; without other ranks the trainer goes on. Another error makes every later call fail until load() or reset(), and needs
    a new trainer if there are other ranks. Errors name the rank.
    """

    _model: Any = None  # What train() compiled.

    def __init__(self, path: PathLike, *, accumulate: int = 1, schedule: Schedule | None = None,
                 process_group: dist.ProcessGroup | None = None, timeout: float = 600, device: int | None = None,
                 executor: str = "graph", threads: int = 0, memory_limit: int = 0, aten_path: PathLike = "",
                 cublaslt_path: PathLike = "", nccl_path: PathLike = "", reference_path: PathLike = "",
                 op_libraries: Sequence[PathLike] = ()):
        plan = load_plan(path)
        kind = choice("executor", executor, EXECUTORS)
        device = _device(process_group) if device is None else operator.index(device)
        communicator = None
        if process_group is not None:
            communicator = _ranks.join(process_group, -1 if executor == "reference" else device, os.fspath(nccl_path), timeout)
        if communicator:
            _ranks.leave_after_errors(self, communicator)
        with _libraries.naming_torch(plan.needs_libtorch):
            self._trainer = _runtime.Trainer(
                plan, communicator, executor=kind, device=device, threads=threads,
                memory_limit=memory_limit, aten_path=os.fspath(aten_path),
                cublaslt_path=os.fspath(cublaslt_path) or _libraries.cublaslt(), reference_path=os.fspath(reference_path),
                op_libraries=[os.fspath(library) for library in op_libraries])
        self._shapes = PlanShapes(plan)
        self._states = {name: (role, NAMES[dtype], shape) for name, role, dtype, shape in plan.states}
        if accumulate > 1 and "update" not in self._shapes.entries:
            raise UsageError("the plan accumulates no gradients; compile it with accumulate=")
        self._accumulate, self._schedule = _positive("accumulate", accumulate), schedule
        self._base_lr = self._read_lr()  # With a schedule, the state has the product with the factor.
        self._process = os.getpid()
        self._outputs: Any = None
        self._positional = [tensor.name for tensor in self._shapes.entries["step"].inputs]
        self._in_flight: collections.deque[tuple[int, list]] = collections.deque()  # The arrays of each step.
        self._losses: collections.deque[tuple[int, float]] = collections.deque(maxlen=_KEPT_LOSSES)
        self._loss: float | None = None

    def __call__(self, *batch: Any, **named: Any) -> None:
        arrays, tensors, stream = self._bind("step", batch, named)
        if self._accumulate > 1 and self._trainer.micro_batches >= self._accumulate:  # An interrupt came before the update.
            self._trainer.update(stream)
        ends_step = self._accumulate == 1 or self._trainer.micro_batches + 1 >= self._accumulate
        if self._schedule:
            self._trainer.set("lr", [self._base_lr * float(self._schedule(self._trainer.step_number))])
        if self._accumulate == 1:
            self._trainer.step(tensors, stream)
        else:
            self._trainer.accumulate(tensors, stream)
            if ends_step:
                self._trainer.update(stream)
        self._in_flight.append((self._trainer.step_number + (not ends_step), arrays))
        self._poll()

    @property
    def loss(self) -> float | None:
        """The loss of the last step that is complete, without a wait; None before the first one is."""
        self._poll()
        return self._loss

    def losses(self) -> list[tuple[int, float]]:
        """(step, loss) of the steps that have completed since the last call, without a wait. Steps count from 1; the last 65536
        are kept."""
        self._poll()
        losses = list(self._losses)
        self._losses.clear()
        return losses

    @property
    def lr(self) -> float:
        """The learning rate before the schedule: that of the parameters in no group, to which groups keep their ratio."""
        return self._base_lr if self._schedule else self._read_lr()

    @lr.setter
    def lr(self, value: float) -> None:
        self._trainer.set("lr", [float(value)])
        self._base_lr = float(value)

    @property
    def step_number(self) -> int:
        """The number of steps that were enqueued, with those of a checkpoint."""
        return self._trainer.step_number

    @property
    def non_finite(self) -> int:
        """The number of complete steps whose loss was NaN or infinite."""
        self._poll()
        return self._trainer.non_finite

    def seed(self, value: int) -> None:
        """Seeds the random numbers of the steps after the call."""
        self._trainer.set("random:seed", [operator.index(value)])

    def wait(self) -> None:
        """Waits until all steps are complete."""
        self._trainer.wait()
        self._poll()

    def evaluate(self, *batch: Any, **named: Any) -> Any:
        """What forward() returns in evaluation mode for a batch, after the steps before it. Changes no parameter."""
        arrays, tensors, stream = self._bind("evaluate", batch, named)
        entry = self._shapes.entries["evaluate"]
        shapes = self._shapes.outputs("evaluate", [tensor.shape for tensor in tensors])
        if shapes is None:
            given = ", ".join(f"{info.name}{list(tensor.shape)}" for info, tensor in zip(entry.inputs, tensors))
            raise UsageError(f"the plan evaluates no batch of these sizes: {given}; compile it for them, with batch=")
        outputs = [_arrays.new_like(arrays[0], shape, info.dtype, f"output '{info.name}'", tensors[0].gpu, stream)
                   for shape, info in zip(shapes, entry.outputs)]
        targets = [_runtime.Tensor(output, f"output '{info.name}'", True) for output, info in zip(outputs, entry.outputs)]
        self._trainer.evaluate(tensors, targets, stream)
        if self._outputs and _arrays.is_torch(outputs[0]):
            return self._outputs.rebuild(outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def state_dict(self, average: bool = False) -> dict[str, Any]:
        """Copies of the parameters and buffers by their names in the model, or, with `average`, of the averages that ema= keeps.

        Torch tensors on the devices of the model, with the buffers that no step changes, or, of a plan file, NumPy arrays of
        the states alone.
        """
        suffix = ":ema" if average else ""
        if average and not any(role == "average" for role, _, _ in self._states.values()):
            raise UsageError("the plan keeps no averages; compile it with ema=")
        names = [name for name, (role, _, _) in self._states.items() if role in ("parameter", "buffer")]
        states = {name: name + suffix if name + suffix in self._states else name for name in names}
        if self._model is None:
            return {name: self._read(state) for name, state in states.items()}
        import torch
        own = self._model.state_dict(keep_vars=True)
        # A tied parameter has several names, and a state by one of them.
        tensors = {**dict(self._model.named_parameters(remove_duplicate=False)),
                   **dict(self._model.named_buffers(remove_duplicate=False))}
        values = {}
        for name, state in states.items():
            if all(tensors[name] is not tensor for tensor in own.values()):
                if self._states[name][0] == "buffer":  # It is not persistent.
                    continue
                raise UsageError(f"state_dict() of the module does not return parameter '{name}' itself; read the states of a "
                                 "cgc.Trainer of the plan file")
            _, dtype, shape = self._states[state]
            values[id(tensors[name])] = value = torch.empty(shape, dtype=getattr(torch, dtype))
            self._trainer.read(state, _runtime.Tensor(value, f"state '{state}'", True))
        return {name: values.get(id(tensor), tensor).detach().to(tensor.device, copy=True)
                if isinstance(tensor, torch.Tensor) else tensor for name, tensor in own.items()}

    def sync(self, module: torch.nn.Module | None = None) -> torch.nn.Module:
        """Copies the parameters and buffers into a module with the same names [the one that was compiled], and returns it."""
        module = module if module is not None else self._model
        if module is None:
            raise UsageError("the trainer was made of a plan file; give the module that takes the parameters")
        import torch
        values = self.state_dict()
        if self._model is None:
            values = {name: torch.as_tensor(value) for name, value in values.items()}
            if missing := values.keys() - module.state_dict().keys():
                raise UsageError(f"the module has no '{min(missing)}', which the plan trains; give the module that was compiled")
        module.load_state_dict(values, strict=self._model is not None)
        return module

    def save(self, path: PathLike) -> None:
        """Writes a checkpoint to the folder `path`, whose former content is exchanged at once: files of safetensors, with
        the micro-batches of a step that has begun."""
        if self._schedule:  # Each call multiplies it by the factor.
            self._trainer.set("lr", [self._base_lr])
        self._trainer.save(os.fspath(path))

    def load(self, path: PathLike, any_plan: bool = False) -> None:
        """Goes on from a checkpoint; steps are then bit-equal to those without the interruption. `any_plan` also takes one of
        another plan with the same states."""
        self._trainer.load(os.fspath(path), any_plan)
        self._begin_anew()

    def load_model(self, path: PathLike) -> None:
        """Begins from the parameters and buffers of a file of safetensors, or of a checkpoint."""
        path = Path(path)
        self._trainer.load_model(str(path / "model.safetensors" if path.is_dir() else path))

    def reset(self) -> None:
        """Gives parameters, moments and the number of steps their first values."""
        self._trainer.reset()
        self._begin_anew()

    def memory(self) -> dict[str, int]:
        """The memory in bytes: the members of cgc_memory_report in cgc.h."""
        return self._trainer.memory()

    def __repr__(self) -> str:
        of = type(self._model).__name__ if self._model is not None else "a plan"
        return f"<cgc.Trainer of {of}: {self.step_number} steps, loss {self._loss}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UsageError("a trainer has its states on a device and cannot be pickled or copied; save() a checkpoint, or copy "
                         "state_dict()")

    def _bind(self, entry: str, batch: tuple, named: Mapping[str, Any]) -> tuple[list, list[_runtime.Tensor], int]:
        """The arrays of a batch in the plan's order, the same for the runtime, and the stream."""
        if os.getpid() != self._process:
            raise UsageError("the trainer was made before this process was forked; make one in each process")
        if entry not in self._shapes.entries:
            raise UsageError(f"the plan has no entry '{entry}'")
        if len(batch) == 1 and not named and isinstance(batch[0], Mapping):
            batch, named = (), batch[0]
        elif len(batch) == 1 and isinstance(batch[0], (list, tuple)):
            batch = tuple(batch[0])
        if len(batch) > len(self._positional):
            raise UsageError(f"a batch has {len(self._positional)} inputs ({', '.join(self._positional)}), and {len(batch)} were "
                             "given")
        given = {**dict(zip(self._positional, batch)), **named}
        if len(given) != len(batch) + len(named):
            raise UsageError(f"input '{next(name for name in named if name in self._positional[:len(batch)])}' is given twice")
        infos = self._shapes.entries[entry].inputs
        arrays = [array.detach().contiguous() if _arrays.is_torch(array) else array
                  for array in in_order(given, infos, "input", entry)]
        for array, info in zip(arrays, infos):
            check_dtype(array, info, entry)
        tensors = [_runtime.Tensor(array, f"input '{info.name}' of entry '{entry}'", False)
                   for array, info in zip(arrays, infos)]
        on_gpu = [array for array in arrays if _arrays.is_torch(array) and array.is_cuda]
        if not on_gpu:
            return arrays, tensors, 0
        import torch
        return arrays, tensors, _arrays.stream_handle(torch.cuda.current_stream(on_gpu[0].device))

    def _poll(self) -> None:
        for step, loss in self._trainer.poll():
            self._losses.append((step, loss))
            self._loss = loss
            while self._in_flight and self._in_flight[0][0] <= step:
                self._in_flight.popleft()

    def _read_lr(self) -> float:
        return float(self._read("optimizer:lr").reshape(-1)[-1])

    def _begin_anew(self) -> None:
        self._base_lr = self._read_lr()
        self._in_flight.clear()
        self._losses.clear()
        self._loss = None

    def _read(self, state: str) -> numpy.ndarray:
        _, dtype, shape = self._states[state]
        value = _arrays.new_numpy(shape, dtype, f"state '{state}'")
        self._trainer.read(state, _runtime.Tensor(value, f"state '{state}'", True))
        return value


def _device(process_group: dist.ProcessGroup | None) -> int:
    """The GPU of a trainer, if the caller names none."""
    if process_group is None:
        return 0
    import torch
    return torch.cuda.current_device() if torch.cuda.is_available() else 0


def _positive(name: str, value: int) -> int:
    value = operator.index(value)
    if value < 1:
        raise UsageError(f"{name} is {value}; it must be at least 1")
    return value

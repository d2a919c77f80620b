"""Session: serves a plan to any number of threads."""
from __future__ import annotations

import contextlib
import math
import operator
import os
import pathlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

from . import _arrays, _folder, _libraries, _runtime
from ._errors import DeviceError, UsageError
from ._model import Model
from ._plan import DTYPES, Entry, PlanShapes, TensorInfo

EXECUTORS = {"graph": 0, "stream": 1, "reference": 2}  # cgc_executor of cgc.h
_LOG_LEVELS = ("info", "warning", "error")  # cgc_log_level of cgc.h
_CAPTURES = {"creation": 0, "first_use": 1}
Path = Union[str, "os.PathLike[str]"]
Arrays = Any  # An array, a sequence of arrays in the plan's order, or a mapping from names to arrays.


def load(path: Path, *, device: int | Sequence[int] | None = None, contexts: int = 1, max_batch: int | None = None,
         max_waiting: int | None = None, timeout: float | None = None, executor: str = "graph",
         capture: str = "creation", captured_contexts: int = 0, threads: int = 0, memory_limit: int = 0,
         seed: int = 0, aten_path: Path = "", cublaslt_path: Path = "", reference_path: Path = "",
         op_libraries: Sequence[Path] = (), fallback: Path = "", log: Callable[[str, str], object] | None = None) -> Any:
    """Loads the plan file or the model folder at `path` and makes it ready for requests: a Session, or a Model.

    device: the GPU or GPUs, by index; None is GPU 0 for a plan that runs on GPUs, and the only value for others.
    contexts: requests that run on each device at a time; each takes an arena.
    max_batch: the largest batch of a request [16384].
    max_waiting: requests that may wait for a context at a time [1024].
    timeout: the longest wait for a context, in seconds [no limit].
    executor: "graph" replays CUDA graphs; "stream" launches every kernel, for debugging; "reference" runs a plan for
        cuda on the host, slowly.
    capture: whether buckets are captured at "creation" or at "first_use".
    captured_contexts: further contexts on each device, for run() on a stream that is being captured, for example inside
        torch.cuda.graph(); each graph that is captured so holds one of them, and must not outlive the session.
    threads: threads of an op on the host; 0 is the setting of the process.
    memory_limit: in bytes for each device: weights, arenas, inputs and outputs; 0 is the free memory.
    seed: of a plan that draws random numbers. Each context gets another one from it: results are reproducible with one.
    *_path, op_libraries: as in docs/deployment.md. libcgc_aten.so and libcgc_reference.so are in this package, and
        libcublasLt.so.13 is found in the package nvidia-cublas.
    fallback: the TorchScript file that the plan was compiled from. LibTorch then runs requests that no bucket takes; it
        takes memory beside the plan, and stats()["fallbacks"] counts them. Give such requests `out`.
    log: is called with a level ("info", "warning", "error") and a message, on any thread; it must not call the
        session.

    Imports torch if the plan or `fallback` needs LibTorch and torch is installed. Touches a GPU only for a plan that
    runs on one.
    """
    card = _folder.read(pathlib.Path(path)) if os.path.isdir(path) else None
    if card and card.is_random:
        warnings.warn(f"{os.fspath(path)} has RANDOM WEIGHTS; its vectors mean nothing", stacklevel=2)
    file = pathlib.Path(path, _folder.PLAN) if card else path
    plan = load_plan(file)
    if fallback:
        _libraries.import_torch()
    devices = _devices(device)
    with _advising("export the model" if card else "compile it"), _libraries.naming_torch(plan.needs_libtorch or bool(fallback)):
        session = _runtime.Session(
            plan, executor=choice("executor", executor, EXECUTORS), devices=devices,
            contexts=_at_least_one("contexts", contexts), threads=threads,
            max_batch=_at_least_one("max_batch", max_batch), max_waiting=_at_least_one("max_waiting", max_waiting),
            timeout_ms=_milliseconds(timeout), capture_on_first_use=choice("capture", capture, _CAPTURES),
            memory_limit=memory_limit, captured_contexts=captured_contexts, seed=seed, aten_path=os.fspath(aten_path),
            cublaslt_path=os.fspath(cublaslt_path) or _libraries.cublaslt(), reference_path=os.fspath(reference_path),
            op_libraries=[os.fspath(library) for library in op_libraries], fallback_model=os.fspath(fallback),
            log=None if log is None else lambda level, message: log(_LOG_LEVELS[level], message))
    opened = Session(os.fspath(file), PlanShapes(plan), session, devices or [0], bool(fallback))
    return Model(pathlib.Path(path), card, opened) if card else opened


@contextlib.contextmanager
def _advising(remake: str) -> Iterator[None]:
    """Gives the advice of the program's errors (runtime/exec/gpu.h) in the words of Python."""
    try:
        yield
    except DeviceError as error:
        message = re.sub(r"with the reference executor, which is slow \([^)]*\)", 'with executor="reference", which is slow', str(error))
        raise DeviceError(re.sub(r"compile it with \S+ cpu", f'{remake} with target="cpu"', message)) from None


class Session:
    """A plan on one or several devices, ready for requests: what load() gives.

    Any thread may call any method at any time. The GIL is released while the runtime works. A session is a context
    manager, which closes it.
    """

    def __init__(self, path: str, shapes: PlanShapes, session: _runtime.Session, gpus: list[int], has_fallback: bool):
        self._path = path
        self._shapes = shapes
        self._session = session
        self._gpus = gpus
        self._has_fallback = has_fallback
        self._updating = threading.Lock()

    @property
    def entries(self) -> dict[str, Entry]:
        """The methods of the model, by name."""
        return dict(self._shapes.entries)

    def run(self, entry: str, inputs: Arrays, out: Arrays = None, stream: Any = None) -> Any:
        """Runs `entry` and returns its output, or a tuple if it has several.

        inputs: an array, a list in the plan's order, or a dict by name. `entries` has names, dtypes and shapes, in
            which "N" is the batch: any from 1 to max_batch if `any_batch`, else that of a bucket. Arrays are dense and
            have exactly these dtypes; nothing is converted or copied beforehand.
        out: arrays for the outputs, in one of the same forms. They are returned. Without it, new arrays of the library
            and device of the first input: NumPy, torch, or the library whose arrays have __array_namespace__.
        stream: a torch.cuda.Stream, an object with __cuda_stream__, or a cudaStream_t as an int, for arrays on GPUs.
            The work is enqueued on it and the call returns; inputs and outputs must live until it is complete.
            Without it, the call waits for torch's current stream and returns when the outputs are complete; work of
            other libraries on the inputs must be complete beforehand.

        UsageError, before anything is run, for a request that does not fit; BusyError if it waited too long.
        """
        handle = _arrays.stream_handle(stream)
        info = self._entry(entry)
        given = in_order(inputs, info.inputs, "input", entry)
        for array, tensor in zip(given, info.inputs):
            check_dtype(array, tensor, entry)
        sources = [_runtime.Tensor(array, f"input '{tensor.name}' of entry '{entry}'", False)
                   for array, tensor in zip(given, info.inputs)]
        outputs = self._outputs(info, given, sources, handle) if out is None else in_order(out, info.outputs,
                                                                                            "output", entry)
        targets = [_runtime.Tensor(array, f"output '{tensor.name}' of entry '{entry}'", True)
                   for array, tensor in zip(outputs, info.outputs)]
        if not outputs and self._has_fallback:
            raise UsageError(f"no bucket of entry '{entry}' has these sizes, so that the sizes of its outputs are not known; "
                             "give out=")
        self._check_places(info, sources, targets, handle)
        if not handle:
            _arrays.wait_for_torch([*given, *outputs])
        self._session.run(entry, sources, targets, handle)
        if out is not None:
            return out
        results = tuple(_arrays.like(output, given[0]) for output in outputs) if given else tuple(outputs)
        return results[0] if len(results) == 1 else results

    @property
    def runtime(self) -> _runtime.Session:
        """The session of the C API."""
        return self._session

    def output_shapes(self, entry: str, inputs: list[tuple[int, ...]]) -> list[tuple[int, ...]] | None:
        """The shapes of the outputs for inputs of these shapes; None if the entry does not take them."""
        return self._shapes.outputs(entry, inputs)

    def prepare(self, entry: str, batch: int) -> None:
        """Captures the buckets that a batch of `batch` rows takes, if capture is "first_use"."""
        self._session.prepare(entry, batch)

    def update(self, path: Path) -> None:
        """Serves later requests with the plan file at `path`, which has at least the same entries.

        It is uploaded and captured beside the traffic. The call returns when the last request of the present plan is
        done. If it fails, the present plan stays.
        """
        plan = load_plan(path)
        shapes = PlanShapes(plan)
        with self._updating:
            self._session.update(plan)
            self._shapes = shapes

    def swap_weights(self, path: Path) -> None:
        """Does the same as update() for another compilation of the same model, whose weights alone differ.

        UsageError names the first difference.
        """
        self._session.swap_weights(load_plan(path))

    def stats(self) -> dict[str, int]:
        """What the session has done since it was loaded: the members of cgc_session_stats in cgc.h."""
        return self._session.stats()

    def memory(self) -> dict[str, int]:
        """The memory of the present plan in bytes, over all devices: the members of cgc_memory_report in cgc.h."""
        return self._session.memory()

    def metrics(self, name: str) -> str:
        """Counters and memory as text for Prometheus, with the label session="`name`"."""
        return self._session.metrics(name)

    def healthy(self) -> bool:
        """Whether no device was lost to an error that CUDA calls sticky. After one, every request fails with it."""
        return self._session.healthy()

    def reset(self) -> None:
        """Builds a session that is not healthy anew. If that fails, the process has to end."""
        self._session.reset()

    def close(self) -> None:
        """Waits for calls that have begun and frees the memory of the session. Later calls raise UsageError."""
        self._session.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._session.closed else ""
        return f"<cgc.Session of {self._path!r}: {', '.join(self._shapes.entries)}{state}>"

    def _entry(self, name: str) -> Entry:
        entry = self._shapes.entries.get(name)
        if entry is None:
            raise UsageError(f"the plan has no entry {name!r}; it has {', '.join(self._shapes.entries)}")
        return entry

    def _outputs(self, entry: Entry, given: list[Any], sources: list[_runtime.Tensor], stream: int) -> list[Any]:
        shapes = self._shapes.outputs(entry.name, [source.shape for source in sources])
        if shapes is None:
            return []  # The runtime refuses the inputs, and says what would fit.
        array, gpu = (given[0], sources[0].gpu) if given else (None, None)
        return [_arrays.new_like(array, shape, tensor.dtype, f"output '{tensor.name}' of entry '{entry.name}'", gpu,
                                 stream) for shape, tensor in zip(shapes, entry.outputs)]

    def _check_places(self, entry: Entry, sources: list[_runtime.Tensor], targets: list[_runtime.Tensor],
                      stream: int) -> None:
        for kind, tensors, infos in (("input", sources, entry.inputs), ("output", targets, entry.outputs)):
            for tensor, info in zip(tensors, infos):
                if tensor.gpu is None and stream:
                    raise UsageError(f"{kind} '{info.name}' of entry '{entry.name}' is in host memory, and a stream "
                                     "orders work on GPUs; leave stream out, or give arrays on the GPU")
                if tensor.gpu is not None and tensor.gpu not in self._gpus:
                    raise UsageError(f"{kind} '{info.name}' of entry '{entry.name}' is on GPU {tensor.gpu}, on which the "
                                     "session does not run; move the array, or load the plan with "
                                     f"device={tensor.gpu}")


def load_plan(path: Path) -> _runtime.Plan:
    plan = _runtime.Plan(os.fspath(path))
    if plan.needs_libtorch:
        _libraries.import_torch()
    return plan


def in_order(arrays: Arrays, infos: tuple[TensorInfo, ...], kind: str, entry: str) -> list[Any]:
    """The arrays in the plan's order."""
    names = [info.name for info in infos]
    if isinstance(arrays, Mapping):
        if set(arrays) != set(names):
            raise UsageError(f"the {kind}s of entry '{entry}' are {', '.join(names)}, and {', '.join(map(str, arrays))} "
                             "were given")
        return [arrays[name] for name in names]
    arrays = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
    if len(arrays) != len(names):
        raise UsageError(f"entry '{entry}' has {len(names)} {kind}s ({', '.join(names)}), and {len(arrays)} were given")
    return arrays


def check_dtype(array: Any, info: TensorInfo, entry: str) -> None:
    """UsageError, with the conversion, for an array of a library that says its dtype."""
    dtype = str(getattr(array, "dtype", info.dtype)).removeprefix("torch.")
    if dtype in DTYPES and dtype != info.dtype:
        convert = f"to(torch.{info.dtype})" if hasattr(array, "to") else f"astype('{info.dtype}')"
        if info.dtype == "bfloat16" and not hasattr(array, "to"):  # NumPy lacks it.
            convert = "astype(ml_dtypes.bfloat16), of the package ml_dtypes"
        raise UsageError(f"input '{info.name}' of entry '{entry}' is {dtype}, and the plan takes {info.dtype}; give "
                         f"array.{convert}")


def choice(name: str, value: str, choices: dict) -> Any:
    if value not in choices:
        raise UsageError(f"{name} is {value!r}; give one of {', '.join(choices)}")
    return choices[value]


def _devices(device: int | Sequence[int] | None) -> list[int]:
    if device is None:
        return []
    return list(device) if isinstance(device, Sequence) else [operator.index(device)]


def _at_least_one(name: str, value: int | None) -> int:
    """The value of cgc.h, in which 0 is the default."""
    if value is None:
        return 0
    if value < 1:
        raise UsageError(f"{name} is {value}; it must be at least 1")
    return value


def _milliseconds(timeout: float | None) -> int:
    if timeout is None:
        return 0
    if not 0 < timeout < math.inf:
        raise UsageError(f"timeout is {timeout}; it must be positive, in seconds; None is no limit")
    return math.ceil(timeout * 1000)

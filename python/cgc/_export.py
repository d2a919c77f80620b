"""Files of a torch module for the program cgc: exported programs, or TorchScript."""
from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ._errors import UsageError

#: Is held while torch exports a model: it changes the model and the state of the process.
LOCK = threading.RLock()
#: Holds the first fake tensors of the process: torch 2.11 crashes if the thread that made them has ended.
_keeper: threading.Thread | None = None


def positional(model: Any, method: str) -> list[str]:
    """The names of the parameters that may be given by position."""
    import torch
    if isinstance(model, torch.jit.ScriptModule):
        return [argument.name for argument in getattr(model, method).schema.arguments[1:]]
    return [name for name, parameter in inspect.signature(getattr(model, method)).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]


def save_programs(model: Any, inputs: dict[str, Any], entries: Sequence[str], batch: Sequence[int], folder: Path) -> list[Path]:
    """Exports each entry by torch.export to a file with its name, for these batches."""
    paths = []
    for entry, names in _given_of_each(model, entries, inputs).items():
        program = export_program(model, entry, {name: inputs[name] for name in names}, max_batch_of(inputs, batch),
                                 checks_one_row=1 in batch)
        paths.append(save(program, folder / f"{entry}.pt2"))
    return paths


def max_batch_of(inputs: Mapping[str, Any], batch: Sequence[int]) -> int | None:
    """The largest batch, for which dimension 0 of all inputs is dynamic; None if the batches are those of the examples."""
    sizes = {len(tensor) for tensor in inputs.values() if tensor.dim()}
    return max(batch) if batch and sizes != set(batch) else None


def most_rows(wanted: int, batch: int) -> int:
    """The largest batch of a program that is exported for `wanted` rows with an example of `batch` rows."""
    return max(64, 2 * wanted, 2 * batch)


def export_program(model: Any, entry: str, inputs: dict[str, Any], max_batch: int | None, *,
                   batched: Collection[str] | None = None, lengths: Mapping[str, Collection[int]] = MappingProxyType({}),
                   constants: Mapping[str, Any] = MappingProxyType({}),
                   checks_one_row: bool = True, min_batch: int = 1, is_training: bool = False) -> Any:
    """The torch.export.ExportedProgram of a method with these inputs and constants. With `max_batch`, dimension 0 of all
    inputs, or of those in `batched`, is dynamic, from `min_batch` to most_rows(), and so are the dimensions in `lengths` where
    torch allows it. UsageError if torch cannot export it, if a call of the model depends on attributes that an earlier one
    has assigned, or if the program computes something else for one row than the model, and `checks_one_row`; a model in
    training mode changes with each computation, and is not compared."""
    import torch
    with LOCK, _failures("torch.export cannot export the model", _last_lines), torch.set_grad_enabled(is_training), \
            _restored(model), _as(model, "forward", entry, list(inputs), constants) as assigned:
        _keep_fake_tensors()
        # torch takes a tensor that is given twice for one input, and a parameter for itself.
        inputs = {name: tensor.detach().clone() for name, tensor in inputs.items()}
        names, shapes = [], None
        if max_batch is not None:
            names = [name for name, tensor in inputs.items()
                     if tensor.dim() and len(tensor) and (batched is None or name in batched)]
            # All examples need one batch. torch would fix that of one row, and take one of at most 2 for one of 2.
            batch = max([2, min_batch, *(len(inputs[name]) for name in names)])
            rows = torch.export.Dim("batch", min=min_batch, max=most_rows(max_batch, batch))
            inputs = {name: tensor[torch.arange(batch) % len(tensor)] if name in names else tensor
                      for name, tensor in inputs.items()}
            shapes = {name: {**({0: rows} if name in names else {}),
                             **dict.fromkeys(lengths.get(name, ()), torch.export.Dim.AUTO)} for name in inputs}
        program = torch.export.export(model, (), inputs, dynamic_shapes=shapes, strict=False)
        if assigned and not is_training and not _forgets(model, program, inputs):
            raise UsageError(f"a call of forward() assigns {assigned[0]}, on which the next one depends, and a plan does not keep "
                             "it; register it as a buffer that forward() overwrites, or give it as an input and an output")
        if names and checks_one_row and not is_training:
            # torch also takes a condition on the batch for what it is with other batches than 1.
            one = {name: tensor[:1] if name in names else tensor for name, tensor in inputs.items()}
            got = _called(program.module(), one)
            ranks = [node.meta["val"].dim() for node in program.graph.output_node().args[0]
                     if isinstance(getattr(node, "meta", {}).get("val"), torch.Tensor)]
            if not (_are_equal(got, _called(model, one)) and _ranks(got) == ranks[-len(_ranks(got)):]):
                raise UsageError("the model does something else with a batch of 1 than with others; compile it for this batch "
                                 "alone")
    return program


def save(program: Any, path: Path) -> Path:
    """Writes an exported program to a file, and returns its path. UsageError if torch cannot write it."""
    import torch
    with _failures("torch.export cannot save the model", str):
        torch.export.save(program, path)
    return path


def _called(module: Any, inputs: dict[str, Any]) -> Any:
    """What the module returns, which may change its parameters and buffers: those of a copy."""
    import torch
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return torch.func.functional_call(module, {name: tensor.detach().clone() for name, tensor in own.items()}, (), inputs)


def _keep_fake_tensors() -> None:
    global _keeper
    if _keeper is not None and _keeper.is_alive():  # It is not in a fork.
        return
    made = threading.Event()

    def keep() -> None:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            torch.relu(torch.ones(1))
        made.set()
        threading.Event().wait()

    _keeper = threading.Thread(target=keep, name="cgc-fake-tensors", daemon=True)
    _keeper.start()
    made.wait()


def _children(tree: Any) -> list[Any]:
    return list(tree.children() if hasattr(tree, "children") else tree.children_specs)  # torch before 2.11


def parameters_of(program: Any) -> list[str]:
    """The names of the parameters that the program reads."""
    users = {node.name: node.users for node in program.graph.nodes if node.op == "placeholder"}
    return [spec.target for spec in program.graph_signature.input_specs
            if spec.kind.name == "PARAMETER" and users[spec.arg.name]]


def keeps(program: Any, lengths: Mapping[str, Collection[int]]) -> bool:
    """Whether these dimensions of the inputs, by name in their order, are dynamic in the program."""
    import torch
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    sizes = [values[node].shape[dim] for node, dims in zip(program.graph_signature.user_inputs, lengths.values()) for dim in dims]
    return all(isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None for size in sizes)


def shared(results: Iterable[Any], inputs: Iterable[Any]) -> int | None:
    """The index of the first result that shares memory with an input or with a result before it; None if none does."""
    import torch
    seen = {value.untyped_storage()._cdata for value in inputs if isinstance(value, torch.Tensor)}
    for index, value in enumerate(results):
        if isinstance(value, torch.Tensor):
            if value.untyped_storage()._cdata in seen:
                return index
            seen.add(value.untyped_storage()._cdata)
    return None


class Outputs:
    """What a program returns: a tree of tensors and None."""

    def __init__(self, tree: Any, dtypes: Sequence[Any], are_new: bool):
        self._tree, self._dtypes = tree, dtypes
        self.are_new = are_new  #: Whether the model's share no memory with its inputs, nor one another.

    @classmethod
    def of(cls, program: Any) -> Outputs:
        """Those of an exported program."""
        import torch
        nodes = program.graph.output_node().args[0]
        values = [node.meta["val"] if isinstance(node, torch.fx.Node) else node
                  for node, spec in zip(nodes, program.graph_signature.output_specs) if spec.kind.name == "USER_OUTPUT"]
        if not any(isinstance(value, torch.Tensor) for value in values):
            raise UsageError("forward() returns no tensor")
        if other := [value for value in values if not isinstance(value, (torch.Tensor, type(None)))]:
            raise UsageError(f"forward() returns {other[0]}, which is no tensor; return tensors")
        inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
        return cls(program.call_spec.out_spec, [getattr(value, "dtype", None) for value in values], shared(values, inputs) is None)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Outputs:
        """Those that to_json() has described."""
        import torch
        return cls(torch.utils._pytree.treespec_loads(facts["tree"]),
                   [name and getattr(torch, name) for name in facts["dtypes"]], facts["are_new"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outputs) and repr(self._facts()) == repr(other._facts())

    __hash__ = None  # type: ignore[assignment]

    def _facts(self) -> Any:
        return self._tree, self._dtypes, self.are_new

    def to_json(self) -> dict[str, Any]:
        import torch
        return {"tree": torch.utils._pytree.treespec_dumps(self._tree), "are_new": self.are_new,
                "dtypes": [dtype and str(dtype).removeprefix("torch.") for dtype in self._dtypes]}

    def leaf(self, index: int) -> int:
        """The number of tensors before the output `index` of forward(). UsageError if that is no tensor."""
        children = _children(self._tree) or [self._tree]
        if not 0 <= index < len(children) or _children(children[index]) or children[index].num_leaves != 1:
            raise UsageError(f"output {index} of forward() is no tensor; it returns {len(children)}, and loss is the index of one")
        at = sum(child.num_leaves for child in children[:index])
        if self._dtypes[at] is None:
            raise UsageError(f"output {index} of forward() is None, and loss is the index of a tensor")
        return sum(dtype is not None for dtype in self._dtypes[:at])

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        """The tree with these tensors, in the dtypes of the model, whatever the precision of the plan is."""
        import torch
        given = iter(tensors)
        leaves = [None if dtype is None else next(given).to(dtype) for dtype in self._dtypes]
        return leaves[0] if self._tree.is_leaf() else torch.utils._pytree.tree_unflatten(leaves, self._tree)


def _ranks(outputs: Any) -> list[int]:
    import torch
    return [leaf.dim() for leaf in torch.utils._pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]


def _are_equal(got: Any, want: Any) -> bool:
    import torch
    return _leaves_agree(got, want, lambda a, b: torch.allclose(a.double(), b.double(), 1e-2, _scale(b) * 1e-3, equal_nan=True))


def _leaves_agree(got: Any, want: Any, are_near: Callable[[Any, Any], bool]) -> bool:
    """Whether the leaves of two trees are equal, those that are tensors of one shape and dtype as `are_near` says."""
    import torch
    leaves, expected = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)
    return len(leaves) == len(expected) and all(
        a.shape == b.shape and a.dtype == b.dtype and are_near(a, b)
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else repr(a) == repr(b)
        for a, b in zip(leaves, expected))


def agree(got: Any, want: Any, limit: float) -> bool:
    """Whether two trees have equal tensors, or tensors of floats whose relative L2 distance is at most `limit`."""
    import torch
    def are_near(a: Any, b: Any) -> bool:
        a = a.to(b.device)
        if not b.is_floating_point():
            return torch.equal(a, b)
        finite, a, b = torch.isfinite(b), a.double(), b.double()
        return torch.allclose(a[~finite], b[~finite], equal_nan=True) and \
            bool((a[finite] - b[finite]).norm() <= limit * b[finite].norm())

    trees = [torch.utils._pytree.tree_structure(each) for each in (got, want)]
    return repr(trees[0]) == repr(trees[1]) and _leaves_agree(got, want, are_near)


def is_constant(value: Any) -> bool:
    """Whether it is a tensor of floats with several elements, all of which are equal."""
    import torch
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 1 and bool((value == value.flatten()[0]).all())


def _scale(tensor: Any) -> float:
    """The largest magnitude of a finite element; 0 if there is none."""
    import torch
    finite = tensor[torch.isfinite(tensor)].abs()
    return float(finite.max()) if finite.numel() else 0.0


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
    names_of = {entry: given(model, entry, inputs) for entry in entries}
    if unknown := [name for name in inputs if not any(name in names for names in names_of.values())]:
        raise UsageError(f"{' and '.join(f'{entry}()' for entry in names_of)} of the model take{'s' * (len(names_of) == 1)} no "
                         f"input '{unknown[0]}'")
    return names_of


def given(model: Any, entry: str, inputs: dict[str, Any]) -> list[str]:
    """The names of the inputs that the entry takes, in its order. UsageError if it needs others."""
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


def _attributes(model: Any) -> dict[tuple[str, str], Any]:
    """What forward() may assign but parameters, buffers and modules: by the path of the module, and the name."""
    return {(path, name): value for path, module in model.named_modules() for name, value in vars(module).items()
            if not (path == "" and name == "forward")}


def _forgets(model: Any, program: Any, inputs: Mapping[str, Any]) -> bool:
    """Whether the model computes the same as the program also after a call with other inputs."""
    want, first = _called(program.module(), inputs), _called(model, inputs)
    _called(model, {name: tensor.flip(-1) if tensor.dim() else tensor for name, tensor in inputs.items()})
    return _are_equal(first, want) and _are_equal(_called(model, inputs), want)


@contextlib.contextmanager
def _restored(model: Any) -> Iterator[None]:
    """Takes back what the context assigns to attributes of the model and of its modules."""
    before = {module: dict(vars(module)) for module in model.modules()}
    try:
        yield
    finally:
        for module, attributes in before.items():
            for name in vars(module).keys() - attributes.keys():
                del vars(module)[name]
            vars(module).update(attributes)


@contextlib.contextmanager
def _failures(what: str, describe: Callable[[Exception], str]) -> Iterator[None]:
    """Raises a UsageError in place of every exception, of the model's own code, too."""
    try:
        yield
    except UsageError:
        raise
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
        constants: Mapping[str, Any] = MappingProxyType({})) -> Iterator[list[str]]:
    """Makes the method `name` of the model its method `entry` with these parameters, and no others, for the context.
    Parameters in `constants` have these values. Gives the names of the attributes that calls assign."""
    method, own = getattr(model, entry), getattr(model, name)
    assigned: list[str] = []

    def call(*arguments: Any, **named: Any) -> Any:
        with _attribute(model, name, own):  # The method may call it.
            before = _attributes(model)
            result = method(**dict(zip(parameters, arguments)), **named, **constants)
            assigned.extend(".".join(filter(None, key)) for key, value in _attributes(model).items()
                            if key not in before or before[key] is not value)
            return result

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD) for parameter in parameters])
    with _attribute(model, name, call):
        yield assigned


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

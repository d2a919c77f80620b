"""The backend "cgc" of torch.compile: compiles the graphs that TorchDynamo captures, for inference."""
from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._compile import compile
from ._errors import Error
from ._export import shared

if TYPE_CHECKING:
    import torch


def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None,
            mode: str | None = None) -> Callable[..., Any]:
    """Compiles a graph of TorchDynamo; each batch is compiled in its first call.

    options: those of compile() without `output`, such as {"precision": "fp16"}.
    Graphs that compute gradients, or that cgc cannot compile, stay with torch, and a warning says why.
    """
    import torch
    needs_gradient = [value for value in inputs if isinstance(value, torch.Tensor) and value.requires_grad]
    if torch.is_grad_enabled() and needs_gradient:
        _warn("the graph computes gradients; call it under torch.no_grad(), and train with cgc.train")
        return graph
    return _CompiledGraph(graph, inputs, {"shapes": "wait", **(options or {})})


def _warn(reason: Any) -> None:
    warnings.warn(f"the backend cgc leaves a graph to torch: {reason}", stacklevel=3)


class _CompiledGraph:
    """A graph of TorchDynamo, whose inputs are the parameters and buffers of the model, numbers, and what the call varies."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], options: Mapping[str, Any]):
        import torch
        self._graph = graph
        nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._weights = {index: value for index, (node, value) in enumerate(zip(nodes, inputs)) if _is_weight(node, value)}
        self._versions = _versions(self._weights.values())
        self._tensors = {index: node.target for index, (node, value) in enumerate(zip(nodes, inputs))
                         if isinstance(value, torch.Tensor) and index not in self._weights}
        (results,) = (node.args[0] for node in graph.graph.nodes if node.op == "output")
        self._results = results if isinstance(results, (tuple, list)) else (results,)
        self._constants = {index: value for index, value in enumerate(inputs)
                           if not isinstance(value, (torch.Tensor, torch.SymInt))}
        self._numbers = {node: index for index, node in enumerate(nodes) if not isinstance(inputs[index], torch.Tensor)}
        self._kept = list(dict.fromkeys(result for result in self._results if result not in self._numbers))
        self._compiled = None
        try:
            _check(self._kept, nodes, self._weights.values())
            self._compiled = compile(self._module(nodes, inputs), **options)
        except (Error, ValueError) as error:
            _warn(error)

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled:
            if any(arguments[index] is not weight for index, weight in self._weights.items()) or \
                    _versions(self._weights.values()) != self._versions:
                self._compiled = None
                _warn("the weights have changed since it was compiled; torch.compiler.reset() compiles it again")
            elif any(arguments[index] != value for index, value in self._constants.items()):
                return self._graph(*arguments)
        if self._compiled:
            try:
                tensors = self._compiled(**{name: arguments[index] for index, name in self._tensors.items()})
                results = dict(zip(self._kept, tensors))
                return tuple(arguments[self._numbers[result]] if result in self._numbers else results[result]
                             for result in self._results)
            except Error as error:
                self._compiled = None
                _warn(error)
        return self._graph(*arguments)

    def _module(self, nodes: list[torch.fx.Node], inputs: Sequence[Any]) -> torch.nn.Module:
        """The graph as a module with its weights, whose forward() takes the other tensors by name and returns tensors."""
        import torch
        sizes = {index: _size_of(value, nodes) for index, value in enumerate(inputs) if isinstance(value, torch.SymInt)}
        kept = [self._results.index(result) for result in self._kept]
        names = {index: nodes[index].target for index in self._weights}
        module = torch.nn.Module()
        for index, weight in self._weights.items():
            if isinstance(weight, torch.nn.Parameter):
                module.register_parameter(names[index], weight)
            else:
                module.register_buffer(names[index], weight)
        signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                                       for name in self._tensors.values()])

        def forward(*given: Any, **named: Any) -> Any:
            bound = signature.bind(*given, **named).arguments
            tensors = {index: bound[name] for index, name in self._tensors.items()}
            values = {**self._constants, **tensors, **{index: getattr(module, name) for index, name in names.items()}}
            values.update((index, tensors[of].size(dim)) for index, (of, dim) in sizes.items())
            results = self._graph(*(values[index] for index in range(len(inputs))))
            return tuple(results[index] for index in kept)

        forward.__signature__ = signature  # type: ignore[attr-defined]
        vars(module)["forward"] = forward
        return module.eval()


def _check(results: Sequence[Any], nodes: Sequence[torch.fx.Node], weights: Any) -> None:
    """ValueError for what a plan, whose outputs are new dense tensors, would not return as the graph does."""
    import torch
    if not results:
        raise ValueError("it returns no tensor")
    if any(weight.is_inference() for weight in weights):
        raise ValueError("its weights are inference tensors, whose changes are not counted")
    values = [getattr(result, "meta", {}).get("example_value") for result in results]
    for result, value in zip(results, values):
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"it returns {result}, which is no tensor")
        if not value.is_contiguous():
            raise ValueError(f"it returns {result}, which is not contiguous")
    if (index := shared(values, [node.meta.get("example_value") for node in nodes])) is not None:
        raise ValueError(f"it returns {results[index]}, which shares the memory of an input or of another output")


def _is_weight(node: torch.fx.Node, value: Any) -> bool:
    """Whether the input is a parameter or buffer of the model: the same tensor in each call."""
    import torch
    marks = node.meta.get("tensor_dict") or {}
    return isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and "_dynamo_static_input_type" in marks)


def _versions(tensors: Any) -> tuple[int, ...]:
    """What differs after a change of one of the tensors, but for one that goes around torch or through .data."""
    return sum(map(operator.attrgetter("_version"), tensors)), *(tensor.data_ptr() for tensor in tensors)


def _size_of(number: torch.SymInt, nodes: Sequence[torch.fx.Node]) -> tuple[int, int]:
    """The index of the tensor among the inputs, and the dimension, whose size this symbol is."""
    import torch
    for index, node in enumerate(nodes):
        for dim, size in enumerate(getattr(node.meta.get("example_value"), "shape", ())):
            if isinstance(size, torch.SymInt) and size.node.expr == number.node.expr:
                return index, dim
    raise ValueError(f"no input has a size of {number}")

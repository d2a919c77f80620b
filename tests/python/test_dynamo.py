"""torch.compile(backend="cgc"): the graphs of TorchDynamo run as plans, or stay with torch and say why."""
import warnings

import pytest
import torch
import torchvision
import transformers
from models import Counter
from numpy.testing import assert_allclose
from torch import nn

OPTIONS = {"target": "cpu"}


@pytest.fixture(autouse=True)
def new_dynamo():
    torch.compiler.reset()


class Sizes(nn.Module):
    """Parameters, buffers, sizes in the computation, and a number among the outputs."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("scale", torch.full((4,), 2.0))

    def forward(self, X):
        return (self.norm(self.linear(X)) * self.scale).reshape(X.shape[0] * 2, 2), X.shape[0]


def broken(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y.exp() + 1


def bert():
    torch.manual_seed(0)
    return transformers.BertModel(transformers.BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16)).eval()


def resnet():
    torch.manual_seed(0)
    return torchvision.models.resnet18(num_classes=4).eval()


def vit():
    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(image_size=16, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16,
                                                 mlp_dim=32, num_classes=4)
    nn.init.normal_(model.heads.head.weight)  # It begins as 0.
    return model.eval()


def images(size):
    return lambda batch: (torch.rand(batch, 3, size, size),)


# A model, the arguments for a batch, and the graphs of one form.
MODELS = {"sizes": (lambda: Sizes().eval(), lambda batch: (torch.rand(batch, 4),), 1),
          "broken": (lambda: broken, lambda batch: (torch.rand(batch, 4),), 2),
          "bert": (bert, lambda batch: (torch.randint(64, (batch, 8)), torch.ones(batch, 8, dtype=torch.int64)), 1),
          "resnet": (resnet, images(32), 1),
          "vit": (vit, images(16), 1)}


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_the_model_at_two_batches(name):
    make, arguments, graphs = MODELS[name]
    model = make()
    fast = torch.compile(model, backend="cgc", options=OPTIONS)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # No graph stays with torch.
        for batch in (3, 5, 3):
            given = arguments(batch)
            got, want = fast(*given), model(*given)
            for one, other in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)):
                assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert torch._dynamo.explain(model)(*arguments(3)).graph_count == graphs


def test_a_plan_for_cuda_by_the_reference_executor():
    model, x = Sizes().eval(), torch.rand(3, 4)
    fast = torch.compile(model, backend="cgc", options={"target": "cuda", "executor": "reference", "precision": "fp16"})
    with torch.no_grad():
        got, want = fast(x)[0], model(x)[0]
    assert got.dtype == torch.float32 and (got != want).any()  # It is rounded.
    assert_allclose(got, want, atol=1e-2)


def test_changed_weights_are_never_old():
    model, x = Sizes().eval(), torch.rand(3, 4)
    fast = torch.compile(model, backend="cgc", options=OPTIONS)
    with torch.no_grad():
        fast(x)
        model.linear.weight.mul_(2)
        with pytest.warns(UserWarning, match="the weights have changed since it was compiled"):
            assert_allclose(fast(x)[0], model(x)[0], rtol=1e-4, atol=1e-5)
        model.linear.weight = nn.Parameter(torch.ones(4, 4))
        assert_allclose(fast(x)[0], model(x)[0], rtol=1e-4, atol=1e-5)


def test_gradients_stay_with_torch():
    model, x = Sizes().eval(), torch.rand(3, 4)
    fast = torch.compile(model, backend="cgc", options=OPTIONS)
    with pytest.warns(UserWarning, match="computes gradients; call it under torch.no_grad"):
        fast(x)[0].sum().backward()
    assert model.linear.weight.grad.abs().sum() > 0


def test_what_cgc_cannot_compile_stays_with_torch():
    def overwrites(x):
        x.add_(1)
        return x * 2

    fast, x = torch.compile(overwrites, backend="cgc", options=OPTIONS), torch.zeros(3)
    with pytest.warns(UserWarning, match="overwrites the input"):
        assert fast(x).tolist() == [2, 2, 2]
    assert x.tolist() == [1, 1, 1]
    assert fast(x).tolist() == [4, 4, 4]


@pytest.mark.parametrize("function", [lambda x: (x.view(-1), x + 1), lambda x: (x + 1, (x + 1).t()),
                                      lambda x: (y := x + 1, y.view(-1))[1:] + (y,), lambda x: x.exp().t()])
def test_memory_that_outputs_share_is_shared(function):
    x, other = torch.ones(2, 3), torch.ones(2, 3)
    fast = torch.compile(function, backend="cgc", options=OPTIONS)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = fast(x), function(other)
        for results in (got, want):
            torch.utils._pytree.tree_leaves(results)[0].add_(5)
    for one, two in zip(torch.utils._pytree.tree_leaves((got, x)), torch.utils._pytree.tree_leaves((want, other))):
        assert_allclose(one, two)
        assert one.stride() == two.stride()


def test_the_same_output_twice_is_one_tensor():
    def twice(x):
        y = x * 2
        return y, y

    with torch.no_grad():
        one, two = torch.compile(twice, backend="cgc", options=OPTIONS)(torch.ones(3))
    assert one is two


def test_a_model_that_counts_its_calls_counts_them_once():
    model = Counter().eval()
    fast = torch.compile(model, backend="cgc", options=OPTIONS)
    with torch.no_grad(), pytest.warns(UserWarning, match="leaves a graph to torch"):
        assert fast(torch.zeros(2)).tolist() == [1, 1]
    assert model.count == 1

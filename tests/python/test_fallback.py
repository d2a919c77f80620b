"""fallback="eager": a model that cannot be compiled as a whole runs with torch, and its submodules by plans."""
import copy
import threading
import time
import warnings

import cgc
import pytest
import torch
from models import Counter
from numpy.testing import assert_allclose
from torch import nn

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.act = nn.Linear(4, 4), nn.GELU()

    def forward(self, x, scale=1.0):
        return self.act(self.linear(x)) * scale


class Branches(nn.Module):
    """Has a condition on data, which torch does not export, and its blocks in a container without forward()."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.again = self.stem

    def forward(self, x):
        x = self.norm(self.stem(x))
        for block in self.blocks:
            x = block(x, scale=2.0)
        if x.sum() > 0:
            x = self.again(x)
        return {"x": x}


def compiled(model, **options):
    return cgc.compile(model.eval(), target="cpu", **{"shapes": "wait", "fallback": "eager", **options})


def programs(fast):
    """The paths of the modules that have plans."""
    if fast._by_submodule:
        return [path for child in fast._by_submodule.children.values() for path in programs(child)]
    return [fast._name] if any(program.plan for program in fast._programs.values()) else []


def test_submodules_are_compiled():
    model = Branches()
    fast = compiled(model)
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        warnings.simplefilter("always")
        for batch in (3, 5, 3, 1, 0):
            x = torch.randn(batch, 4)
            assert_allclose(fast(x)["x"], model(x)["x"], **TOLERANCE)
    assert len(said) == 1
    assert "does not run Branches for these inputs, which stays with torch but for its submodules: torch.export" in str(said[0].message)
    assert programs(fast) == ["Branches.stem", "Branches.norm", "Branches.blocks.0", "Branches.blocks.1"]
    assert "<cgc.CompiledModule of Branches.blocks.1: x=f32[N, 4] for batches [1, 3, 5]" in repr(fast)
    with pytest.raises(cgc.UsageError, match="the submodules of the model are compiled.*give cgc.compile.. a submodule"):
        fast.save("unused.cgplan")


def test_submodules_of_a_submodule_are_compiled():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = Branches(), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.inner(x)["x"])

    model, x = Outer(), torch.randn(3, 4)
    fast = compiled(model)
    with pytest.warns(UserWarning) as said, torch.no_grad():
        assert_allclose(fast(x), model(x), **TOLERANCE)
    assert [str(one.message).split()[4] for one in said] == ["Outer", "Outer.inner"]
    assert programs(fast)[-2:] == ["Outer.inner.blocks.1", "Outer.head"]


def test_a_model_that_compiles_is_whole():
    model, x = Block(), torch.randn(3, 4)
    fast = compiled(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(fast(x), model(x).detach(), **TOLERANCE)
    assert programs(fast) == ["Block"]


def test_an_op_that_cgc_lacks_stays_with_torch():
    class Lacking(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.eye(4))

        def forward(self, x):
            return x @ torch.linalg.matrix_exp(self.weight + x.mean() * 0)

    model, x = nn.Sequential(nn.Linear(4, 4), Lacking(), nn.Linear(4, 4)), torch.randn(3, 4)
    fast = compiled(model)
    with pytest.warns(UserWarning) as said:
        for _ in range(3):
            assert_allclose(fast(x), model(x).detach(), **TOLERANCE)
    assert [str(one.message).split()[4] for one in said] == ["Sequential", "Sequential.1"]
    assert "Sequential.1 for these inputs, which stays with torch: " in str(said[1].message)
    assert programs(fast) == ["Sequential.0", "Sequential.2"]


def test_it_compiles_beside_the_model(monkeypatch):
    model = Branches()
    fast = compiled(model, shapes="auto")
    x = torch.randn(3, 4)
    want = model(x)["x"].detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2400):
            assert_allclose(fast(x)["x"], want, **TOLERANCE)
            if len(programs(fast)) == 4:
                break
            time.sleep(0.05)
    monkeypatch.setattr(Block, "forward", None)  # Plans run in its place.
    assert_allclose(fast(x)["x"], want, **TOLERANCE)


def test_an_attribute_that_forward_assigns_is_seen():
    class Assigns(nn.Module):
        """Changes a submodule, and one in that, before their calls."""

        def __init__(self):
            super().__init__()
            self.scaled, self.nested = Scaled(), nn.Sequential(nn.Linear(4, 4), Scaled())

        def forward(self, x, n):
            self.scaled.scale = self.nested[1].scale = float(n.sum())
            return self.nested(self.scaled(x))

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.scale = nn.Linear(4, 4), 1.0

        def forward(self, x):
            return self.linear(x) * self.scale

    model, x = Assigns(), torch.randn(3, 4)
    model.scaled.register_forward_hook(lambda module, arguments, result: result * 2)
    fast = compiled(model)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for n in (2, 3, 4):
            got = fast(x, torch.tensor([n]))
            assert model.scaled.scale == n
            assert_allclose(got, model(x, torch.tensor([n])), **TOLERANCE)


def test_outputs_that_share_memory_are_torchs():
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            self.both = Both()

        def forward(self, x):
            x = x + 0
            same, y = self.both(x)
            same.mul_(2)
            return x + y if y.sum() < 1e9 else y

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return x.view(-1), self.linear(x)

    model, x = Shares(), torch.randn(3, 4)
    fast = compiled(model)
    with pytest.warns(UserWarning, match="Shares.both .*share memory"), torch.no_grad():
        assert_allclose(fast(x), model(x), **TOLERANCE)
    assert programs(fast) == ["Shares.both.linear"]


def test_a_module_that_writes_a_buffer_stays_with_torch():
    model, x = nn.Sequential(Counter(), nn.Linear(4, 4)), torch.randn(3, 4)
    fast, same = compiled(copy.deepcopy(model)), model.eval()
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        warnings.simplefilter("always")
        for _ in range(3):
            assert_allclose(fast(x), same(x), **TOLERANCE)
    assert len(said) == 1 and programs(fast) == ["Sequential.1"]


def test_hooks_run_once():
    model, x = Branches(), torch.randn(3, 4)
    model.stem.register_forward_hook(lambda module, arguments, result: result + 1)
    model.blocks[0].register_forward_pre_hook(lambda module, arguments: (arguments[0] * 3,))
    fast = compiled(model)
    with pytest.warns(UserWarning, match="Branches"), torch.no_grad():
        assert_allclose(fast(x)["x"], model(x)["x"], **TOLERANCE)


def test_the_model_itself_does_not_change():
    model, x = Branches().eval(), torch.randn(3, 4)
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    with pytest.warns(UserWarning, match="Branches"):
        compiled(model)(x)
    for name, module in model.named_modules():
        assert vars(module) == before[name], name
        assert all(type(weight) is nn.Parameter for weight in module.parameters())


def test_new_weights_are_taken():
    model, x = Branches(), torch.ones(3, 4)
    fast = compiled(model)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        fast(x)
        model.blocks[1].linear.weight.mul_(2)
        want = model(x)["x"]
        with pytest.warns(UserWarning, match=r"the weights of Branches.blocks.1 have changed.*refresh"):
            assert not torch.allclose(fast(x)["x"], want)
        fast.refresh()
        assert_allclose(fast(x)["x"], want, **TOLERANCE)


def test_inputs_may_be_given():
    model, x = Branches(), torch.randn(3, 4)
    with pytest.warns(UserWarning, match="does not run Branches"):
        fast = cgc.compile(model.eval(), x, target="cpu", shapes="wait", fallback="eager")
    with torch.no_grad():
        assert_allclose(fast(x)["x"], model(x)["x"], **TOLERANCE)
    assert len(programs(fast)) == 4


def test_what_a_limit_refuses_is_not_split():
    fast = compiled(Block(), limit=1)
    fast(torch.randn(3, 4))
    with pytest.raises(cgc.UsageError, match="which is the limit"):
        fast(torch.randn(3, 4), scale=3.0)
    assert not fast._by_submodule


def test_arguments_of_other_kinds_reach_submodules():
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.join = nn.Linear(4, 4), Join()

        def forward(self, x):
            return self.join([self.stem(x), x])

    class Join(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(8, 2)

        def forward(self, parts):
            return self.head(torch.cat(parts, 1) if parts[0].sum() > -1e9 else parts[0])

    model, x = Lists(), torch.randn(3, 4)
    fast = compiled(model)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        assert_allclose(fast(x), model(x), **TOLERANCE)
    assert programs(fast) == ["Lists.stem", "Lists.join.head"]


def test_threads_may_call_it():
    model = Branches()
    fast, failed = compiled(model), []
    cases = [(x, model(x)["x"].detach()) for x in (torch.randn(1 + batch % 3, 4) for batch in range(9))]

    def call(x, want):
        try:
            assert_allclose(fast(x)["x"], want, **TOLERANCE)
        except BaseException as error:
            failed.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=call, args=case) for case in cases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


def test_a_wrong_choice_is_refused():
    with pytest.raises(cgc.UsageError, match="fallback is 'torch'; give one of None, eager"):
        compiled(Block(), fallback="torch")
    with pytest.raises(cgc.UsageError, match="which shapes='error' refuses; give shapes='wait'"):
        compiled(Block(), shapes="error")

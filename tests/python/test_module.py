"""Compiled modules: they compute what the model does, at every batch and form of its arguments."""
import contextlib
import copy
import math
import pickle
import subprocess
import sys
import threading
import time
import warnings

import cgc
import pytest
import torch
from cgc import _export, _program
from models import Counter
from numpy.testing import assert_allclose
from torch import nn

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


class Forms(nn.Module):
    """Arguments by name, a constant that changes the computation, and outputs in a dict and a tuple."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)

    def forward(self, x, mask=None, *, scale=1.0, nested=False):
        y = self.linear(x) * scale
        if mask is not None:
            y = y * mask
        return {"y": y, "rest": (y.sum(1), None)} if nested else y


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_compiled_module_is_called_like_the_model(target):
    model, x = Forms().eval(), torch.randn(5, 4)
    fast = cgc.compile(model, target=target, shapes="wait", executor="reference" if target == "cuda" else "graph")
    assert repr(fast) == "<cgc.CompiledModule of Forms: nothing is compiled yet>"
    with torch.no_grad():
        for batch in (5, 1, 3):
            assert_allclose(fast(x[:batch]), model(x[:batch]), **TOLERANCE)
        mask = torch.rand(5, 3)
        assert_allclose(fast(x, mask=mask, scale=2.0), model(x, mask, scale=2.0), **TOLERANCE)
        got, want = fast(x=x, nested=True), model(x, nested=True)
    assert got.keys() == want.keys() and got["rest"][1] is None
    assert_allclose(got["rest"][0], want["rest"][0], **TOLERANCE)
    assert "x=f32[N, 4] for batches [1, 3, 5]" in repr(fast)


def test_a_notebook_shows_a_drawing(monkeypatch):
    fast = cgc.compile(Forms().eval(), torch.randn(5, 4), target="cuda", executor="reference")
    shown = fast._repr_html_()
    assert shown.startswith("<pre>&lt;cgc.CompiledModule of Forms: x=f32[N, 4]") and shown.count("<div") == 1
    assert shown.endswith("</svg>\n</div>") and "linear" in shown
    monkeypatch.setenv("PATH", "")
    assert fast._repr_html_() == f"<pre>{repr(fast).replace('<', '&lt;').replace('>', '&gt;')}</pre>"  # Graphviz is not found.


def test_a_compiled_module_has_the_models_dtypes_and_no_gradients():
    model, x = Forms().eval(), torch.randn(5, 4, requires_grad=True)
    fast = cgc.compile(model, precision="bf16", target="cuda", executor="reference", shapes="wait")
    y = fast(x)
    assert y.dtype == torch.float32 and not y.requires_grad
    assert_allclose(y, model(x).detach(), atol=0.05)
    assert (y != model(x)).any()  # It is rounded.


def test_a_compiled_module_answers_while_it_compiles(monkeypatch):
    """The first calls are the model's own, those after the compilation the plan's."""
    compiled, begun = threading.Event(), threading.Event()
    run = _program.run

    def slow(arguments):
        begun.set()
        assert compiled.wait(60)
        return run(arguments)

    monkeypatch.setattr(_program, "run", slow)
    model, x = Forms().eval(), torch.randn(5, 4)
    fast = cgc.compile(model, target="cuda", executor="reference")
    for _ in range(3):
        assert_allclose(fast(x), model(x).detach(), rtol=0)
    assert begun.wait(60) and "for batches []" in repr(fast)
    compiled.set()
    fast._worker.shutdown()
    assert "for batches [5]" in repr(fast)
    model.linear.weight.data.zero_()  # The plan has the weights from before.
    assert (fast(x)[:, 0] != model.linear.bias[0]).all()


def test_a_compiled_module_that_cgc_cannot_compile_stays_with_torch():
    class Unsupported(nn.Module):
        def forward(self, x):
            return torch.linalg.svdvals(x)

    model, x = Unsupported().eval(), torch.randn(3, 4)
    fast = cgc.compile(model, target="cuda", executor="reference")
    with pytest.warns(UserWarning, match="(?s)does not run Unsupported for these inputs, which stays with torch.*svdvals"):
        assert_allclose(fast(x), model(x), rtol=0)
        fast._worker.shutdown()
    assert_allclose(fast(x), model(x), rtol=0)  # It does not try again.


def test_a_model_that_fixes_its_batch_is_compiled_for_each():
    class Fixed(nn.Module):
        def forward(self, x):
            return x * 2 if len(x) == 2 else x * 3

    fast = cgc.compile(Fixed().eval(), target="cuda", executor="reference", shapes="wait")
    for batch, factor in ((2, 2), (4, 3), (2, 2), (1, 3)):
        assert_allclose(fast(torch.ones(batch, 3)), torch.full((batch, 3), float(factor)))


def test_an_input_without_the_batch_keeps_its_sizes():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x.transpose(1, 2) @ mask

    model = Masked().eval()
    fast = cgc.compile(model, target="cuda", executor="reference", shapes="wait")
    for batch, size in ((5, 3), (3, 3), (2, 3), (1, 3), (4, 1), (1, 1), (3, 1)):  # The batch may be the mask's size by chance.
        x, mask = torch.randn(batch, size, 4), torch.randn(size, 2)
        assert_allclose(fast(x, mask), model(x, mask), **TOLERANCE)


def module_of(function):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

        def forward(self, *, x, y=None, k=0.0):
            return function(self, x, y, k)

    return Module().eval()


@contextlib.contextmanager
def autocast():
    with torch.autocast("cpu", torch.bfloat16):
        yield


X, Y = torch.arange(12.0).reshape(4, 3) - 5, torch.arange(12.0).reshape(4, 3) ** 2
ONE_ROW = torch.full((1, 3), 5.0)


@pytest.mark.parametrize("function, calls", [
    # torch.export takes one tensor given twice for one input.
    (lambda m, x, y, k: x * 2 - y, [{"x": X, "y": X}, {"x": X, "y": Y}]),
    (lambda m, x, y, k: x.view(4, -1) * 2 - y, [{"x": X, "y": X}, {"x": X, "y": Y}]),
    # It takes a condition on the batch for what it is with most batches.
    (lambda m, x, y, k: x * 2 if x.shape[0] == 1 else x + 1, [{"x": X}, {"x": ONE_ROW}, {"x": X}]),
    (lambda m, x, y, k: x * 2 if x.shape[0] == 1 else x + 1, [{"x": ONE_ROW}, {"x": X}]),
    (lambda m, x, y, k: (x * m.weight).sum(1, keepdim=True).squeeze(), [{"x": X}, {"x": ONE_ROW}]),
    (lambda m, x, y, k: x * 2 if x.shape[0] > 100 else x + 1, [{"x": X}, {"x": X.repeat(50, 1)}]),
    (lambda m, x, y, k: x * m.weight, [{"x": X[:0]}, {"x": X}, {"x": X[:0]}, {"x": X[:2]}]),
    (lambda m, x, y, k: x * m.weight + y, [{"x": ONE_ROW, "y": ONE_ROW}, {"x": X, "y": ONE_ROW}, {"x": X, "y": Y}]),
    (lambda m, x, y, k: x * math.copysign(1, k), [{"x": X}, {"x": X, "k": -0.0}, {"x": X, "k": 2.0}]),
    (lambda m, x, y, k: x @ m.weight, [{"x": torch._neg_view(X)}, {"x": X.T.contiguous().T}]),
])
def test_a_compiled_module_computes_what_the_model_does(function, calls):
    model = module_of(function)
    for shapes in ("wait", "auto"):
        fast = cgc.compile(model, target="cuda", executor="reference", shapes=shapes)
        for _ in range(2):
            for call in calls:
                got, want = fast(**call), model(**call).detach()
                assert got.shape == want.shape
                assert_allclose(got, want, **TOLERANCE)
                while any(program.pending and not program.pending.done() for program in fast._programs.values()):
                    time.sleep(0.01)


def test_a_weight_may_be_an_input():
    model = module_of(lambda m, x, y, k: x * 2 - y * m.weight)
    fast = cgc.compile(model, target="cuda", executor="reference", shapes="wait")
    for y in (model.weight, torch.ones(3)):
        assert_allclose(fast(x=X, y=y), model(x=X, y=y).detach(), **TOLERANCE)


def test_a_compiled_module_follows_autocast():
    model = nn.Linear(3, 3).eval()
    fast = cgc.compile(model, target="cuda", executor="reference", shapes="wait")
    for context in (contextlib.nullcontext, autocast, contextlib.nullcontext):
        with context(), torch.no_grad():
            got, want = fast(X), model(X)
        assert got.dtype == want.dtype
        assert_allclose(got.float(), want.float(), atol=0.05 if context is autocast else 1e-5)


@pytest.mark.parametrize("function", [lambda m, x, y, k: x * 2 if x.sum() > 0 else x, lambda m, x, y, k: (x * 2, x.shape[0]),
                                      lambda m, x, y, k: ()])
def test_what_cannot_be_exported_stays_with_torch(function):
    model = module_of(function)
    fast = cgc.compile(model, target="cuda", executor="reference")
    with pytest.warns(UserWarning, match="which stays with torch"):
        got = fast(x=X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for result in (got, fast(x=X)):
            torch.testing.assert_close(result, model(x=X))
    with pytest.raises(cgc.UsageError, match="torch.export cannot export|no tensor"):
        cgc.compile(model, target="cuda", executor="reference", shapes="wait")(x=X)


def test_the_limit_bounds_the_forms():
    fast = cgc.compile(module_of(lambda m, x, y, k: x + k), target="cuda", executor="reference", shapes="wait", limit=2)
    for k in (1.0, float("nan"), float("nan")):
        fast(x=X, k=k)
    with pytest.raises(cgc.UsageError, match="compiled for 2 forms of inputs, which is the limit"):
        fast(x=X, k=3.0)


def test_a_file_for_a_batch_of_1_that_the_model_treats_otherwise(tmp_path):
    model = module_of(lambda m, x, y, k: x * 2 if x.shape[0] == 1 else x + 1)
    with pytest.raises(cgc.UsageError, match="something else with a batch of 1"):
        cgc.compile(model, {"x": X}, output=tmp_path / "never.cgplan", batch=[1, 4])


def test_a_module_compiled_ahead_of_time(tmp_path):
    model, x = Forms().eval(), torch.randn(9, 4)
    fast = cgc.compile(model, x[:1], batch=(1, 8), target="cuda", executor="reference", shapes="error")
    for batch in (1, 3, 8, 9):
        assert_allclose(fast(x[:batch]), model(x[:batch]).detach(), **TOLERANCE)
    with cgc.load(fast.save(tmp_path / "forms.cgplan"), executor="reference") as session:
        assert_allclose(session.run("forward", x), model(x).detach(), **TOLERANCE)
    with pytest.raises(cgc.UsageError, match="not compiled for such inputs"):
        fast(x, mask=torch.ones(9, 3))


def test_what_a_compiled_module_refuses():
    fast = cgc.compile(Forms().eval(), target="cpu", shapes="wait")
    for copy_it in (pickle.dumps, copy.deepcopy):
        with pytest.raises(cgc.UsageError, match="cannot be pickled or copied"):
            copy_it(fast)
    with pytest.raises(cgc.UsageError, match="compiled for 0 forms of inputs"):
        fast.save("never.cgplan")
    with pytest.raises(cgc.UsageError, match="argument 'x' of forward.. is list"):
        fast([torch.ones(2, 4)])
    with pytest.raises(cgc.UsageError, match="no argument of forward.. is a tensor"):
        fast(1.0)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        fast()
    for option, value in (("shapes", "all"), ("target", "tpu"), ("precision", "half"), ("executor", "gpu")):
        with pytest.raises(cgc.UsageError, match=f"{option} is '{value}'; give one of"):
            cgc.compile(Forms().eval(), **{option: value})
    with pytest.raises(cgc.UsageError, match="batch needs inputs"):
        cgc.compile(Forms().eval(), batch=(1, 8))
    with pytest.raises(cgc.UsageError, match="give output="):
        cgc.compile(Forms().eval(), entries=["forward"])


class Names(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, X, maskOfRows=None):
        return X * self.weight if maskOfRows is None else X * self.weight * maskOfRows


def test_arguments_keep_their_names_whatever_their_case(tmp_path):
    model, x = Names().eval(), torch.rand(2, 3)
    fast = cgc.compile(model, {"X": x, "maskOfRows": x}, target="cpu")
    assert_allclose(fast(maskOfRows=x, X=x), (x * x).numpy())
    plan = cgc.compile(model, {"X": x}, target="cpu", output=tmp_path / "names.cgplan")
    with cgc.load(plan) as session:
        assert [info.name for info in session.entries["forward"].inputs] == ["X"]


def test_changed_weights_are_told_once_and_taken_by_refresh():
    model, x = Names().eval(), torch.rand(2, 3)
    fast = cgc.compile(model, x, target="cpu")
    before = fast(x)
    with torch.no_grad():
        model.weight.mul_(3)
    with pytest.warns(UserWarning, match="the weights of Names have changed.*refresh"):
        assert_allclose(fast(x), before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(fast(x), before)
        fast.refresh()
        assert "for batches [2]" in repr(fast)  # What was compiled ahead.
        assert_allclose(fast(x), (x * 3).numpy())


def counted(monkeypatch, name):
    """The calls of a function of _export."""
    calls, function = [], getattr(_export, name)
    monkeypatch.setattr(_export, name, lambda *arguments, **named: (calls.append(arguments), function(*arguments, **named))[1])
    return calls


class Tokens(nn.Module):
    """Embeds texts of any length, with a mask. `odd` is a condition on the length."""

    def __init__(self, odd=lambda length: False, most=64):
        super().__init__()
        torch.manual_seed(0)
        self.odd, self.most = odd, most
        self.table, self.positions = nn.Embedding(50, 8), nn.Embedding(most, 8)

    def forward(self, ids, mask):
        x = self.table(ids) + self.positions(torch.arange(ids.shape[1]))
        if self.odd(ids.shape[1]):
            x = x * 2
        weights = mask.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1).clamp(min=1)


def texts(batch, length):
    return {"ids": torch.randint(50, (batch, length)), "mask": torch.rand(batch, length) < 0.7}


def assert_like_the_model(fast, model, inputs):
    with torch.no_grad():
        assert_allclose(fast(**inputs), model(**inputs), **TOLERANCE)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_one_program_serves_texts_of_any_length(target, monkeypatch):
    exports = counted(monkeypatch, "export_program")
    model = Tokens().eval()
    fast = cgc.compile(model, target=target, shapes="wait", executor="reference" if target == "cuda" else "graph")
    for batch, length in ((3, 7), (2, 12), (3, 12), (1, 2), (7, 7)):
        assert_like_the_model(fast, model, texts(batch, length))
    assert len(exports) == 1
    assert "ids=i64[N, L0], mask=bool[N, L0] for batches and lengths [(1, 2), (2, 12), (3, 7), (3, 12), (7, 7)]" in repr(fast)
    assert_like_the_model(fast, model, texts(2, 1))  # Torch fixes a length of 1.
    assert len(exports) == 2


def test_a_condition_on_the_length_is_no_wrong_result():
    for odd in (lambda length: length == 13, lambda length: length % 2 == 0, lambda length: length > 20):
        model = Tokens(odd).eval()
        fast = cgc.compile(model, target="cpu", shapes="wait")
        for length in (7, 13, 8, 21, 9):
            assert_like_the_model(fast, model, texts(2, length))


def test_a_model_of_one_length_is_exported_for_it(monkeypatch):
    exports = counted(monkeypatch, "export_program")

    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = nn.Parameter(torch.rand(6, 8))
            self.table = nn.Embedding(50, 8)

        def forward(self, ids):
            return self.table(ids) + self.positions

    model = Fixed().eval()
    fast = cgc.compile(model, target="cpu", shapes="wait")
    for batch in (2, 3):
        assert_like_the_model(fast, model, {"ids": torch.randint(50, (batch, 6))})
    assert len(exports) == 1 and "ids=i64[N, 6] for batches [2, 3]" in repr(fast)


def test_lengths_are_compiled_beside_the_model():
    model = Tokens(lambda length: length == 5).eval()
    fast = cgc.compile(model, target="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for length in (4, 5, 6, 4, 5, 6) * 3:
            assert_like_the_model(fast, model, texts(2, length))
            time.sleep(0.3)
    assert "(2, 4)" in repr(fast) or "ids=i64[N, 4]" in repr(fast)


def test_programs_of_several_forms_never_mix():
    fast = cgc.compile(Forms().eval(), target="cpu", shapes="wait")
    model = Forms().eval()
    with torch.no_grad():
        # The third one is exported anew for a larger batch.
        for batch, scale in ((4, 1.0), (4, 3.0), (100, 1.0), (100, 5.0), (90, 1.0), (90, 5.0)):
            x = torch.rand(batch, 4)
            assert_allclose(fast(x, scale=scale), model(x, scale=scale), **TOLERANCE)


def test_an_export_changes_no_state_of_the_model(tmp_path):
    model = Counter().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It stays with torch.
        assert cgc.compile(model, target="cpu")(torch.zeros(2)).tolist() == [1, 1]
    with pytest.raises(cgc.Error):
        cgc.compile(model, torch.zeros(2), batch=[1, 2, 4], target="cpu", output=tmp_path / "counter.cgplan")
    assert model.count == 1


class Remembers(nn.Module):
    """Assigns attributes, on which the next call depends or not."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.last, self.calls, self.linear = kind, None, 0, nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x)
        self.calls = self.calls + 1
        if self.kind == "tensor":
            y = y if self.last is None else y + self.last.mean(0)
            self.last = y.detach()
        elif self.kind == "number":
            y = y * self.calls
        elif self.last is None:
            self.last = torch.ones(3)
        return y if self.kind != "table" else y + self.last


@pytest.mark.parametrize("kind", ["tensor", "number"])
def test_attributes_that_the_next_call_reads_are_refused(kind, tmp_path):
    model, x = Remembers(kind).eval(), torch.rand(2, 3)
    before = dict(vars(model))
    fast = cgc.compile(model, target="cpu", shapes="wait")
    with pytest.raises(cgc.UsageError, match="a call of forward.. assigns (last|calls), on which the next one depends.*register it as a buffer"):
        fast(x)
    with pytest.raises(cgc.UsageError, match="on which the next one depends"):
        cgc.compile(model, x, target="cpu", output=tmp_path / "remembers.cgplan")
    assert vars(model) == before


def test_an_attribute_that_is_the_same_in_each_call_is_kept():
    model, x = Remembers("table").eval(), torch.rand(2, 3)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # Of torch.
        fast = cgc.compile(model, target="cpu", shapes="wait")
        got = fast(x), fast(x)
        assert model.last is None
        assert_allclose(got, [model(x)] * 2, **TOLERANCE)


def test_threads_that_end_may_export():
    program = """if True:
        import threading, torch, cgc
        fast = cgc.compile(torch.nn.ReLU().eval(), target="cpu", shapes="wait")
        for size in (3, 4, 5):
            thread = threading.Thread(target=lambda: fast(torch.ones(2, size)))
            thread.start(); thread.join()
        print(len(fast._programs))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_old_and_new_weights_never_mix():
    model = Names().eval()
    fast = cgc.compile(model, target="cpu", shapes="wait")
    fast(torch.ones(2, 3))
    with torch.no_grad():
        model.weight.mul_(3)
    with pytest.warns(UserWarning, match="have changed"), pytest.raises(cgc.UsageError, match="call refresh"):
        fast(torch.ones(100, 3))  # It would be exported anew.
    fast.refresh()
    assert fast(torch.ones(100, 3))[0, 0] == 3


def test_a_branch_for_one_row_is_seen_where_outputs_are_small():
    model = module_of(lambda m, x, y, k: (x * 0 if x.shape[0] == 1 else x).softmax(1))
    fast = cgc.compile(model, target="cpu", shapes="wait")
    for rows in (4, 1):
        x = torch.randn(rows, 4000)
        with torch.no_grad():
            assert_allclose(fast(x=x), model(x=x), rtol=1e-4)


def test_dtypes_that_no_plan_has_are_refused_by_name():
    fast = cgc.compile(Names().eval(), target="cpu", shapes="wait")
    with pytest.raises(cgc.UsageError, match="is complex64, which no plan has"):
        fast(torch.ones(2, 3, dtype=torch.complex64))

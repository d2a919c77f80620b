"""The cache of plans: a second compilation of the same program runs no compiler, and the cache is bounded and never wrong."""
import enum
import importlib
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import cgc
import pytest
import torch
from cgc import _cache, _export, _program
from numpy.testing import assert_allclose
from torch import nn


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CGC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def runs(monkeypatch):
    """The arguments of each run of the compiler."""
    made = []
    run = _program.run
    monkeypatch.setattr(_program, "run", lambda arguments: (made.append(arguments), run(arguments))[1])
    return made


@pytest.fixture
def exports(monkeypatch):
    """The models that were exported."""
    class Made(list):
        threads = set()

    made, export = Made(), _export.export_program
    made.threads = set()

    def counted(model, *rest, **named):
        made.append(model)
        made.threads.add(threading.current_thread())
        return export(model, *rest, **named)

    monkeypatch.setattr(_export, "export_program", counted)
    return made


def plans(cache):
    return list(cache.glob("*.cgplan"))


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(4, 3).eval()


def compiled(model, x, **settings):
    """The result of a new compiled module, as another process has it."""
    return cgc.compile(model, target="cpu", shapes="wait", **settings)(x)


def test_the_same_program_is_compiled_once(cache, runs):
    x = torch.rand(2, 4)
    want = compiled(linear(), x)
    assert len(runs) == 1 and len(plans(cache)) == 1
    assert (compiled(linear(), torch.rand(2, 4)) != want).any() and (compiled(linear(), x) == want).all()
    assert len(runs) == 1
    # Other weights, another batch, other options are other plans.
    assert_allclose(compiled(linear(1), x), linear(1)(x).detach(), rtol=1e-5, atol=1e-6)
    compiled(linear(), x[:1])
    compiled(linear(), x, options=["-O0"])
    assert len(runs) == 4 and len(plans(cache)) == 4


def test_added_buckets_come_from_the_cache(cache, runs):
    results = []
    for _ in range(2):
        fast = cgc.compile(linear(), target="cpu", shapes="wait")
        results.append([fast(torch.ones(batch, 4)) for batch in (3, 1, 2)])
        assert len(runs) == 3
    for one, other in zip(*results):
        assert (one == other).all()


def test_files_and_steps_come_from_the_cache(cache, runs, tmp_path):
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear().train()

        def forward(self, x):
            return self.linear(x).square().mean()

    for _ in range(2):
        cgc.compile(linear(), torch.rand(2, 4), output=tmp_path / "linear.cgplan", target="cpu")
        cgc.train(Loss().train(), torch.rand(2, 4), optimizer="sgd,lr=0.1", target="cpu")(torch.rand(2, 4))
    assert len(runs) == 2
    cgc.train(Loss().train(), torch.rand(2, 4), optimizer="sgd,lr=0.2", target="cpu")
    assert len(runs) == 3


def test_a_damaged_entry_is_written_anew(cache, runs):
    x = torch.rand(2, 4)
    want = compiled(linear(), x)
    (entry,) = plans(cache)
    whole = entry.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:] for at in range(0, len(whole), len(whole) // 9)]
    for damaged in (whole[:-1], b"", *flipped):
        entry.write_bytes(damaged)
        runs.clear()
        assert (compiled(linear(), x) == want).all()
        assert len(runs) == 1 and entry.read_bytes() == whole


def test_the_cache_is_bounded(cache, monkeypatch):
    x = torch.rand(2, 4)
    compiled(linear(0), x)
    (first,) = plans(cache)
    monkeypatch.setenv("CGC_CACHE_GB", str(2.5 * first.stat().st_size / 1e9))
    compiled(linear(1), x)
    for entry in plans(cache):
        os.utime(entry, (1, 2 if entry == first else 1))  # The first one was used later.
    compiled(linear(2), x)
    assert len(plans(cache)) == 2 and first.exists()


def test_a_known_export_is_kept_while_it_is_used(cache, monkeypatch):
    compiled(linear(0), torch.rand(2, 4))
    of_a_model = sum(file.stat().st_size for file in cache.iterdir())
    _cache.add_export("known", {"x": 1})
    _cache.add_export("unused", {"x": 2})
    for entry in cache.iterdir():
        os.utime(entry, (1, 1))
    assert _cache.find_export("known") == {"x": 1}
    monkeypatch.setenv("CGC_CACHE_GB", str((of_a_model + 12) / 1e9))  # One of the two fits beside a model.
    compiled(linear(1), torch.rand(2, 4))
    assert _cache.find_export("known") == {"x": 1}
    assert _cache.find_export("unused") is None


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch, runs):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CGC_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="the plan is not in the cache .*set CGC_CACHE"):
        assert_allclose(compiled(linear(), torch.ones(2, 4)), linear()(torch.ones(2, 4)).detach(), rtol=1e-5, atol=1e-6)
    monkeypatch.setenv("CGC_CACHE", "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(linear(), torch.ones(2, 4))
    assert len(runs) == 2


def test_two_writers_at_once(cache):
    x, results = torch.rand(2, 4), []
    threads = [threading.Thread(target=lambda model=linear(): results.append(compiled(model, x))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all((result == results[0]).all() for result in results)
    assert len(plans(cache)) == 1 and not [*cache.glob("*.tmp.*")]


FACTOR = 2.0


class Enumerator(enum.IntEnum):
    A = 1


class Keyed(nn.Module):
    """Returns a dict with this key."""

    def __init__(self, key):
        super().__init__()
        self.key = key

    def forward(self, x):
        return {self.key: x + 1}


class Scaled(nn.Module):
    def __init__(self, bias=0.0):
        super().__init__()
        self.linear, self.bias = linear(), bias

    def forward(self, x):
        return {"scaled": self.linear(x) * FACTOR + self.bias + float(os.environ.get("CGC_TEST_BIAS", 0)), "none": None}


def test_a_known_module_is_not_exported(cache, runs, exports):
    x = torch.rand(2, 4)
    want = compiled(Scaled().eval(), x)
    assert len(exports) == 1
    for batch in (2, 2, 3, 3):
        got = compiled(Scaled().eval(), torch.cat([x, x])[:batch])
        assert got["none"] is None and (got["scaled"][:2] == want["scaled"]).all()
    # The plan for three rows was not in the cache, and the model is exported for it.
    assert len(exports) == 2 and len(runs) == 2
    assert (cgc.compile(Scaled().eval(), x, batch=(1, 2), target="cpu")(x)["scaled"] == want["scaled"]).all()


def test_another_module_is_exported(cache, exports, monkeypatch):
    x = torch.rand(2, 4)
    for model in (Scaled(), Scaled(bias=1.0), nn.Sequential(linear()), nn.Sequential(linear(1)), nn.Sequential(linear(), nn.ReLU())):
        assert_allclose(compiled(model.eval(), x)["scaled"] if isinstance(model, Scaled) else compiled(model.eval(), x),
                        model(x)["scaled"].detach() if isinstance(model, Scaled) else model(x).detach(), rtol=1e-5, atol=1e-6)
    assert len(exports) == 5
    compiled(Scaled().eval(), torch.rand(2, 5, 4))
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    compiled(Scaled().eval(), x)
    assert len(exports) == 7


def test_a_changed_source_is_exported(cache, exports, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    x = torch.rand(2, 4)
    (tmp_path / "cgc_test_model.py").write_text("from torch import nn\nimport cgc_test_helper\n\n\nclass Model(nn.Module):\n"
                                                "    def forward(self, x):\n        return cgc_test_helper.change(x)\n")
    for number in (1, 2, 2):
        (tmp_path / "cgc_test_helper.py").write_text(f"def change(x):\n    return x + {number}\n")
        os.utime(tmp_path / "cgc_test_helper.py", (number, number))
        for name in ("cgc_test_model", "cgc_test_helper"):
            sys.modules.pop(name, None)
        module = importlib.import_module("cgc_test_model")
        assert_allclose(compiled(module.Model().eval(), x), x + number)
    assert len(exports) == 2


@pytest.mark.parametrize("shapes", ("wait", "auto"))
def test_what_another_part_of_the_process_has_set_is_noticed(cache, exports, monkeypatch, shapes):
    """Nothing in the module says that the variable is another one."""
    x, model = torch.rand(2, 4), Scaled().eval()
    compiled(model, x)
    monkeypatch.setenv("CGC_TEST_BIAS", "1")
    for fast in (cgc.compile(model, target="cpu", shapes=shapes), cgc.compile(model, x, target="cpu", shapes=shapes)):
        for _ in range(40):
            assert_allclose(fast(x)["scaled"], model(x)["scaled"].detach(), rtol=1e-5, atol=1e-6)
    assert len(exports) >= 2


def test_a_plan_is_not_added_to_that_of_another_export(cache, exports, monkeypatch):
    x, model = torch.rand(2, 4), Scaled().eval()
    compiled(model, x)
    monkeypatch.setenv("CGC_TEST_BIAS", "1")
    assert_allclose(compiled(model, x[:1])["scaled"], model(x[:1])["scaled"].detach(), rtol=1e-5, atol=1e-6)


def test_a_global_variable_is_part_of_the_module(cache, exports, monkeypatch):
    """Of zeros, a factor changes nothing."""
    for factor in (2.0, 3.0):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", factor)
        model = Scaled().eval()
        torch.nn.init.zeros_(model.linear.bias)
        fast = cgc.compile(model, torch.zeros(2, 4), target="cpu", shapes="wait")
        assert_allclose(fast(torch.ones(2, 4))["scaled"], model(torch.ones(2, 4))["scaled"].detach(), rtol=1e-5, atol=1e-6)
    assert len(exports) == 2


class Masked(nn.Module):
    """Has a set of names and an output that is not finite."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cos", torch.rand(4), persistent=False)
        self.register_buffer("sin", torch.rand(4), persistent=False)
        self.cos.fill_(0.5), self.sin.fill_(2.0)

    def forward(self, x):
        return (x * self.cos + self.sin).masked_fill(x > 0.5, -torch.inf)


def test_a_known_module_in_another_process(cache):
    """Sets have another order there."""
    program = ("import sys, torch, cgc; sys.path.insert(0, sys.argv[1]); import test_cache; from cgc import _export\n"
               "if sys.argv[2] != '0': _export.export_program = None\n"
               "x, model = torch.linspace(0, 1, 8).reshape(2, 4), test_cache.Masked().eval()\n"
               "assert (test_cache.compiled(model, x) == model(x)).all()")
    for seed in ("0", "1", "2"):
        subprocess.run([sys.executable, "-c", program, Path(__file__).parent, seed], check=True, env={**os.environ, "PYTHONHASHSEED": seed})


@pytest.mark.parametrize("key", (("a", 1), Enumerator.A), ids=("tuple", "enum"))
def test_a_tree_that_a_file_does_not_hold_is_exported_each_time(cache, exports, key):
    model, x = Keyed(key).eval(), torch.rand(2, 4)
    for _ in range(2):
        assert {type(each) for each in compiled(model, x)} == {type(key)}
    assert len(exports) == 2


def test_an_unchecked_export_is_loaded_in_the_call(cache, exports):
    """With shapes="auto", too: the first result is compared in the same call, and no thread exports the model."""
    x, model = torch.rand(2, 4), Scaled().eval()
    compiled(model, x)
    fast = cgc.compile(model, target="cpu", shapes="auto")
    assert_allclose(fast(x)["scaled"], model(x)["scaled"].detach(), rtol=1e-5, atol=1e-6)
    assert "for batches [2]" in repr(fast) and len(exports) == 1
    cgc.load(fast.save(cache / "saved"))
    for _ in range(2):  # The first one finds that the cache has no plan for it.
        fast(torch.rand(3, 4))
        fast._worker.submit(lambda: None).result()
    assert len(exports) == 2 and {threading.current_thread()} == exports.threads


def test_a_class_in_a_function_is_exported_each_time(cache, exports):
    class Local(nn.Module):
        def forward(self, x):
            return x + 1

    for _ in range(2):
        assert_allclose(compiled(Local().eval(), torch.ones(2, 4)), 2 * torch.ones(2, 4))
    assert len(exports) == 2


def test_a_damaged_export_is_written_anew(cache, exports):
    x = torch.rand(2, 4)
    want = compiled(linear(), x)
    for damaged in ("", "{}", "[1]", '{"digest": "0", "most": 64, "outputs": {"tree": "1"}}'):
        (entry,) = cache.glob("*.json")
        entry.write_text(damaged)
        assert (compiled(linear(), x) == want).all()
        compiled(linear(), x)
    assert len(exports) == 5

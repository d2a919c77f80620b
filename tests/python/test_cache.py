"""The cache of plans: a second compilation of the same program runs no compiler, and the cache is bounded and never wrong."""
import os
import threading
import warnings

import cgc
import pytest
import torch
from cgc import _program
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


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(4, 3).eval()


def compiled(model, x, **settings):
    """The result of a new compiled module, as another process has it."""
    return cgc.compile(model, target="cpu", shapes="wait", **settings)(x)


def test_the_same_program_is_compiled_once(cache, runs):
    x = torch.rand(2, 4)
    want = compiled(linear(), x)
    assert len(runs) == 1 and len(list(cache.iterdir())) == 1
    assert (compiled(linear(), torch.rand(2, 4)) != want).any() and (compiled(linear(), x) == want).all()
    assert len(runs) == 1
    # Other weights, another batch, other options are other plans.
    assert_allclose(compiled(linear(1), x), linear(1)(x).detach(), rtol=1e-5, atol=1e-6)
    compiled(linear(), x[:1])
    compiled(linear(), x, options=["-O0"])
    assert len(runs) == 4 and len(list(cache.iterdir())) == 4


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
    (entry,) = cache.iterdir()
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
    (first,) = cache.iterdir()
    monkeypatch.setenv("CGC_CACHE_GB", str(2.5 * first.stat().st_size / 1e9))
    compiled(linear(1), x)
    for entry in cache.iterdir():
        os.utime(entry, (1, 2 if entry == first else 1))  # The first one was used later.
    compiled(linear(2), x)
    assert len(list(cache.iterdir())) == 2 and first.exists()


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
    assert [entry.suffix for entry in cache.iterdir()] == [".cgplan"]

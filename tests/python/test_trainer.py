"""Trainer of a plan file, without torch: NumPy arrays in, states and losses out."""
import cgc
import numpy
import pytest


@pytest.fixture
def step(plans):
    return cgc.Trainer(plans / "train.cgplan", executor="reference")


def batch():
    random = numpy.random.default_rng(0)
    return random.standard_normal((6, 8), dtype=numpy.float32), random.integers(0, 5, 6)


def test_a_plan_file_trains_with_numpy(step, tmp_path):
    x, y = batch()
    for _ in range(20):
        step(x=x, y=y)
    step.wait()
    losses = step.losses()
    assert [number for number, _ in losses] == list(range(1, 21))
    assert losses[-1][1] < losses[0][1] / 2 and step.losses() == []
    states = step.state_dict()
    assert {name: value.shape for name, value in states.items()} == {"0.weight": (16, 8), "0.bias": (16,), "2.weight": (5, 16),
                                                                      "2.bias": (5,)}
    step.save(tmp_path / "run")
    loss = step.evaluate(x, y)
    step.reset()
    assert step.evaluate(x, y) > loss
    step.load(tmp_path / "run")
    assert step.evaluate(x, y) == loss and step.step_number == 20
    assert step.memory()["states"] > 0


def test_what_a_plan_file_refuses(step, plans):
    x, y = batch()
    y[1] = -7
    with pytest.raises(cgc.UsageError, match="input 'y': element 1 is -7"):
        step(x, y)
    with pytest.raises(cgc.UsageError, match="accumulates no gradients"):
        cgc.Trainer(plans / "train.cgplan", executor="reference", accumulate=2)
    with pytest.raises(cgc.UsageError, match="--train"):
        cgc.Trainer(plans / "tiny.cgplan", executor="reference")
    with pytest.raises(cgc.UsageError, match="made of a plan file"):
        step.sync()

"""train(): the steps are those of torch, from strings and from objects of torch.optim, and can be interrupted."""
import copy
import itertools
import json
import pickle
import signal
import subprocess

import cgc
import numpy
import pytest
import torch
from cgc import _program
from numpy.testing import assert_allclose
from torch import nn

ON = {"cpu": {"target": "cpu"}, "cuda": {"target": "cuda", "executor": "reference"}}
#: Of losses and of parameters after ten steps, in f32: docs/training.md.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


class Step(nn.Module):
    """A tied parameter, one that is frozen, batch norm, and a buffer that no step changes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(8, 8)
        self.tied = nn.Linear(8, 8)
        self.tied.weight = self.inner.weight
        self.norm = nn.BatchNorm1d(8)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.out = nn.Linear(8, 5)
        self.register_buffer("scale", torch.full((8,), 1.5))

    def forward(self, x, y):
        h = self.norm(torch.tanh(self.tied(torch.tanh(self.inner(x)))))
        logits = self.out(self.frozen(h) * self.scale)
        return {"loss": nn.functional.cross_entropy(logits, y), "logits": logits}


def batches(count, rows=6):
    random = torch.Generator().manual_seed(1)
    return [(torch.randn(rows, 8, generator=random), torch.randint(0, 5, (rows,), generator=random)) for _ in range(count)]


def groups_of(model):
    vectors = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    others = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    return [{"params": others}, {"params": vectors, "weight_decay": 0.0, "lr": 0.002}]


OPTIMIZERS = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.002, betas=(0.8, 0.95), eps=1e-4),
    "adamw": lambda model: torch.optim.AdamW(groups_of(model), lr=0.004, weight_decay=0.2, eps=1e-4),
    "adamw_by_name": lambda model: torch.optim.AdamW([{"params": model.inner.parameters(), "lr": 0.001},
                                                      {"params": [*model.out.parameters(), *model.norm.parameters(),
                                                                  model.tied.bias]}], lr=0.004, eps=1e-4),
}


def train_by_torch(model, optimizer, data, scheduler=None):
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = model(x, y)["loss"]
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses


def losses_of(step):
    step.wait()
    numbers, losses = zip(*step.losses())
    assert list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))
    return list(losses)


def assert_equal_states(got, want, **tolerance):
    assert got.keys() == want.keys()
    for name in want:
        assert got[name].dtype == want[name].dtype, name
        assert_allclose(got[name], want[name], err_msg=name, **tolerance)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_torch(name, on):
    model, data = Step().train(), batches(10)
    optimizer = OPTIMIZERS[name](model)
    step = cgc.train(model, data[0], optimizer=optimizer, **ON[on])
    before = copy.deepcopy(model.state_dict())
    for x, y in data:
        step(x, y=y)
    got = losses_of(step)
    assert_equal_states(model.state_dict(), before, rtol=0)  # The model is not changed.
    want = train_by_torch(model, optimizer, data)
    assert_allclose(got, want, **TOLERANCE)
    assert_equal_states(step.state_dict(), model.state_dict(), **TOLERANCE)
    assert step.loss == got[-1] and step.step_number == 10 and step.non_finite == 0


def test_text_gives_the_same_steps_as_an_object():
    model, data = Step().train(), batches(5)
    by_object = cgc.train(model, data[0], optimizer=torch.optim.AdamW(groups_of(model), lr=0.01, weight_decay=0.2), target="cpu")
    by_text = cgc.train(model, data[0], optimizer="adamw,lr=0.01,weight_decay=0.2", target="cpu",
                        groups={"@vectors": {"weight_decay": 0, "lr_scale": 0.2}})
    for batch in data:
        by_object(batch)
        by_text({"x": batch[0], "y": batch[1]})
    assert losses_of(by_object) == losses_of(by_text)


def test_a_function_schedules_the_rate_as_lambda_lr_does():
    def factor(steps):
        return 1 / (1 + steps)

    model, data = Step().train(), batches(6)
    optimizer = torch.optim.SGD(groups_of(model), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    with pytest.raises(cgc.UsageError, match="LR scheduler"):
        cgc.train(model, data[0], optimizer=optimizer, target="cpu")
    step = cgc.train(model, data[0], optimizer=optimizer, schedule=factor, target="cpu")
    for batch in data:
        step(batch)
    assert_allclose(losses_of(step), train_by_torch(model, optimizer, data, scheduler), **TOLERANCE)
    assert_equal_states(step.state_dict(), model.state_dict(), **TOLERANCE)


def test_the_rate_can_be_set():
    model, data = Step().train(), batches(4)
    step = cgc.train(model, data[0], optimizer="sgd,lr=0.1", target="cpu")
    assert step.lr == pytest.approx(0.1)
    step(data[0])
    after = step.state_dict()
    step.lr = 0
    assert step.lr == 0
    step(data[1])
    assert_equal_states({name: step.state_dict()[name] for name in ("inner.weight", "out.bias")},
                        {name: after[name] for name in ("inner.weight", "out.bias")}, rtol=0)
    step.lr = 0.2
    step(data[2])
    assert (step.state_dict()["inner.weight"] != after["inner.weight"]).any()


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 5)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.linear(x), y)


def test_micro_batches_make_one_step():
    model, data = Mean().train(), batches(6)
    step = cgc.train(model, data[0], optimizer="adamw,lr=0.01", accumulate=3, target="cpu")
    for batch in data:
        step(batch)
    whole = [tuple(map(torch.cat, zip(*data[i:i + 3]))) for i in (0, 3)]
    by_torch = torch.optim.AdamW(model.parameters(), lr=0.01)
    want = []
    for x, y in whole:
        by_torch.zero_grad()
        loss = model(x, y)
        loss.backward()
        by_torch.step()
        want.append(loss.item())
    assert_allclose(losses_of(step), want, **TOLERANCE)
    assert_equal_states(step.state_dict(), model.state_dict(), **TOLERANCE)


def test_evaluate_is_the_model_in_evaluation_mode():
    model, data = Step().train(), batches(4)
    step = cgc.train(model, data[0], optimizer="sgd,lr=0.1", batch=[6, 2], target="cpu")
    for batch in data:
        step(batch)
    assert step.sync() is model
    with torch.no_grad():
        want = model.eval()(*data[0])
        got = step.evaluate(*data[0])
        assert got.keys() == want.keys()
        for name in want:
            assert_allclose(got[name], want[name], **TOLERANCE)
        assert_allclose(step.evaluate([each[:2] for each in data[0]])["logits"], want["logits"][:2], **TOLERANCE)
    with pytest.raises(cgc.UsageError, match=r"x\[3, 8\], y\[3\]; compile it for them"):
        step.evaluate([each[:3] for each in data[0]])


def test_averages():
    model, data = Mean().train(), batches(3)
    step = cgc.train(model, data[0], optimizer="sgd,lr=0.1", ema=0.5, target="cpu")
    average = {name: value.clone() for name, value in model.state_dict().items()}
    for batch in data:
        step(batch)
        for name, value in step.state_dict().items():
            average[name] = average[name] * 0.5 + value * 0.5
    assert_equal_states(step.state_dict(average=True), average, **TOLERANCE)


class Noisy(Mean):
    def forward(self, x, y):
        return nn.functional.cross_entropy(self.linear(nn.functional.dropout(x, 0.5, self.training)), y)


def test_a_checkpoint_goes_on_bit_equal(tmp_path):
    data = batches(8)
    steps = [cgc.train(Noisy().train(), data[0], optimizer="adamw,lr=0.01", accumulate=2, target="cpu") for _ in range(2)]
    for step in steps:
        step.seed(7)
    for batch in data[:5]:  # The last one is the first half of a step.
        steps[0](batch)
    steps[0].save(tmp_path / "run")
    steps[1].load(tmp_path / "run")
    assert steps[1].step_number == 2 and steps[1].loss is None
    steps[0].losses()
    for batch in data[5:]:
        for step in steps:
            step(batch)
    assert losses_of(steps[0]) == losses_of(steps[1])
    assert_equal_states(steps[1].state_dict(), steps[0].state_dict(), rtol=0)
    steps[1].reset()
    assert steps[1].step_number == 0
    assert_equal_states(steps[1].state_dict(), Noisy().state_dict(), rtol=0)
    steps[1].load_model(tmp_path / "run")
    assert steps[1].step_number == 0
    assert (steps[1].state_dict()["linear.weight"] != Noisy().linear.weight).any()


def test_an_interrupt_leaves_whole_states(tmp_path):
    data, model = batches(1)[0], Mean().train()
    steps = [cgc.train(model, data, optimizer="adamw,lr=0.01", target="cpu") for _ in range(2)]
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            for _ in itertools.repeat(None):
                steps[0](data)
    finally:
        signal.signal(signal.SIGALRM, handler)
    steps[0].save(tmp_path / "run")
    count = steps[0].step_number
    assert count > 0
    for _ in range(count):
        steps[1](data)
    assert_equal_states(steps[0].state_dict(), steps[1].state_dict(), rtol=0)


def test_the_program_makes_the_same_steps(tmp_path):
    data = batches(10)
    plan = tmp_path / "step.cgplan"
    step = cgc.train(Step().train(), data[0], optimizer="adamw,lr=0.01", output=plan, target="cpu")
    for batch in data:
        step(batch)
    for name, arrays in zip("xy", zip(*data)):
        numpy.save(tmp_path / f"{name}.npy", torch.cat(arrays).numpy())
    done = subprocess.run([_program.PROGRAM, "train", plan, "--data", f"x={tmp_path}/x.npy", f"y={tmp_path}/y.npy",
                           "--steps", "10", "--log-every", "1", "--json"], env=_program.environment(), capture_output=True, text=True,
                          check=True)
    want = [each["loss"] for each in json.loads(done.stdout)["losses"]]
    losses = losses_of(step)
    assert losses == want
    again = cgc.Trainer(plan)
    for x, y in data:
        again(x.numpy(), y.numpy())
    assert losses_of(again) == losses
    assert_equal_states({name: torch.as_tensor(value) for name, value in again.state_dict().items()},
                        {name: value for name, value in step.state_dict().items() if name in again.state_dict()}, rtol=0)


class Nested(nn.Module):
    """Outputs before the loss that are no tensor or several, and tied parameters whose modules run in another order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.z, self.out, self.table = nn.Linear(4, 4), nn.Linear(4, 7), nn.Embedding(7, 4)
        self.table.weight = self.out.weight

    def forward(self, ids, y):
        logits = self.out(self.z(self.table(ids)))
        return None, [logits, logits.sum()], nn.functional.cross_entropy(logits, y), logits.mean()


def test_the_index_of_the_loss_counts_the_outputs_of_forward():
    model, ids = Nested().train(), torch.arange(6)
    step = cgc.train(model, (ids, ids), optimizer="sgd,lr=0", loss=2, target="cpu")
    step(ids, ids)
    step.wait()
    assert step.loss == pytest.approx(model(ids, ids)[2].item(), rel=1e-5)
    for loss, message in ((0, "is None"), (1, "is no tensor"), (4, "it returns 4"), (-1, "it returns 4")):
        with pytest.raises(cgc.UsageError, match=message):
            cgc.train(model, (ids, ids), optimizer="sgd,lr=0", loss=loss, target="cpu")


def test_groups_of_tied_frozen_and_unused_parameters():
    model, ids = Nested().train(), torch.arange(6)
    model.unused = nn.Linear(2, 2)
    model.z.bias.requires_grad_(False)
    tied = [model.out.weight, model.unused.weight, model.z.bias]
    optimizer = torch.optim.SGD([{"params": tied, "lr": 0.5},
                                 {"params": [model.z.weight, model.out.bias, model.unused.bias]}], lr=0.1)
    step = cgc.train(model, (ids, ids), optimizer=optimizer, loss=2, target="cpu")
    for _ in range(3):
        step(ids, ids)
        optimizer.zero_grad()
        model(ids, ids)[2].backward()
        optimizer.step()
    assert_equal_states(step.state_dict(), model.state_dict(), **TOLERANCE)


def test_a_scheduled_rate_survives_a_checkpoint(tmp_path):
    def make():
        return cgc.train(Mean().train(), data[0], optimizer="sgd,lr=0.1", schedule=lambda steps: 0.5 ** steps, target="cpu")

    data = batches(6)
    one, other = make(), make()
    one.lr = 0.4
    for batch in data[:2]:
        one(batch)
    assert one.lr == 0.4
    one.save(tmp_path / "run")
    other.load(tmp_path / "run")
    assert other.lr == pytest.approx(0.4)
    for batch in data[2:]:
        one(batch)
        other(batch)
    assert_equal_states(other.state_dict(), one.state_dict(), rtol=0)
    one.reset()
    assert one.lr == pytest.approx(0.1)


def test_an_interrupt_before_the_update_is_made_up_for(monkeypatch):
    data = batches(8)
    steps = [cgc.train(Mean().train(), data[0], optimizer="sgd,lr=0.1", accumulate=2, target="cpu") for _ in range(2)]
    for number, batch in enumerate(data):
        for step in steps:
            own = step._trainer
            if number == 1 and step is steps[0]:
                class Interrupted:
                    def __getattr__(self, name):
                        if name == "update":
                            raise KeyboardInterrupt
                        return getattr(own, name)

                step._trainer = Interrupted()
                with pytest.raises(KeyboardInterrupt):
                    step(batch)
                step._trainer = own
            else:
                step(batch)
    assert_equal_states(steps[0].state_dict(), steps[1].state_dict(), rtol=0)


class Renamed(Mean):
    """Its state_dict() has other names."""

    def __init__(self):
        super().__init__()
        self.register_state_dict_post_hook(self.rename)

    @staticmethod
    def rename(module, states, prefix, metadata):
        for name in list(states):
            states[f"my.{name}"] = states.pop(name)


def test_state_dict_has_trained_values_under_whatever_names():
    model, data = Renamed().train(), batches(2)
    step = cgc.train(model, data[0], optimizer="sgd,lr=0.1", target="cpu")
    step(data[0])
    train_by_torch(LossOnly(model), torch.optim.SGD(model.parameters(), lr=0.1), data[:1])
    assert_equal_states(step.state_dict(), model.state_dict(), **TOLERANCE)


class LossOnly(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return {"loss": self.model(x, y)}


def refuse(message, **settings):
    model = settings.pop("model", None) or Step().train()
    optimizer = settings.pop("optimizer", "sgd,lr=0.1")
    with pytest.raises(cgc.UsageError, match=message):
        cgc.train(model, batches(1)[0], optimizer=optimizer(model) if callable(optimizer) else optimizer, target="cpu",
                  **settings)


def test_what_is_refused():
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    refuse("in evaluation mode", model=Step().eval())
    refuse("no parameter of the model requires a gradient", model=Step().train().requires_grad_(False))
    refuse("optimizer is Adagrad", optimizer=lambda model: torch.optim.Adagrad(model.parameters()))
    refuse("amsgrad=True", optimizer=lambda model: adam(model.parameters(), amsgrad=True))
    refuse("maximize=True", optimizer=lambda model: sgd(model.parameters(), lr=0.1, maximize=True))
    refuse("parameters that the module does not have", optimizer=lambda model: sgd(Mean().parameters(), lr=0.1))
    refuse("'norm.weight' requires a gradient and is not in the optimizer",
           optimizer=lambda model: sgd([*model.inner.parameters(), model.tied.bias], lr=0.1))
    refuse("eps=1e-06 and eps=1e-08", optimizer=lambda model: adamw(
        [{"params": model.inner.parameters(), "lr": 1e-4, "eps": 1e-6},
         {"params": [*model.out.parameters(), *model.norm.parameters(), model.tied.bias]}], lr=1e-3))
    refuse("leave groups out", groups={"@vectors": {"weight_decay": 0}}, optimizer=lambda model: sgd(model.parameters(), lr=0.1))
    refuse("begins with one of sgd, adam, adamw", optimizer="adagrad")
    refuse("accumulate is 0", accumulate=0)
    refuse("'scale' are 3", clamp={"scale": 3})

    def used(model):
        optimizer = sgd(model.parameters(), lr=0.1, momentum=0.9)
        train_by_torch(model, optimizer, batches(1))
        return optimizer

    refuse("has made steps", optimizer=used)
    refuse("schedule is 3", schedule=3)


def test_a_batch_that_does_not_fit_changes_nothing():
    (x, y), = batches(1)
    step = cgc.train(Mean().train(), (x, y), optimizer="sgd,lr=0.1", target="cpu")
    before = step.state_dict()
    wrong = y.clone()
    wrong[2] = 99
    for batch, message in (((x, wrong), "input 'y': element 2 is 99"), ((x,), "x, y"), ((x, y, y), "3 were given"),
                           ((x.double(), y), "is float64"), ((x[:2], y[:2]), "2")):
        with pytest.raises(cgc.UsageError, match=message):
            step(*batch)
    with pytest.raises(cgc.UsageError, match="'x' is given twice"):
        step(x, x=x, y=y)
    assert step.step_number == 0 and step.loss is None
    assert_equal_states(step.state_dict(), before, rtol=0)
    for of in (pickle.dumps, copy.deepcopy):
        with pytest.raises(cgc.UsageError, match="cannot be pickled"):
            of(step)
    with pytest.raises(cgc.UsageError, match="keeps no averages"):
        step.state_dict(average=True)
    step(x.requires_grad_(), y)
    assert "Trainer of Mean: 1 steps, loss" in repr(step)

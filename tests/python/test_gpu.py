"""Compiled modules, graphs of TorchDynamo and training steps with tensors, streams and threads of torch on a GPU."""
import copy
import json
import subprocess
import threading
import warnings

import cgc
import numpy
import pytest
import test_dynamo
import test_train
import torch
from cgc import _program
from models import needs_gpu
from numpy.testing import assert_allclose
from torch import nn

pytestmark = needs_gpu
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
#: The largest relative L2 error to the model in float64. Torch itself rounds products of float32 to TF32 in some ops.
ERRORS = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}


def exact(model, *arguments):
    """What the model returns in float64, on the host."""
    model = copy.deepcopy(model).cpu().double() if isinstance(model, nn.Module) else model
    given = [each.detach().cpu() for each in arguments]
    with torch.no_grad():
        return model(*(each.double() if each.is_floating_point() else each for each in given))


def assert_near(got, want, dtype=torch.float32):
    assert got.is_cuda and got.dtype == dtype and got.shape == want.shape
    error = ((got.detach().cpu().double() - want).norm() / want.norm()).item()
    assert error <= ERRORS[dtype], error


def tower():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True, norm_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.LayerNorm(64)).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("own_stream", [False, True])
def test_a_compiled_module_runs_on_the_current_stream(dtype, own_stream):
    model = tower().cuda().to(dtype)
    fast = cgc.compile(model, shapes="wait")
    stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for batch in (3, 1, 8, 3):
            x = torch.randn(batch, 20, 64, device="cuda", dtype=dtype)
            for _ in range(20):
                x = x * 0.9 + 0.1  # Work that has not ended when the plan is enqueued.
            got = fast(x) * 2
            assert_near(got, exact(model, x) * 2, dtype)


def test_threads_share_a_compiled_module():
    model = tower().cuda()
    fast = cgc.compile(model, torch.randn(1, 20, 64, device="cuda"), batch=(1, 4))
    inputs = [torch.randn(1 + index % 4, 20, 64, device="cuda") for index in range(8)]
    wanted = [exact(model, x) for x in inputs]
    wrong = []

    def work(index):
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(50):
                got = fast(inputs[index])
                if not torch.allclose(got.cpu().double(), wanted[index], rtol=1e-4, atol=1e-4):
                    wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_model_answers_until_the_plan_does():
    model, x = tower().cuda(), torch.randn(2, 20, 64, device="cuda")
    fast = cgc.compile(model)
    own = fast(x)
    with torch.no_grad():
        assert torch.equal(own, model(x))
    fast._worker.shutdown()
    assert "for batches [2]" in repr(fast)
    for _ in range(3):
        assert_near(fast(x), exact(model, x))


class Pooled(nn.Module):
    """Pools a channels-last tensor into a part of another one: LibTorch changes the strides of its result."""

    def forward(self, x):
        y = nn.functional.layer_norm(x.permute(0, 2, 3, 1), (8,)).permute(0, 3, 1, 2)
        pools = [nn.functional.avg_pool2d(y, 2), nn.functional.max_pool2d(y, 2)]
        return torch.cat(pools, 1), nn.functional.avg_pool2d(y, 2, ceil_mode=True)


def test_pools_of_channels_last_tensors():
    model, x = Pooled().cuda().eval(), torch.randn(3, 8, 6, 6, device="cuda")
    fast = cgc.compile(model, shapes="wait")
    for _ in range(2):
        for got, want in zip(fast(x), exact(model, x)):
            assert_near(got, want)


def test_an_index_out_of_range_is_an_error_of_the_next_call():
    table = nn.Embedding(10, 4).cuda().eval()
    fast = cgc.compile(table, torch.tensor([[1, 2]], device="cuda"), batch=(1, 4), shapes="error")
    good, bad = torch.tensor([[3, 9]], device="cuda"), torch.tensor([[3, 10]], device="cuda")
    fast(bad)
    torch.cuda.synchronize()
    with pytest.raises(cgc.UsageError, match="an earlier run.*10"):
        fast(good)
    with torch.no_grad():
        assert torch.equal(fast(good), table(good))


@pytest.mark.parametrize("name", test_dynamo.MODELS)
def test_graphs_of_dynamo(name):
    torch.compiler.reset()
    make, arguments, _ = test_dynamo.MODELS[name]
    model = make()
    model = model.cuda() if isinstance(model, nn.Module) else model
    fast = torch.compile(model, backend="cgc")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # No graph stays with torch.
        for batch in (3, 5, 3):
            given = [each.cuda() for each in arguments(batch)]
            leaves = torch.utils._pytree.tree_leaves
            for got, want in zip(leaves(fast(*given)), leaves(exact(model, *given))):
                if isinstance(want, torch.Tensor):
                    assert_near(got, want)
                else:
                    assert got == want


@pytest.mark.parametrize("name", test_train.OPTIMIZERS)
@pytest.mark.parametrize("where", ["cuda", "cpu", "pinned"])
def test_training_steps_are_those_of_torch(name, where):
    model, data = test_train.Step().train().cuda(), test_train.batches(10)
    optimizer = test_train.OPTIMIZERS[name](model)
    on_gpu = [[each.cuda() for each in batch] for batch in data]
    step = cgc.train(model, on_gpu[0], optimizer=optimizer)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for x, y in data:
            x, y = (each.cuda() if where == "cuda" else each.pin_memory() if where == "pinned" else each for each in (x, y))
            if where == "cuda":
                x = x * 2 - x  # The stream has not reached it yet.
            step(x, y)
            if where == "pinned":
                step.wait()
            del x, y  # Torch may use the memory for the next batch.
    got = test_train.losses_of(step)
    assert_allclose(got, test_train.train_by_torch(model, optimizer, on_gpu), **TOLERANCE)
    wanted = {key: value.cpu() for key, value in model.state_dict().items()}
    states = {key: value.cpu() for key, value in step.state_dict().items()}
    test_train.assert_equal_states(states, wanted, **TOLERANCE)


def test_a_trained_model_on_the_gpu_is_updated():
    model, data = test_train.Step().train().cuda(), test_train.batches(4)
    step = cgc.train(model, [each.cuda() for each in data[0]], optimizer="adamw,lr=0.01", accumulate=2, autocast="bf16")
    for batch in data:
        step([each.cuda() for each in batch])
    assert step.sync(model) is model and step.step_number == 2
    for key, value in step.state_dict().items():
        assert torch.equal(model.state_dict()[key].cpu(), value.cpu()), key
    logits = step.evaluate([each.cuda() for each in data[0]])["logits"]
    assert_allclose(logits.cpu(), exact(model.eval(), *data[0])["logits"], atol=0.05)


def test_a_label_out_of_range_is_named():
    model, (x, y) = test_train.Mean().train().cuda(), test_train.batches(1)[0]
    step = cgc.train(model, (x.cuda(), y.cuda()), optimizer="sgd,lr=0.1")
    step(x.cuda(), y.cuda())
    with pytest.raises(cgc.Error, match="5"):
        step(x.cuda(), torch.full_like(y, 5).cuda())
        step.wait()


def test_the_program_makes_the_same_steps(tmp_path):
    data, plan = test_train.batches(10), tmp_path / "step.cgplan"
    step = cgc.train(test_train.Step().train().cuda(), [each.cuda() for each in data[0]], optimizer="adamw,lr=0.01", output=plan)
    for batch in data:
        step([each.cuda() for each in batch])
    for name, arrays in zip("xy", zip(*data)):
        numpy.save(tmp_path / f"{name}.npy", torch.cat(arrays).numpy())
    done = subprocess.run([_program.PROGRAM, "train", plan, "--data", f"x={tmp_path}/x.npy", f"y={tmp_path}/y.npy",
                           "--steps", "10", "--log-every", "1", "--json"], env=_program.environment(), capture_output=True,
                          text=True, check=True)
    assert [each["loss"] for each in json.loads(done.stdout)["losses"]] == test_train.losses_of(step)


def test_the_model_is_not_changed_by_training():
    model, data = test_train.Step().train().cuda(), [each.cuda() for each in test_train.batches(1)[0]]
    before = copy.deepcopy(model.state_dict())
    step = cgc.train(model, data, optimizer="sgd,lr=0.1")
    step(data)
    step.wait()
    test_train.assert_equal_states({key: value.cpu() for key, value in model.state_dict().items()},
                                   {key: value.cpu() for key, value in before.items()}, rtol=0)

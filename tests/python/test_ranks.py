"""Training by several ranks: processes with a process group of torch, and `python -m cgc train` under torchrun."""
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import cgc
import numpy
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

#: The folder of the stand-in for NCCL, tests/plugin_libraries/nccl.cpp.
NCCL = os.environ.get("CGC_TEST_NCCL") or str(Path(__file__).parents[2] / "build" / "release" / "lib" / "test_nccl")

#: What each rank runs before the body of a test. `train()` gives the trainer of a rank, or, without a group, that of the whole batch.
PROLOGUE = '''
import atexit, os, sys
from datetime import timedelta
from pathlib import Path
import cgc, numpy, torch
import torch.distributed as dist
from torch import nn

class Step(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.out = nn.Linear(8, width), nn.Linear(width, 5)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.out(torch.tanh(self.inner(x))), y)

def batches(count, rows=8):
    random = torch.Generator().manual_seed(1)
    return [(torch.randn(rows, 8, generator=random), torch.randint(0, 5, (rows,), generator=random)) for _ in range(count)]

def train(example, model=None, **options):
    return cgc.train(model or Step().train(), example, optimizer="adamw,lr=0.01", target="cuda", executor="reference", **options)

def begin():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    atexit.register(dist.destroy_process_group)  # Else torch may abort at the exit.
    rank, ranks = dist.get_rank(), dist.get_world_size()
    return rank, ranks, {"process_group": dist.group.WORLD, "nccl_path": NCCL, "timeout": 20}

def part(batch, rank, ranks):
    return [each.chunk(ranks)[rank] for each in batch]
'''


#: The status of a Python program that an exception ends. Threads of torch may abort it at its exit, in spite of the prologue.
FAILED = (1, -signal.SIGABRT)


def new_store():
    return torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def start(arguments, cwd, ranks=2, store=None, **environment):
    """Runs Python in a process for each rank, with the variables of torchrun. Returns (status, output, errors) of each."""
    store = store or new_store()
    processes = [subprocess.Popen([sys.executable, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                       "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True", **environment})
                 for rank in range(ranks)]
    outputs = [process.communicate(timeout=300) for process in processes]
    return [(process.returncode, *output) for process, output in zip(processes, outputs)]


def run(body, tmp_path):
    """What start() returns for two ranks that run `body`."""
    file = tmp_path / "rank.py"
    file.write_text(f"NCCL = {NCCL!r}\n" + PROLOGUE + textwrap.dedent(body))
    return start([file], tmp_path)


def succeed(outcomes):
    for status, _, errors in outcomes:
        assert status == 0, errors


@pytest.mark.parametrize("options", [{"data_parallel": True}, {"ranks": 2}, {"ranks": 2, "shard_optimizer": True}],
                         ids=["data_parallel", "ranks", "sharded"])
def test_ranks_make_the_steps_of_the_whole_batch(options, tmp_path):
    succeed(run(f'''
        options = {options}
        rank, ranks, settings = begin()
        data = batches(20)
        step = train(part(data[0], rank, ranks) if "data_parallel" in options else data[0], **options, **settings)
        for batch in data:
            step(part(batch, rank, ranks))
        step.wait()
        numpy.savez(f"{{rank}}.npz", losses=[loss for _, loss in step.losses()], **step.state_dict())
        step.save("run" if rank == 0 else "never")
    ''', tmp_path))
    exec(PROLOGUE, one := {"__name__": "one"})
    data = one["batches"](20)
    step = one["train"](data[0])
    for batch in data:
        step(batch)
    step.wait()
    got, other = (dict(numpy.load(tmp_path / f"{rank}.npz")) for rank in range(2))
    assert_allclose(got["losses"], [loss for _, loss in step.losses()], rtol=0, atol=1e-5)
    for name, value in step.state_dict().items():
        assert_allclose(got[name], value, rtol=0, atol=1e-5, err_msg=name)
    for name in got:
        assert_array_equal(got[name], other[name], err_msg=name)
    assert (tmp_path / "run" / "model.safetensors").exists() and not (tmp_path / "never").exists()


def test_checkpoints_and_plan_files_serve_all_ranks(tmp_path):
    succeed(run('''
        rank, ranks, settings = begin()
        data = batches(4)
        step = train(part(data[0], rank, ranks), data_parallel=True, output=f"{rank}.cgplan", **settings)
        for batch in data[:2]:
            step(part(batch, rank, ranks))
        step.save("run")
        for batch in data[2:]:
            step(part(batch, rank, ranks))
        step.wait()
        dist.barrier()  # The checkpoint is there.
        again = cgc.Trainer(f"{rank}.cgplan", executor="reference", **settings)
        again.load("run")
        for batch in data[2:]:
            again(part(batch, rank, ranks))
        again.wait()
        assert again.step_number == 4
        for name, value in step.state_dict().items():
            assert (value.numpy() == again.state_dict()[name]).all(), name
        try:
            again(torch.zeros(4, 8), torch.tensor([0, 1, 99, 2]))
            sys.exit("a label out of range was taken")
        except cgc.UsageError as error:
            assert str(error).startswith(f"rank {rank}: ") and "element 2 is 99" in str(error), error
        try:  # Another rank may have made the step.
            again(part(data[0], rank, ranks))
            sys.exit("the training goes on")
        except cgc.Error as error:
            assert str(error).startswith(f"rank {rank}: "), error
    ''', tmp_path))


def test_the_first_difference_is_named(tmp_path):
    for rank, (status, _, errors) in enumerate(run('''
        rank, ranks, settings = begin()
        train(part(batches(1)[0], rank, ranks), Step(width=16 + rank).train(), data_parallel=True, **settings)
    ''', tmp_path)):
        assert status in FAILED
        assert f"cgc.UsageError: rank {rank}: the ranks differ in the plan: rank 0 has " in errors, errors
    for rank, (status, _, errors) in enumerate(run('''
        rank, ranks, settings = begin()
        train(part(batches(1)[0], rank, ranks), **settings)
    ''', tmp_path)):
        assert status in FAILED and f"rank {rank}: the plan has no collectives, and 2 ranks run it; " in errors, errors
    for rank, (status, _, errors) in enumerate(run('''
        rank, ranks, settings = begin()
        train(part(batches(1)[0], rank, ranks), data_parallel=True, **{**settings, "nccl_path": "missing"})
    ''', tmp_path)):
        assert status in FAILED and "cgc.DeviceError: rank 0: several ranks need NCCL" in errors, errors


def test_a_rank_that_raises_ends_the_others(tmp_path):
    (of_0, _, errors_0), (of_1, _, errors_1) = run('''
        rank, ranks, settings = begin()
        step = train(part(batches(1)[0], rank, ranks), data_parallel=True, **{**settings, "timeout": 15})
        for number, batch in enumerate(batches(1000)):
            if rank == 1 and number == 5:
                raise KeyError("its own reason")
            step(part(batch, rank, ranks))
    ''', tmp_path)
    assert of_0 in FAILED and "cgc.DeviceError: rank 0: " in errors_0, errors_0
    assert of_1 == 1 and errors_1.rstrip().endswith("KeyError: 'its own reason'"), errors_1


def test_a_process_that_an_exception_ends_does_not_wait_for_the_others(tmp_path):
    succeed(run('''
        rank, ranks, settings = begin()
        ended, ends = [train(part(batches(1)[0], rank, ranks), data_parallel=True, **settings) for _ in range(2)]
        runtime = ended._trainer, ends._trainer
        del ended
        runtime[0].poll()
        sys.last_value = KeyError("its own reason")  # As the interpreter sets it.
        del ends
        try:
            runtime[1].poll()
            sys.exit("the communicator is not aborted")
        except cgc.Error as error:
            assert str(error) == f"rank {rank}: the process ends: KeyError('its own reason')", error
    ''', tmp_path))


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """A folder with a plan for ranks, and its data."""
    folder = tmp_path_factory.mktemp("step")
    exec(PROLOGUE, one := {"__name__": "one"})
    data = one["batches"](8, rows=4)
    one["train"](data[0], data_parallel=True, output=folder / "step.cgplan")
    for index, name in enumerate("xy"):
        numpy.save(folder / f"{name}.npy", torch.cat([batch[index] for batch in data]).numpy())
    return folder


TRAIN = ["-m", "cgc", "train", "step.cgplan", "--data", "x=x.npy", "y=y.npy", "--executor", "reference", "--nccl", NCCL, "--json",
         "--log-every", "1", "--timeout", "60"]


def torchrun(*options, **settings):
    return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *map(str, options)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **settings)


def losses_of(*processes):
    outputs = [process.communicate(timeout=300) for process in processes]
    for process, (_, errors) in zip(processes, outputs):
        assert process.returncode == 0, errors
    return [point["loss"] for point in json.loads("".join(output for output, _ in outputs))["losses"]]


def test_torchrun_starts_the_program(step):
    got = losses_of(torchrun("--standalone", "--nproc-per-node", 2, *TRAIN, "--steps", 4, cwd=step))
    alone = subprocess.run([sys.executable, *TRAIN, "--steps", "4"], cwd=step, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    assert len(got) == 4
    assert got != [point["loss"] for point in json.loads(alone.stdout)["losses"]]


def test_torchrun_on_several_hosts_needs_no_folder(step):
    """Two agents of torchrun, as on two hosts."""
    one_host = losses_of(torchrun("--standalone", "--nproc-per-node", 2, *TRAIN, "--steps", 4, cwd=step))
    port = new_store().port
    agents = [torchrun("--nnodes", 2, "--node-rank", node, "--nproc-per-node", 1, "--master-addr", "127.0.0.1", "--master-port", port,
                       *TRAIN, "--steps", 4, cwd=step) for node in range(2)]
    assert losses_of(*agents) == one_host


#: As of torchrun, with each rank on a host of its own.
ON_HOSTS = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "test"}


def test_a_restart_on_several_hosts_has_another_id(step):
    store = new_store()
    for restart in ("0", "1"):
        succeed(start(TRAIN, step, store=store, TORCHELASTIC_RESTART_COUNT=restart, **ON_HOSTS))
    assert store.get("cgc/test/0") != store.get("cgc/test/1")


def test_rank_0_has_a_store_without_that_of_torchrun(step):
    port = str(new_store().port)  # Nobody listens there any more.
    succeed(start(TRAIN, step, **{**ON_HOSTS, "TORCHELASTIC_USE_AGENT_STORE": "", "MASTER_PORT": port}))


def test_the_error_of_rank_0_ends_the_ranks_of_several_hosts(step):
    for status, _, errors in start([part if part != NCCL else "missing" for part in TRAIN], step, **ON_HOSTS):
        assert status == cgc.Code.DEVICE and "cgc train: rank 0: several ranks need NCCL" in errors, errors


@pytest.mark.parametrize("agents", ["True", ""])
def test_a_port_of_somebody_else_ends_the_ranks(step, agents):
    """Who takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        for rank, (status, _, errors) in enumerate(start([*TRAIN, "--timeout", "2"], step, **{
                **ON_HOSTS, "TORCHELASTIC_USE_AGENT_STORE": agents, "MASTER_PORT": port})):
            assert status == cgc.Code.DEVICE, errors
            assert f"cgc train: rank {rank}: the ranks cannot meet at 127.0.0.1:{port} (" in errors, errors


def test_ranks_that_find_no_store_are_told(step):
    port = str(new_store().port)
    (_, (status, _, errors)) = start([*TRAIN, "--timeout", "1"], step, **{**ON_HOSTS, "MASTER_PORT": port})
    assert status == cgc.Code.DEVICE and f"cgc train: rank 1: the ranks cannot meet at 127.0.0.1:{port} (" in errors, errors

#!/usr/bin/env python3
"""Times the training step of ViT-B-32 with ClipLoss over all pairs on several GPUs of one host: DistributedDataParallel,
eager and captured as one CUDA graph, and cgc, in one run. Also compares the losses of cgc with those of one GPU on the
whole batch, and kills a rank. One JSON object on stdout.

    bench/ranks.py --gpus 2 --pairs 64 --cgc build/release/bin/cgc
    bench/ranks.py --gpus 2 --pairs 64 --losses 100
    bench/ranks.py --gpus 2 --pairs 64 --model mlp
    bench/ranks.py --gpus 2 --pairs 4 --model resnet18 --cpu
    bench/ranks.py --gpus 2 --pairs 64 --shard-optimizer

The second one compares losses in f32 with those of DistributedDataParallel and of one GPU, at the rate of a warm-up. The others
only compare losses with those of one rank: of a perceptron, and of ResNet-18 with --sync-batch-norm and without. In f32 a relu
whose input is 0 but for rounding lets the latter drift apart, as a change of the weights by 1e-7 does on one rank; in f64 they
agree. --shard-optimizer also times the step with moments that the ranks divide, and shows the bytes of a rank's states with it and
without; with --cpu the bytes alone. --cpu computes losses by the reference executor and the stand-in for NCCL of the tests, without a GPU.

The loss of DistributedDataParallel is open_clip's, with local_loss and gather_with_grad. All use bf16 and AdamW. With one
GPU the peers do the same without other ranks, and cgc runs the plan of --data-parallel.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch

import training
from gpu_time import milliseconds

WARM_UP_RATE = 1e-5  # The rate of the case amplifies rounding, as --grad-cache on one GPU does.
WARM_UPS, SAMPLES = 12, 30  # DistributedDataParallel needs 11 steps before a capture.
DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64"}


def clip(pairs):
    """The step of bench/training.py, with its inputs and optimizer."""
    torch.manual_seed(0)
    return training.clip(pairs)


def mlp(samples):
    torch.manual_seed(0)
    inputs = {"image": torch.randn(samples, 32), "label": torch.randint(0, 10, (samples,))}
    layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    return training.ClassifierStep(layers), inputs, "adamw,lr=0.001", None


def resnet18(images, dtype):
    import torchvision
    torch.manual_seed(0)
    inputs = {"image": torch.randn(images, 3, 32, 32).to(dtype), "label": torch.randint(0, 1000, (images,))}
    return training.ClassifierStep(torchvision.models.resnet18().to(dtype).train()), inputs, "sgd,lr=0.01,momentum=0.9", None


class GatheredStep(torch.nn.Module):
    def __init__(self, model, rank, ranks):
        super().__init__()
        import open_clip
        self.model = model
        self.loss = open_clip.ClipLoss(local_loss=True, gather_with_grad=True, rank=rank, world_size=ranks)

    def forward(self, image, text):
        return self.loss(*self.model(image, text)[:3])


def peer():
    """A rank of torchrun: prints the times of DistributedDataParallel on rank 0."""
    rank, ranks, pairs = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["PAIRS"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    step, inputs, optimizer_text, autocast = clip(pairs)
    inputs = {name: value.cuda() for name, value in inputs.items()}
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model = torch.nn.parallel.DistributedDataParallel(
            GatheredStep(step.model, rank, ranks).cuda(), device_ids=[torch.cuda.current_device()], static_graph=True,
            gradient_as_bucket_view=True, broadcast_buffers=False)
        optimizer = training.optimizer_of(optimizer_text, [p for p in model.parameters() if p.requires_grad])

        def train():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", autocast, cache_enabled=False):
                loss = model(**inputs)
            loss.backward()
            optimizer.step()

        for _ in range(WARM_UPS):
            train()
        side.synchronize()
        times = {"ddp_eager_ms": milliseconds(train, SAMPLES)}
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            train()
        times["ddp_captured_ms"] = milliseconds(graph.replay, SAMPLES)
    if rank == 0:
        print(json.dumps(times), flush=True)
    torch.cuda.synchronize()
    os._exit(0)  # The graph has to go before the process group.


def peer_losses():
    """A rank of torchrun: prints the losses of DistributedDataParallel on all pairs, in f32, on rank 0."""
    rank, ranks, pairs, steps = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "PAIRS", "LOSSES"))
    device = torch.device("cpu" if "CPU" in os.environ else f"cuda:{os.environ['LOCAL_RANK']}")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    step, inputs, _, _ = clip(ranks * pairs)
    model = torch.nn.parallel.DistributedDataParallel(GatheredStep(step.model, rank, ranks).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=WARM_UP_RATE, weight_decay=0.2)
    losses = []
    for number in range(steps):
        batch = [value.flip(0) if number % 2 else value for value in inputs.values()]
        optimizer.zero_grad()
        loss = model(*(value[rank * pairs:(rank + 1) * pairs].to(device) for value in batch))
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        torch.distributed.all_reduce(loss)
        losses.append(loss.item() / ranks)
    if rank == 0:
        print(json.dumps(losses), flush=True)
    torch.distributed.destroy_process_group()


def torchrun(gpus, *command, **how):
    return subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(gpus), *map(str, command)],
                          stdout=subprocess.PIPE, text=True, **how)


def largest_difference(losses, others):
    return max(abs(a - b) for a, b in zip(losses, others, strict=True))


class Cgc:
    """Plans of a case on the whole batch, and data, in a folder."""

    def __init__(self, cgc, folder, gpus, case, cpu=False):
        self.cgc, self.folder, self.gpus, self.cpu = cgc, folder, gpus, cpu
        step, inputs, self.optimizer, _ = case
        torch.jit.trace(step, tuple(inputs.values()), check_trace=False).save(str(folder / "step.pt"))
        self.inputs = [f"{name}={DTYPES[value.dtype]}{list(value.shape)}".replace(" ", "")
                       for name, value in inputs.items()]
        self.data = []
        for name, value in inputs.items():
            numpy.save(folder / f"{name}.npy", torch.cat([value, value.flip(0)]).numpy())
            self.data.append(f"{name}={folder / name}.npy")

    def compile(self, plan, *options):
        subprocess.run([self.cgc, "compile", self.folder / "step.pt", "-o", self.folder / plan, "--train", "forward",
                        "--optimizer", self.optimizer, "--quiet", *options] + [x for i in self.inputs for x in ("--input", i)],
                       check=True, stdout=subprocess.DEVNULL)

    def arguments(self, plan, steps, *options):
        return ["train", self.folder / plan, "--data", *self.data, "--steps", str(steps), "--json", "--quiet", *options]

    def train(self, gpus, plan, steps, *options):
        cpu = ["--executor", "reference", "--nccl", self.cgc.parents[1] / "lib/test_nccl"] if self.cpu else []
        command = [self.cgc, *self.arguments(plan, steps, *options, *cpu)]
        run = torchrun(gpus, "--no-python", *command) if gpus > 1 else subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            sys.exit(f"cgc train exited with {run.returncode}")
        return json.loads(run.stdout)

    def state_bytes(self, plan):
        """The bytes of the states of the rank that holds most."""
        run = subprocess.run([self.cgc, "memory", self.folder / plan, "--ranks", str(self.gpus), "--json"],
                             check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(run.stdout)["plans"][0]["state_bytes"]

    def losses(self, gpus, plan, steps, *options):
        return [point["loss"] for point in self.train(gpus, plan, steps, "--log-every", "1", *options)["losses"]]

    def difference(self, plan, *options):
        """The largest difference of 50 losses from those of one rank."""
        return largest_difference(self.losses(1, "one.cgplan", 50, *options), self.losses(self.gpus, plan, 50, *options))

    def killed(self):
        """The seconds from the death of a rank to the end of the others, and whether the checkpoint goes on."""
        run = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(self.gpus), "--no-python",
                                self.cgc, *map(str, self.arguments("ranks.cgplan", 10**8, "--checkpoint", self.folder / "run",
                                                                   "--checkpoint-every", "20", "--log-every", 10**8))])
        while not (self.folder / "run/model.safetensors").exists():
            time.sleep(0.1)
        ranks = subprocess.run(["pgrep", "-P", str(run.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
        os.kill(int(ranks[-1]), signal.SIGKILL)
        began = time.monotonic()
        run.wait()
        seconds = time.monotonic() - began
        resumed = self.train(self.gpus, "ranks.cgplan", 2, "--resume", self.folder / "run")
        return {"seconds": round(seconds, 1), "resumed_at_step": resumed["first_step"]}


def normalized(args, dtype):
    """The largest differences of losses from those of one rank."""
    with tempfile.TemporaryDirectory() as folder:
        cgc = Cgc(args.cgc.resolve(), Path(folder), args.gpus, resnet18(args.gpus * args.pairs, dtype), args.cpu)
        cgc.compile("one.cgplan")
        differences = {}
        for name, *options in (("synchronized", "--sync-batch-norm"), ("local",)):
            cgc.compile("ranks.cgplan", "--data-parallel", "--batch", str(args.pairs), *options)
            differences[name] = cgc.difference("ranks.cgplan")
    return differences


def compared(args):
    """The largest differences of the losses of cgc from those of DistributedDataParallel and of one rank."""
    with tempfile.TemporaryDirectory() as folder:
        cgc = Cgc(args.cgc.resolve(), Path(folder), args.gpus, clip(args.gpus * args.pairs), args.cpu)
        cgc.compile("one.cgplan")
        cgc.compile("ranks.cgplan", "--ranks", str(args.gpus))
        rate = ("--lr", str(WARM_UP_RATE))
        losses = cgc.losses(args.gpus, "ranks.cgplan", args.losses, *rate)
        result = {"first": losses[0], "last": losses[-1],
                  "from_one_rank": largest_difference(losses, cgc.losses(1, "one.cgplan", args.losses, *rate))}
    peers = torchrun(args.gpus, __file__, env={**os.environ, "PAIRS": str(args.pairs), "LOSSES": str(args.losses),
                                               **({"CPU": "1"} if args.cpu else {})})
    if peers.returncode != 0:
        sys.exit(f"DistributedDataParallel exited with {peers.returncode}")
    return {**result, "from_ddp": largest_difference(losses, json.loads(peers.stdout))}


def perceptron(args):
    """The largest difference of losses from those of one rank."""
    with tempfile.TemporaryDirectory() as folder:
        cgc = Cgc(args.cgc.resolve(), Path(folder), args.gpus, mlp(args.gpus * args.pairs), args.cpu)
        cgc.compile("one.cgplan")
        cgc.compile("ranks.cgplan", "--ranks", str(args.gpus))
        return {"from_one_rank": cgc.difference("ranks.cgplan")}


def divided(args):
    with tempfile.TemporaryDirectory() as folder:
        cgc = Cgc(args.cgc.resolve(), Path(folder), args.gpus, clip(args.gpus * args.pairs), args.cpu)
        for plan, *option in (("ranks",), ("sharded", "--shard-optimizer")):
            cgc.compile(f"{plan}.cgplan", "--autocast", "bf16", "--ranks", str(args.gpus), *option)
        return {"state_bytes": {plan: cgc.state_bytes(f"{plan}.cgplan") for plan in ("ranks", "sharded")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=64, help="pairs or images of a rank [64]")
    parser.add_argument("--cgc", type=Path, default=training.ROOT / "build/release/bin/cgc")
    parser.add_argument("--model", choices=("clip", "mlp", "resnet18"), default="clip")
    parser.add_argument("--losses", type=int, metavar="STEPS", help="only compare so many losses of ViT-B-32")
    parser.add_argument("--shard-optimizer", action="store_true", help="also divide the moments of AdamW among the ranks")
    parser.add_argument("--cpu", action="store_true", help="compare losses without a GPU")
    args = parser.parse_args()
    if args.model == "mlp":
        print(json.dumps(perceptron(args), indent=2))
        return
    if args.model == "clip" and args.losses:
        print(json.dumps(compared(args), indent=2))
        return
    if args.model == "resnet18":
        result = {dtype: normalized(args, dtype) for dtype in (torch.float32, torch.float64)}
        print(json.dumps({DTYPES[dtype]: differences for dtype, differences in result.items()}, indent=2))
        return
    if args.shard_optimizer and args.cpu:
        print(json.dumps(divided(args), indent=2))
        return
    if args.cpu:
        parser.error("--cpu compares losses: give --losses or another --model")
    result = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "gpus": args.gpus, "pairs": args.pairs}
    peers = torchrun(args.gpus, __file__, env={**os.environ, "PAIRS": str(args.pairs)})
    result["ddp"] = json.loads(peers.stdout) if peers.returncode == 0 else f"exited with {peers.returncode}"
    print(json.dumps(result), file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cgc = Cgc(args.cgc, Path(folder), args.gpus, clip(args.gpus * args.pairs))
        many = ["--ranks", str(args.gpus)] if args.gpus > 1 else ["--data-parallel"]
        cgc.compile("ranks.cgplan", "--autocast", "bf16", *many)
        steps = 200
        result["cgc_ms"] = cgc.train(args.gpus, "ranks.cgplan", steps)["seconds"] / steps * 1000
        print(json.dumps(result), file=sys.stderr, flush=True)
        if args.shard_optimizer:
            cgc.compile("sharded.cgplan", "--autocast", "bf16", *many, "--shard-optimizer")
            result["cgc_sharded_ms"] = cgc.train(args.gpus, "sharded.cgplan", steps)["seconds"] / steps * 1000
            result["state_bytes"] = {plan: cgc.state_bytes(f"{plan}.cgplan") for plan in ("ranks", "sharded")}
        if args.gpus > 1:
            cgc.compile("ranks_f32.cgplan", *many)
            cgc.compile("one.cgplan")
            result["largest_loss_difference"] = cgc.difference("ranks_f32.cgplan", "--lr", str(WARM_UP_RATE))
            result["killed"] = cgc.killed()
    print(json.dumps(result, indent=2))


if "LOSSES" in os.environ:
    peer_losses()
elif "PAIRS" in os.environ:
    peer()
else:
    main()

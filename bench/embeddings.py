#!/usr/bin/env python3
"""Pictures per second, from JPEG files to vectors: cgc.Model.encode_image beside open_clip with a DataLoader.

    embeddings.py --model ViT-B-32 --target cpu --pictures 512 --workers 2
    embeddings.py --model ViT-L-14 --precision fp16 --target cuda --pictures 8192 --workers 16 --compile reduce-overhead

Both have the same RANDOM WEIGHTS and as many processors, and take turns. The DataLoader of open_clip's transform keeps its
workers between rounds. --compile also gives open_clip's tower to torch.compile with each of these modes; the fastest is the
peer. Prints a line for each round, medians, and the largest distance of vectors.
"""
import argparse
import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import cgc
import numpy
import open_clip
import torch
from PIL import Image


def make_pictures(folder, count, width, height, distinct=256):
    """JPEG files of as many bytes as photographs."""
    random = numpy.random.default_rng(0)
    paths = []
    for index in range(count):
        path = folder / f"{index:06}.jpg"
        if index < distinct:
            coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=numpy.uint8))
            coarse = coarse.resize((width, height), Image.Resampling.BICUBIC)
            noise = random.normal(0, 12, (height, width, 3))
            Image.fromarray((numpy.asarray(coarse) + noise).clip(0, 255).astype(numpy.uint8)).save(path, quality=90)
        else:
            os.link(paths[index % distinct], path)
        paths.append(path)
    return paths


class Pictures(torch.utils.data.Dataset):
    def __init__(self, paths, transform):
        self.paths, self.transform = paths, transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]))


def peers(args, model, paths):
    """The functions of paths that open_clip's users have, by name."""
    device = "cuda" if args.target == "cuda" else "cpu"
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[args.precision]
    model = model.to(device, dtype)
    transform = open_clip.transform.image_transform_v2(
        open_clip.transform.PreprocessCfg(**open_clip.get_model_preprocess_cfg(model)), is_train=False)
    loader = torch.utils.data.DataLoader(Pictures(paths, transform), batch_size=args.batch, num_workers=args.workers,
                                         pin_memory=device == "cuda", persistent_workers=args.workers > 0, drop_last=False)

    def encode(tower):
        with torch.inference_mode():
            rows = [tower(batch.to(device, dtype, non_blocking=True)).float() for batch in loader]
            return torch.nn.functional.normalize(torch.cat(rows), dim=-1).cpu().numpy()

    found = {"open_clip": lambda: encode(model.encode_image)}
    for mode in args.compile:
        tower = torch.compile(model.encode_image, mode=mode)
        found[f"open_clip, torch.compile {mode}"] = lambda tower=tower: encode(lambda batch: tower(batch).clone())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="ViT-B-32")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "bf16"))
    parser.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--pictures", type=int, default=2048)
    parser.add_argument("--size", default="500x375", help="of the pictures, in pixels [%(default)s]")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", nargs="*", default=[], metavar="MODE")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = make_pictures(folder, args.pictures, *map(int, args.size.split("x")))
        cgc.openclip.export(folder / "model", args.model, batch=args.batch, precision=args.precision, target=args.target)
        torch.manual_seed(0)
        reference = open_clip.create_model(args.model).eval()
        with cgc.load(folder / "model", contexts=2) as model:
            towers = {"cgc": lambda: model.encode_image(paths), **peers(args, reference, paths)}
            rates, vectors = {tower: [] for tower in towers}, {}
            for tower, run in towers.items():
                vectors[tower] = run()  # Compiles, starts workers.
            for number in range(args.rounds):
                for tower, run in towers.items():
                    begin = time.perf_counter()
                    run()
                    rates[tower].append(args.pictures / (time.perf_counter() - begin))
                print(f"round {number + 1}: " + ", ".join(f"{tower} {rates[tower][-1]:.1f}" for tower in towers), flush=True)
    best = max((tower for tower in towers if tower != "cgc"), key=lambda tower: statistics.median(rates[tower]))
    distances = numpy.linalg.norm(vectors["cgc"] - vectors["open_clip"], axis=1)
    for tower in towers:
        print(f"{tower}: {statistics.median(rates[tower]):.1f} pictures/s")
    print(f"cgc is {statistics.median(own / peer for own, peer in zip(rates['cgc'], rates[best])):.2f} times {best} (median of rounds); "
          f"largest distance of vectors {distances.max():.1e}")


if __name__ == "__main__":
    main()

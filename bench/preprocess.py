#!/usr/bin/env python3
"""Measures preprocessing from JPEG bytes to a float32 tensor beside open_clip's transform, in batches of 8 on one thread.

    preprocess.py [--pairs 30] [--sizes 500x375,1920x1080] [--files cat.jpg ...]

Prints pictures a second of processor time: medians of pairs of runs that follow each other, and the median of the pairs' ratios. Checks
that the results are equal to the bit. Without files the pictures are made: noise whose spectrum falls with the
frequency, as that of photographs, 4:2:0, quality 90. Needs torch, open_clip and Pillow.
"""
import argparse
import io
import statistics
import time

import cgc
import numpy
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image


def photograph(width, height, seed):
    """A JPEG file of noise with the spectrum 1/f."""
    rng = numpy.random.default_rng(seed)
    frequencies = numpy.hypot(numpy.fft.fftfreq(height)[:, None] * height, numpy.fft.rfftfreq(width)[None] * width)
    spectrum = rng.normal(size=(2, 3, *frequencies.shape)) / numpy.maximum(frequencies, 1) ** 1.2
    values = numpy.fft.irfft2(spectrum[0] + 1j * spectrum[1], (height, width))
    values = values.mean(0) * 2 + values  # Colors differ less than brightness.
    values = 128 + 55 * values / values.std()
    file = io.BytesIO()
    Image.fromarray(values.clip(0, 255).astype(numpy.uint8).transpose(1, 2, 0)).save(file, "JPEG", quality=90)
    return file.getvalue()


def seconds(call, files):
    begin = time.process_time()
    call(files)
    return (time.process_time() - begin) / len(files)


def report(name, files, pairs):
    preprocess = cgc.Preprocess({"size": 224})
    transform = image_transform_v2(PreprocessCfg(size=224), is_train=False)

    def ours(batch):
        return preprocess(batch, threads=1).pixels

    def theirs(batch):
        return torch.stack([transform(Image.open(io.BytesIO(file))) for file in batch]).numpy()

    def decode(batch):
        for file in batch:
            Image.open(io.BytesIO(file)).load()

    numpy.testing.assert_array_equal(ours(files), theirs(files))
    times = [(seconds(ours, files), seconds(theirs, files), seconds(decode, files)) for _ in range(pairs)]
    rates = [1 / statistics.median(column) for column in zip(*times)]
    ratio = statistics.median(other / own for own, other, _ in times)
    print(f"{name:12} {sum(map(len, files)) / len(files) / 1000:6.0f} kB | open_clip {rates[1]:6.0f}/s | cgc {rates[0]:6.0f}/s | "
          f"{ratio:.2f}x | Pillow's decode alone {rates[2]:6.0f}/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--sizes", default="500x375,1920x1080")
    parser.add_argument("--files", nargs="+", default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.files:
        report("files", [open(file, "rb").read() for file in args.files], args.pairs)
        return
    for size in args.sizes.split(","):
        width, height = map(int, size.split("x"))
        report(size, [photograph(width, height, seed) for seed in range(8)], args.pairs)


if __name__ == "__main__":
    main()

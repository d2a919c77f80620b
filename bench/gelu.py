#!/usr/bin/env python3
"""Prints how far off the GELU of products in f16 and bf16 is (geluRest in runtime/kernels/activations.cuh), for every
f16, or bf16, x: its steps in f16 with one rounding each, and a correctly rounded 2^x where the GPU has one that is off
by up to a unit more. Weighted as if x were normally distributed. Needs numpy."""
import math

import numpy as np

COEFFICIENTS = (-0.0101165771484375, 0.09417724609375, -0.390380859375, -1.8515625, -2.30078125)


def f16(values):
    return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)


def bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def rest(x):
    """Half of |x|, and the weight that it gets."""
    half = f16(np.minimum(f16(np.abs(x) * 0.5), 2.8))
    p = np.full_like(half, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        p = f16(p * half + coefficient)
    return half, f16(2.0 ** f16(p * half))


def report(name, x, gelu, rounded):
    x = np.unique(x[np.isfinite(x) & (np.abs(x) < 12)])
    exact = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x])
    density = np.exp(-x * x / 2) * np.gradient(x)
    off, rounding = gelu(x) - exact, rounded(exact) - exact
    for where, mask in (("all x", x == x), ("x < 0", x < 0), ("x > 0", x > 0)):
        rms = [math.sqrt((density[mask] * e[mask] ** 2).sum() / density[mask].sum()) for e in (off, rounding)]
        print(f"{name}, {where}: {rms[0] / rms[1]:.2f} times the rounding of the exact result, "
              f"at most {np.abs(off[mask]).max():.2e} off")


def main():
    every = np.arange(65536, dtype=np.uint16)
    report("f16", every.view(np.float16).astype(np.float64),
           lambda x: f16(np.maximum(x, 0) - rest(x)[0] * rest(x)[1]), f16)
    report("bf16", (every.astype(np.uint32) << 16).view(np.float32).astype(np.float64),
           lambda x: bf16(np.maximum(x, 0) - f16(rest(x)[0] * rest(x)[1])), bf16)


if __name__ == "__main__":
    main()

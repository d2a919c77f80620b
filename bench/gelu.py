#!/usr/bin/env python3
"""Prints the error of the GELU in the epilogues of GEMMs in f16 and bf16 (geluRest in
runtime/kernels/pointwise/activations.cuh) over every f16, or bf16, x. Emulates the steps of the GPU in f16 with one
rounding each. Weights the errors as if x were normally distributed, with standard deviations of 0.1, 0.5, 1 and 2.
Then prints the error beyond one rounding, which kGeluError in tests/conformance/gemm_numbers.h bounds. Needs
numpy."""
import math

import numpy as np

DEVIATIONS = (0.1, 0.5, 1, 2)
LARGEST = 3.796875
COEFFICIENTS = (-0.006298065185546875, 0.05029296875, -0.07659912109375, -0.275634765625, 0.70654296875)


def f16(values):
    return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)


def bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def rest(x):
    """|x|, up to LARGEST, and Phi(-|x|)."""
    size = np.minimum(f16(np.abs(x)), LARGEST)
    p = np.full_like(size, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        p = f16(p * size + coefficient)
    return size, f16(p * p)


def rms(errors, x, deviation):
    density = np.exp(-((x / deviation) ** 2) / 2) * np.gradient(x)
    return math.sqrt((density * errors**2).sum() / density.sum())


def report(name, x, gelu, rounded, half_unit):
    x = np.unique(x[np.isfinite(x) & (np.abs(x) < 12)])
    exact = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x])
    off, rounding = gelu(x, *rest(x)) - exact, rounded(exact) - exact
    for where, mask in (("all x", x == x), ("x < 0", x < 0), ("x > 0", x > 0)):
        ratios = [rms(off[mask], x[mask], d) / rms(rounding[mask], x[mask], d) for d in DEVIATIONS]
        print(f"{name}, {where}: {', '.join(f'{r:.2f}' for r in ratios)} times the rounding of the exact result "
              f"with deviations of {', '.join(map(str, DEVIATIONS))}; at most {np.abs(off[mask]).max():.2e} off")
    beyond = (np.abs(off) - half_unit * np.abs(exact)).max()
    print(f"{name}, all x: at most {beyond:.2e} beyond half a unit of the exact result")


def main():
    print(f"near 0: {abs(2 * rest(np.zeros(1))[1][0] - 1):.2%} of the result off, before it is rounded")
    every = np.arange(65536, dtype=np.uint16)
    report("f16", every.view(np.float16).astype(np.float64),
           lambda x, size, weight: f16(np.maximum(x, 0) - size * weight), f16, 2.0 ** -11)
    report("bf16", (every.astype(np.uint32) << 16).view(np.float32).astype(np.float64),
           lambda x, size, weight: bf16(np.maximum(x, 0) - f16(size * weight)), bf16, 2.0 ** -8)


if __name__ == "__main__":
    main()

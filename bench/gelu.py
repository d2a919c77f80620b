#!/usr/bin/env python3
"""Prints how far off the GELU of products in f16 and bf16 is (geluRest in runtime/kernels/activations.cuh), for every
f16, or bf16, x: its steps in f16 with one rounding each, and a correctly rounded 2^x. Weighted as if x were normally
distributed. Then how far off it is at most if 2^x is as far off as PTX allows the GPU's to be: the bound of
tests/conformance/product_activations_test.cpp. Needs numpy."""
import math

import numpy as np

EXP2_ERROR = 2.0 ** -9.9  # Of ex2.approx.f16x2, relative.
COEFFICIENTS = (0.03594970703125, -0.30029296875, -1.9013671875, -2.291015625)


def f16(values):
    return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)


def bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def rest(x, exp2_error):
    """Half of |x|, and the weight that it gets, of a 2^x that is `exp2_error` of itself off."""
    half = f16(np.minimum(f16(np.abs(x) * 0.5), 2.8))
    p = np.full_like(half, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        p = f16(p * half + coefficient)
    return half, f16(2.0 ** f16(p * half) * (1 + exp2_error))


def report(name, x, gelu, rounded, half_unit):
    x = np.unique(x[np.isfinite(x) & (np.abs(x) < 12)])
    exact = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x])
    density = np.exp(-x * x / 2) * np.gradient(x)
    off, rounding = gelu(x, *rest(x, 0)) - exact, rounded(exact) - exact
    for where, mask in (("all x", x == x), ("x < 0", x < 0), ("x > 0", x > 0)):
        rms = [math.sqrt((density[mask] * e[mask] ** 2).sum() / density[mask].sum()) for e in (off, rounding)]
        print(f"{name}, {where}: {rms[0] / rms[1]:.2f} times the rounding of the exact result, "
              f"at most {np.abs(off[mask]).max():.2e} off")
    off = [np.abs(gelu(x, *rest(x, e)) - exact) for e in (-EXP2_ERROR, 0, EXP2_ERROR)]
    print(f"{name}, with any 2^x: at most {(np.max(off, axis=0) - half_unit * np.abs(exact)).max():.2e} "
          f"beyond half a unit of the exact result")


def main():
    every = np.arange(65536, dtype=np.uint16)
    report("f16", every.view(np.float16).astype(np.float64),
           lambda x, half, weight: f16(np.maximum(x, 0) - half * weight), f16, 2.0 ** -11)
    report("bf16", (every.astype(np.uint32) << 16).view(np.float32).astype(np.float64),
           lambda x, half, weight: bf16(np.maximum(x, 0) - f16(half * weight)), bf16, 2.0 ** -8)


if __name__ == "__main__":
    main()

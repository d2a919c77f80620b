#!/usr/bin/env python3
"""Prints runtime/kernels/sm90/wgmma.cuh: one wrapper of `wgmma.mma_async` for each width that the kernels use.

A template cannot write the asm statement, which names each accumulator register.
Usage: scripts/generate_wgmma.py > runtime/kernels/sm90/wgmma.cuh
"""

WIDTHS = [8, 16, 32, 64, 80, 88, 112, 128, 136, 144, 176, 192, 208, 256]

HEADER = """\
// wgmma.mma_async of a warpgroup, with 64 x K and kWidth x K tiles in shared memory: K is 16 for
// 16-bit floats and 8 for TF32. Written by scripts/generate_wgmma.py.
// clang-format off
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace cgc::device {

/// 32 bits, of which the upper 19 count.
struct Tf32;

/// Starts d += a b^T, or d = a b^T unless `accumulate`, for a 64 x K tile a and a kWidth x K tile b, given by
/// shared-memory descriptors. Asynchronous: see wgmmaCommit. All four warps of a warpgroup call it together.
template <class T, int kWidth> struct Wgmma;
/// Starts d += a^T b, or d = a^T b unless `accumulate`, for a 16 x 64 tile a and a 16 x kWidth tile b, given by
/// columnsDescriptor(). Otherwise as Wgmma.
template <class T, int kWidth> struct WgmmaOfColumns;
"""

FOOTER = """
} // namespace cgc::device
// clang-format on"""


def wrapper(cpp, ptx, width, k=16, transposes=", 0, 0", name="Wgmma"):
    count = width // 2
    registers = ", ".join(f"%{i}" for i in range(count))
    operands = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return f"""
template <> struct {name}<{cpp}, {width}> {{
  __device__ static void run(float (&d)[{count}], uint64_t a, uint64_t b, bool accumulate) {{
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{count + 2}, 0; "
                 "wgmma.mma_async.sync.aligned.m64n{width}k{k}.f32.{ptx}.{ptx} {{{registers}}}, %{count}, %{count + 1}, p, 1, 1{transposes}; }}"
                 : {operands}
                 : "l"(a), "l"(b), "r"(int(accumulate)));
  }}
}};"""


print(HEADER, end="")
for cpp, ptx in (("__half", "f16"), ("__nv_bfloat16", "bf16")):
    for width in WIDTHS:
        print(wrapper(cpp, ptx, width))
    print(wrapper(cpp, ptx, 192, transposes=", 1, 1", name="WgmmaOfColumns"))
print(wrapper("Tf32", "tf32", 64, k=8, transposes=""))
print(FOOTER)

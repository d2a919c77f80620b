// KernelArguments: the one parameter of every kernel of the fake GPU, which has the kernel's
// operands and numbers.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>

namespace cgc::test::fake_cuda {

/// The arguments of a launch by value, so that a launch can copy them as CUDA copies a parameter.
struct KernelArguments {
  static constexpr size_t kMaxRank = 16; ///< As validate() allows.
  struct Operand {
    void *data; ///< Null if the operand is absent.
    DType dtype;
    bool isStrided; ///< Else it is dense, and `strides` are not set.
    uint32_t rank;
    int64_t sizes[kMaxRank], strides[kMaxRank];
  };
  static constexpr size_t kFewReads = 8, kFewWrites = 4;
  uint32_t readCount, writeCount, intCount, floatCount;
  /// The leading rows of the results that a kernel with a tail launch computes; its tail launch
  /// computes the others. Negative without a tail launch.
  int64_t mainRows = -1;
  /// The CTAs of the launch and of its tail launch, and the threads of a CTA.
  uint32_t grid[3], tailBlocks, block[3];
  Operand fewReads[kFewReads], fewWrites[kFewWrites];
  /// The operands of a launch that has more, which live until the program ends; else null.
  const Operand *manyReads, *manyWrites;
  int64_t ints[8];
  double floats[4];

  std::span<const Operand> reads() const { return {manyReads ? manyReads : fewReads, readCount}; }
  std::span<const Operand> writes() const {
    return {manyWrites ? manyWrites : fewWrites, writeCount};
  }
};

/// The exported C function of a program with the fake GPU that enqueues a GEMM of cuBLASLt's
/// stand-in as a kernel: cudaError_t(const KernelArguments &, cudaStream_t). The arguments are
/// those of the library call cublaslt.matmul.
inline constexpr const char *kLaunchGemmSymbol = "cgcFakeCudaLaunchGemm";

/// Whether `function` is that of a row of kernels.def, or of cublaslt.matmul.
bool isKernel(const void *function);
/// The first operand that does not lie in memory that `isAccessible` accepts; null if all do.
const KernelArguments::Operand *
inaccessibleOperand(const KernelArguments &arguments,
                    const std::function<bool(const std::byte *, uint64_t bytes)> &isAccessible);
/// Whether the launch, or tail launch, has the shape that its parameter was made for. On a GPU,
/// another shape leaves results out.
bool hasBoundShape(const void *function, const KernelArguments &arguments, dim3 grid, dim3 block);
/// Computes the launch, or tail launch, with the kernel's reference.
void runReference(const void *function, const KernelArguments &arguments);

} // namespace cgc::test::fake_cuda

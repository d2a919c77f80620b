// The interface of libcgc_reference: for each kernel a function in plain C++ that computes the same
// on host memory. The runtime opens the library with dlopen for the reference executor.
#pragma once

#include "runtime/base/tensor_view.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cgc {

/// The version of this interface.
inline constexpr uint32_t kReferenceAbi = 1;
inline constexpr const char *kReferenceLibrary = "libcgc_reference.so";
inline constexpr const char *kReferenceSymbol = "cgcReferences";

/// The operands of a launch in host memory, and its numbers. Launch shapes do not change results,
/// so references do not get them. Dense tensors have empty strides; an absent optional tensor has
/// null data.
struct ReferenceArguments {
  std::span<const TensorView> reads, writes;
  std::span<const int64_t> ints;
  std::span<const double> floats;
};

/// Computes a launch that the kernel's own checks accept. Rounds where the kernel rounds and
/// accumulates in f32; sums may be in another order. Does not throw, except std::bad_alloc.
using ReferenceFunction = void (*)(const ReferenceArguments &arguments);

/// The reference of a kernel, or of the library call cublaslt.matmul (runtime/plan/gemm_call.h).
struct Reference {
  std::string_view name; ///< As in kernels.def; "cublaslt.matmul".
  uint64_t abiHash;      ///< The kernel's ABI hash; 0 for a library call.
  ReferenceFunction run;
};

/// All references of a library.
struct References {
  const Reference *data;
  size_t size;
};

/// The type of the symbol kReferenceSymbol: returns the library's references, which live as long as
/// it is loaded, or null if `abi` is not the library's.
using ReferencesEntry = const References *(*)(uint32_t abi);

} // namespace cgc

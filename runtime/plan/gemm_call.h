// ProductCall: the library call cublaslt.matmul, a matrix product with what may be fused into it.
#pragma once

#include "runtime/plan/plan.h"

#include "runtime/base/status.h"

namespace cgc {

/// d = x w^T + bias + residual, or d = relu(x w^T + bias). All matrices have one element type, f16,
/// bf16 or f32, and rows without gaps; rows may lie apart. Sums are in f32.
struct ProductCall {
  TensorId x{};      ///< [M,K]
  TensorId weight{}; ///< [N,K]
  /// Dense [N], at a multiple of kBiasAlignment bytes; may be kNoTensor.
  TensorId bias = kNoTensor;
  TensorId residual = kNoTensor; ///< [M,N], may be kNoTensor and may be d; not with relu.
  TensorId d{};                  ///< [M,N]
  TensorId workspace{};          ///< Dense bytes for the library's own use.
  bool relu = false;
  bool tf32 = false; ///< f32 only: the factors may be rounded to 10 bits of mantissa.
};
inline constexpr uint64_t kBiasAlignment = 16;

inline constexpr const char *kProductLibrary = "cublaslt";
/// Whether `call` is a cublaslt.matmul.
CGC_API bool isProduct(const LibraryCall &call);
/// The record of `product`: reads {x, weight, bias, residual}, writes {d, workspace}, ints
/// {relu, tf32}.
CGC_API LibraryCall libraryCall(const ProductCall &product);
/// The inverse, for a call whose tensors exist. InvalidFile, with what is wrong, if the library
/// could leave its tensors or does not compute this.
CGC_API Result<ProductCall> productCall(const LibraryCall &call,
                                        std::span<const TensorRef> tensors);

/// Elements from one row of a matrix to the next; the columns, if there is one row.
inline int64_t rowStride(const TensorRef &matrix) {
  return matrix.sizes[0] == 1 ? matrix.sizes[1] : matrix.strides[0];
}

} // namespace cgc

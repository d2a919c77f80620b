// GemmCall: the library call cublaslt.matmul, a GEMM with bias, and relu or a residual.
#pragma once

#include "runtime/plan/plan.h"

#include "runtime/base/status.h"

namespace cgc {

/// d = x w^T + bias + residual, or d = relu(x w^T + bias). All matrices have one element type, f16,
/// bf16 or f32, and dense rows that may lie apart; x and w may have dense columns instead, as the
/// transpose of such a matrix. Without an epilogue, d may be f32 for other elements. Accumulation
/// is in f32.
struct GemmCall {
  TensorId x{};      ///< [M,K]
  TensorId weight{}; ///< [N,K]
  /// Dense [N] at a multiple of kBiasAlignment bytes, or kNoTensor.
  TensorId bias = kNoTensor;
  TensorId residual = kNoTensor; ///< [M,N], or kNoTensor; may be d. Not with relu.
  TensorId d{};                  ///< [M,N]
  TensorId workspace{};          ///< Dense bytes for the library's own use.
  bool relu = false;
  bool tf32 = false; ///< f32 only: operands may be rounded to 10 bits of mantissa.
};
inline constexpr uint64_t kBiasAlignment = 16;

inline constexpr const char *kGemmLibrary = "cublaslt";
/// Whether `call` is a cublaslt.matmul.
CGC_API bool isGemm(const LibraryCall &call);
/// The record of `gemm`. Reads {x, weight, bias, residual}, writes {d, workspace}, ints {relu,
/// tf32}.
CGC_API LibraryCall libraryCall(const GemmCall &gemm);
/// The inverse of libraryCall(), for a call whose tensors exist. InvalidFile, with the reason, if
/// the call could access memory outside its tensors or is no GEMM that cuBLASLt computes.
CGC_API Result<GemmCall> gemmCall(const LibraryCall &call, std::span<const TensorRef> tensors);

/// Whether a matrix has dense columns instead of dense rows.
inline bool isTransposed(const TensorRef &matrix) {
  return matrix.sizes[1] != 1 && matrix.strides[1] != 1;
}

/// The row stride of a matrix in elements; the number of columns if it has one row.
inline int64_t rowStride(const TensorRef &matrix) {
  return matrix.sizes[0] == 1 ? matrix.sizes[1] : matrix.strides[0];
}

} // namespace cgc

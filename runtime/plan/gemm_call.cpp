// GemmCall: conversion to a record and back, with the checks of a record.
#include "runtime/plan/gemm_call.h"

#include <climits>
#include <utility>

namespace cgc {
namespace {

/// Whether a tensor is a matrix of sizes that cuBLASLt takes, with dense rows that do not overlap.
bool isMatrix(const TensorRef &t) {
  const auto fits = [](int64_t size) { return size > 0 && size <= INT_MAX; };
  return t.sizes.size() == 2 && fits(t.sizes[0]) && fits(t.sizes[1]) &&
         (t.strides[1] == 1 || t.sizes[1] == 1) && rowStride(t) >= t.sizes[1];
}

/// Whether a tensor is such a matrix, or the transpose of one.
bool isOperand(const TensorRef &t) {
  if (t.sizes.size() != 2 || !isTransposed(t))
    return isMatrix(t);
  TensorRef transposed = t;
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  return isMatrix(transposed);
}

bool isFlag(int64_t value) {
  return value == 0 || value == 1;
}

Status refuse(const char *why) {
  return {Code::InvalidFile, why};
}

} // namespace

bool isGemm(const LibraryCall &call) {
  return call.library == kGemmLibrary && call.function == "matmul";
}

LibraryCall libraryCall(const GemmCall &p) {
  LibraryCall call;
  call.library = kGemmLibrary;
  call.function = "matmul";
  call.reads = {p.x, p.weight, p.bias, p.residual};
  call.writes = {p.d, p.workspace};
  call.ints = {p.relu, p.tf32};
  return call;
}

Result<GemmCall> gemmCall(const LibraryCall &call, std::span<const TensorRef> tensors) {
  const auto tensor = [&](TensorId id) -> const TensorRef & { return tensors[uint32_t(id)]; };
  if (call.reads.size() != 4 || call.writes.size() != 2 || call.ints.size() != 2 ||
      !call.floats.empty())
    return refuse("the number of arguments is not that of a GEMM");
  if (call.reads[0] == kNoTensor || call.reads[1] == kNoTensor)
    return refuse("a GEMM needs both operands, x and w");
  if (!isFlag(call.ints[0]) || !isFlag(call.ints[1]))
    return refuse("relu and tf32 have to be 0 or 1");
  const GemmCall p{call.reads[0],  call.reads[1],  call.reads[2],     call.reads[3],
                   call.writes[0], call.writes[1], call.ints[0] == 1, call.ints[1] == 1};

  const TensorRef &x = tensor(p.x), &weight = tensor(p.weight), &d = tensor(p.d);
  if (x.dtype != DType::F16 && x.dtype != DType::BF16 && x.dtype != DType::F32)
    return refuse("x and w have to be f16, bf16 or f32");
  const bool hasEpilogue = p.bias != kNoTensor || p.residual != kNoTensor || p.relu;
  if (weight.dtype != x.dtype || (d.dtype != x.dtype && (d.dtype != DType::F32 || hasEpilogue)))
    return refuse("x, w and the result differ in element type");
  if (!isOperand(x) || !isOperand(weight) || !isMatrix(d))
    return refuse("x, w and the result have to be matrices whose rows do not overlap");
  const int64_t rows = x.sizes[0], columns = weight.sizes[0];
  if (weight.sizes[1] != x.sizes[1] || d.sizes[0] != rows || d.sizes[1] != columns)
    return refuse("the sizes are not those of a GEMM");
  if (p.bias != kNoTensor) {
    const TensorRef &bias = tensor(p.bias);
    if (bias.dtype != x.dtype || bias.sizes != std::vector<int64_t>{columns} ||
        !isDense(bias.sizes, bias.strides) || bias.slot.offset % kBiasAlignment != 0)
      return refuse("the bias has to be dense, of the result's columns and element type, at a "
                    "multiple of 16 bytes");
  }
  if (p.residual != kNoTensor) {
    const TensorRef &residual = tensor(p.residual);
    if (residual.dtype != x.dtype || residual.sizes != d.sizes || !isMatrix(residual))
      return refuse("the residual has to be a matrix like the result");
    if (p.relu)
      return refuse("relu would be applied to the residual too");
  }
  const TensorRef &workspace = tensor(p.workspace);
  if (workspace.dtype != DType::U8 || workspace.sizes.size() != 1 ||
      !isDense(workspace.sizes, workspace.strides) ||
      workspace.slot.offset % kBufferAlignment != 0 || overlap(workspace, d))
    return refuse(
        "the workspace has to be dense bytes at a multiple of 256, apart from the result");
  if (p.tf32 && x.dtype != DType::F32)
    return refuse("tf32 is for f32 only");
  return p;
}

} // namespace cgc

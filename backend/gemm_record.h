// Records of GEMMs: the one place that turns a GEMM into a record and back.
#pragma once

#include "backend/gemm.h"
#include "backend/kernels.h"
#include "runtime/plan/plan.h"

namespace cgc::backend {

/// A GEMM of a bucket, with what computes it.
struct GemmRecord {
  GemmProblem problem;
  GemmOperands<TensorId> operands;
  GemmChoice choice;
  TensorId workspace = kNoTensor; ///< Of a call of cuBLASLt.
};

/// The op of the record. decodeGemm() is its inverse.
decltype(LaunchRecord::op) encodeGemm(const GemmRecord &gemm);

/// The GEMM that `record` computes; nothing if it computes something else, or if it is not valid.
std::optional<GemmRecord> decodeGemm(const LaunchRecord &record, const Bucket &bucket);

/// The launch of `choice`, a kernel, for `problem`, without its tensors.
KernelLaunch gemmLaunch(const GemmProblem &problem, const GemmChoice &choice);
/// The tensors of such a launch in the order of kernels.def.
RecordTensors gemmTensors(const GemmProblem &problem, const GemmOperands<Place> &operands);

} // namespace cgc::backend

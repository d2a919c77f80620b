// GemmSite: a GEMM of a plan, whatever computes it now, and the choices that could compute it.
#pragma once

#include "backend/gemm_tile.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/plan/plan.h"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cgc::tuner {

/// result = activation(x [M,K] weight [N,K]^T + bias) + residual, or the function of another
/// `family` of kernels on these operands and on `more` others.
struct GemmSite {
  DType dtype = DType::F16;
  int64_t m = 0, n = 0, k = 0;
  Activation activation = Activation::None;
  bool tf32 = false;
  TensorId x{}, weight{}, bias = kNoTensor, residual = kNoTensor, result{};
  backend::TiledKernels family; ///< The family whose tiles may compute it.
  size_t more = 0;              ///< The number of operands besides these.

  /// Whether one call of cuBLASLt computes all of it. cuBLASLt's GELU is another function.
  bool isForLibrary() const {
    return family.name == backend::gemmKernels().name && more == 0 &&
           (activation == Activation::None ||
            (activation == Activation::Relu && residual == kNoTensor));
  }
  /// Whether a tile of our own may compute it. Bind checks addresses and strides.
  bool isForTile() const {
    return (dtype == DType::F16 || dtype == DType::BF16) && n % 8 == 0 && k % 8 == 0;
  }
};

/// The GEMM that `record` computes; nothing if it computes something else.
std::optional<GemmSite> gemmSite(const LaunchRecord &record, const Bucket &bucket);

/// "gemm f16 [77,768] x [3072,768], bias, activation 1": the tuner tunes sites of equal text once.
std::string describe(const GemmSite &site, const Bucket &bucket);

/// A tile of our own, or an algorithm of cuBLASLt from CublasLt::candidates().
struct Choice {
  std::variant<backend::TileChoice, std::vector<std::byte>> how;
  std::string name; ///< "tile 128x88_2 with 6 stages", "cuBLASLt algorithm 3"
};

/// The op with which `choice` computes `site`, in place of the op of `record`. A call of cuBLASLt
/// uses `workspace`.
decltype(LaunchRecord::op) opOf(const Choice &choice, const GemmSite &site,
                                const LaunchRecord &record, TensorId workspace);

/// The name of the op of a GEMM's record in a report, like Choice::name.
std::string nameOf(const LaunchRecord &record);

} // namespace cgc::tuner

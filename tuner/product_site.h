// ProductSite: a product of a plan, whatever computes it now; and a choice of what shall.
#pragma once

#include "backend/product_tile.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/plan/plan.h"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cgc::tuner {

/// result = activation(x [tokens, depth] weight [features, depth]^T + bias) + residual, or what
/// else a kernel of `family` makes of these and of more operands.
struct ProductSite {
  DType dtype = DType::F16;
  int64_t tokens = 0, features = 0, depth = 0;
  Activation activation = Activation::None;
  bool tf32 = false;
  TensorId x{}, weight{}, bias = kNoTensor, residual = kNoTensor, result{};
  backend::TiledKernels family; ///< Whose tiles may compute it.
  size_t more = 0;              ///< Operands besides these.

  /// Whether one call of cuBLASLt computes all of it. Its GELU is another one.
  bool isForLibrary() const {
    return family.name == backend::productKernels().name && more == 0 &&
           (activation == Activation::None ||
            (activation == Activation::Relu && residual == kNoTensor));
  }
  /// Whether a tile of our own may compute it. Bind decides about places and strides.
  bool isForTile() const {
    return (dtype == DType::F16 || dtype == DType::BF16) && features % 8 == 0 && depth % 8 == 0;
  }
};

/// The product that `record` computes, if it is one.
std::optional<ProductSite> productSite(const LaunchRecord &record, const Bucket &bucket);

/// "product f16 [77,768] x [3072,768], bias, activation 1": sites of equal text are tuned once.
std::string describe(const ProductSite &site, const Bucket &bucket);

/// A tile of our own, or an algorithm of cuBLASLt as CublasLt::candidates() gives it.
struct Choice {
  std::variant<backend::TileChoice, std::vector<std::byte>> how;
  std::string name; ///< "tile 128x88_2 with 6 stages", "cuBLASLt algorithm 3"
};

/// The op that computes `site`, which `record` does now, as `choice` says. `workspace`: for
/// cuBLASLt.
decltype(LaunchRecord::op) opOf(const Choice &choice, const ProductSite &site,
                                const LaunchRecord &record, TensorId workspace);

/// What the op of a product's record is called in a report, as Choice::name.
std::string nameOf(const LaunchRecord &record);

} // namespace cgc::tuner

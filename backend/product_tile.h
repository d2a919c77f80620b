// The tiles that a product may have, in the order of a model of the H200, and their launches.
#pragma once

#include "runtime/kernels/gemm/gemm.h"
#include "runtime/plan/plan.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cgc::backend {

/// A tile, how much of the depth is on its way at a time, and the SMs that blocks are for.
struct TileChoice {
  const ProductTile *tile;
  uint32_t stages, multiprocessors;
};

/// Up to this many tokens there are no persistent tiles among the choices: not measured for so few.
inline constexpr int64_t kPersistentTokens = 1536;
/// Up to this many tokens a product normalises its x itself: layer_norm costs mostly its launch
/// then. Beyond, it does so with persistent tiles only.
inline constexpr int64_t kNormTokens = kPersistentTokens;

/// All choices among `tiles` for x [tokens, depth] times w [features, depth] on a GPU with so many
/// SMs, the one that the model holds to be fastest first.
std::vector<TileChoice> tileChoices(std::span<const ProductTile> tiles, int64_t tokens,
                                    int64_t features, int64_t depth, int64_t multiprocessors);

/// A family of kernels that differ in their tile: rows "NAME_DTYPE_TILE" of kernels.def.
struct TiledKernels {
  std::string name;
  std::span<const ProductTile> tiles;
};
/// `product`: y = activation(x w^T + bias) + residual.
TiledKernels productKernels();
/// `product_norm`: the same with the rows of x normalised.
TiledKernels normProductKernels();
/// The family that a launch is of, if it is of one.
std::optional<TiledKernels> tiledKernelsOf(const KernelLaunch &launch);

/// Makes `launch` one of the family's kernel for this dtype and tile. Its operands and ints
/// (tokens, features, depth, ...) stay.
void setTile(KernelLaunch &launch, const TiledKernels &family, DType dtype,
             const TileChoice &choice);

} // namespace cgc::backend

// Tiles of GEMMs: ranks the tiles for a shape by a model of the H200, and makes launches of them.
#pragma once

#include "runtime/kernels/gemm/gemm.h"
#include "runtime/plan/plan.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cgc::backend {

/// A tile, the stages of its pipeline, and the SMs that its grid is for. `tile` points to a static
/// table.
struct TileChoice {
  const GemmTile *tile;
  uint32_t stages, multiprocessors;
};

/// Up to this M, tileChoices() has no persistent tiles: they have not been measured for so few
/// rows.
inline constexpr int64_t kNonPersistentMaxM = 1536;
/// Up to this M, gemm_norm is used with any tile, because a separate layer_norm costs mostly its
/// launch. Beyond, it is used with persistent tiles only.
inline constexpr int64_t kNormNonPersistentMaxM = kNonPersistentMaxM;

/// All choices among `tiles` for x [M,K] times w [N,K]^T on a GPU with this many SMs, by increasing
/// estimated time.
std::vector<TileChoice> tileChoices(std::span<const GemmTile> tiles, int64_t m, int64_t n,
                                    int64_t k, int64_t multiprocessors);

/// A family of kernels that differ in their tile: the rows NAME_DTYPE_TILE of kernels.def.
struct TiledKernels {
  std::string name;
  std::span<const GemmTile> tiles;
};
/// gemm: y = activation(x w^T + bias) + residual.
TiledKernels gemmKernels();
/// gemm_norm: y = activation(normalize(x) w^T + bias).
TiledKernels gemmNormKernels();
/// The family of the kernel that `launch` names; nothing for other kernels.
std::optional<TiledKernels> tiledKernelsOf(const KernelLaunch &launch);

/// Makes `launch` a launch of the family's kernel for this dtype and tile: sets kernel, ABI hash,
/// grid, block and shared memory. Keeps operands and ints (M, N, K, activation).
void setTile(KernelLaunch &launch, const TiledKernels &family, DType dtype,
             const TileChoice &choice);

} // namespace cgc::backend

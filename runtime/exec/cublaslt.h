// cuBLASLt: opens the library for a plan that calls it, and binds its GEMMs to memory.
#pragma once

#include "runtime/exec/gpu.h"
#include "runtime/plan/gemm_call.h"

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cgc {

/// The content of LibraryCall::algorithm: an algorithm in cuBLASLt's opaque form, which is valid
/// for one version of the library on one kind of GPU.
struct FrozenAlgorithm {
  uint64_t version = 0; ///< cublasLtGetVersion()
  uint32_t multiprocessors = 0;
  std::string gpu; ///< Name of the GPU.
  std::array<std::byte, 64> algorithm{};
  bool operator==(const FrozenAlgorithm &) const = default;
};
/// Serializes an algorithm as docs/plan-format.md says.
std::vector<std::byte> encode(const FrozenAlgorithm &frozen);
/// Parses the result of encode(); std::nullopt if the bytes are not of this form.
std::optional<FrozenAlgorithm> decodeAlgorithm(std::span<const std::byte> bytes);

/// One GEMM with its descriptors and algorithm. It can be launched any number of times.
class BoundGemm final {
public:
  BoundGemm(BoundGemm &&) noexcept;
  BoundGemm &operator=(BoundGemm &&) noexcept;
  ~BoundGemm();

  /// Enqueues the GEMM on `stream`. Device if cuBLASLt refuses.
  Status launch(cudaStream_t stream) const;

private:
  friend class CublasLt;
  struct Impl;
  explicit BoundGemm(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The cuBLASLt library and a handle for one GPU. Contexts on several threads may share it. The
/// library stays loaded until the process ends.
class CublasLt final {
public:
  /// The library's file name: "libcublasLt.so.13".
  static const char *const kLibrary;
  /// Opens the library. Looks at `path` (the library, or the folder that contains it) or, if `path`
  /// is empty, in the dynamic loader's search path and then in the paths of libraryPlaces. Device,
  /// with the name and the paths searched, if the library is missing or of another version. Touches
  /// no GPU.
  static Result<std::unique_ptr<CublasLt>> open(const std::string &path);
  /// Creates a handle for `gpu`, which must be current. Called once, before any other function.
  Status initialize(const Gpu &gpu);
  ~CublasLt();

  /// The operands of a GEMM: a validated call, its bucket's tensors, and their addresses.
  struct Operands {
    const GemmCall &call;
    std::span<const TensorRef> tensors;
    std::function<void *(TensorId)> address;
  };
  /// Binds a GEMM with the algorithm in `frozen`. If `frozen` is empty, was made for another GPU or
  /// version, or is refused by the library, the heuristic's first algorithm is used instead; unless
  /// `frozen` is empty, `note` then gets the reason.
  Result<BoundGemm> bind(const Operands &operands, std::span<const std::byte> frozen,
                         std::string &note) const;
  /// At most `count` serialized algorithms for the GEMM, the heuristic's best first: the candidates
  /// of the tuner.
  Result<std::vector<std::vector<std::byte>>> candidates(const Operands &operands, int count) const;

private:
  struct Impl;
  explicit CublasLt(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc

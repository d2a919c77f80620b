// cuBLASLt: opened when a plan names it, and its matrix products bound to memory.
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

/// What LibraryCall::algorithm holds: cuBLASLt's own form of an algorithm, which means something to
/// one version of the library on one kind of GPU.
struct FrozenAlgorithm {
  uint64_t version = 0; ///< cublasLtGetVersion()
  uint32_t multiprocessors = 0;
  std::string gpu; ///< Its name.
  std::array<std::byte, 64> algorithm{};
  bool operator==(const FrozenAlgorithm &) const = default;
};
std::vector<std::byte> encode(const FrozenAlgorithm &frozen);
/// Nothing if the bytes are not of this form.
std::optional<FrozenAlgorithm> decodeAlgorithm(std::span<const std::byte> bytes);

/// One product with descriptors and algorithm, ready to be launched any number of times.
class BoundProduct final {
public:
  BoundProduct(BoundProduct &&) noexcept;
  BoundProduct &operator=(BoundProduct &&) noexcept;
  ~BoundProduct();

  Status launch(cudaStream_t stream) const;

private:
  friend class CublasLt;
  struct Impl;
  explicit BoundProduct(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The library and a handle for one GPU. Contexts on several threads share it. It stays loaded
/// until the process ends.
class CublasLt final {
public:
  /// "libcublasLt.so.13"
  static const char *const kLibrary;
  /// Opens the library: at `path` (the library, or a folder that holds it), or, if empty, where the
  /// loader looks, then where libraryPlaces says. Device, with the name and the places, if it is
  /// not there or of another version. Touches no GPU.
  static Result<std::unique_ptr<CublasLt>> open(const std::string &path);
  /// Makes a handle for `gpu`, which is current. Once, before anything else.
  Status initialize(const Gpu &gpu);
  ~CublasLt();

  /// What a product is bound to: a validated call, its bucket's tensors, and their addresses.
  struct Operands {
    const ProductCall &call;
    std::span<const TensorRef> tensors;
    std::function<void *(TensorId)> address;
  };
  /// Takes the algorithm that `frozen` holds, or, if it is empty, for another GPU or version, or
  /// refused by the library, the first of its heuristic; of the latter cases `note` says which.
  Result<BoundProduct> bind(const Operands &operands, std::span<const std::byte> frozen,
                            std::string &note) const;
  /// At most `count` algorithms for the product, frozen, the heuristic's best first: what a tuner
  /// tries.
  Result<std::vector<std::vector<std::byte>>> candidates(const Operands &operands, int count) const;

private:
  struct Impl;
  explicit CublasLt(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc

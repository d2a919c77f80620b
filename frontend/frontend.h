// Frontend: TorchScript files -> ir::Module, and LibTorch as the reference. The one compiler part
// that links LibTorch; built as the library libcgc_frontend, which the tool opens by dlopen so that
// verbs that need no LibTorch start fast.
#pragma once

#include "ir/module.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::frontend {

/// Loads `path` on the CPU and lowers every method of every module, hierarchy kept. The tensors of
/// the module share LibTorch's memory. InvalidFile if it is not a TorchScript file (says what it
/// is). What cgc cannot express becomes prim.refused nodes, so that compiling a method names
/// everything that is in its way at once, and nothing that is not.
Result<std::unique_ptr<ir::Module>> importTorchScript(const std::string &path);

/// A dense tensor that owns its bytes.
struct HostTensor {
  std::string name; ///< Key of a dict output, else empty.
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<std::byte> bytes;
};

/// A TorchScript file loaded to be run by LibTorch itself: what `cgc compare` compares with.
class Reference {
public:
  virtual ~Reference() = default;
  /// Runs a method without gradients and without the JIT's optimizations. `inputs` lie in host
  /// memory, in the order of the method's arguments; if they are fewer, `names` says which these
  /// are, and the others are left at their defaults. Tuples, lists and dicts are flattened in
  /// order. Usage if there is no such method or the inputs are not its.
  virtual Result<std::vector<HostTensor>> run(const std::string &method,
                                              std::span<const TensorView> inputs,
                                              std::span<const std::string> names = {}) = 0;
};

/// Loads `path` for `device`: the CPU or, for cuda, device 0; device constants in the code are
/// moved too. With `precision` F32 or F64, everything floating that is narrower becomes that
/// wide, casts written in the code included: the truth that reduced precision is measured against.
/// With F16 or BF16 everything floating becomes that, as by `half()` of the module before tracing.
/// With any of them, products of f32 round their factors to TF32 only if `tf32`. Device if LibTorch
/// sees no GPU.
Result<std::unique_ptr<Reference>> loadReference(const std::string &path, DeviceKind device,
                                                 std::optional<DType> precision, bool tf32 = false);

/// How LibTorch runs a method that is timed.
enum class PeerKind : uint8_t {
  Eager,  ///< The file's own ops, one by one, without the JIT's optimizations.
  Frozen, ///< Frozen and optimized for inference, with the JIT's fusers.
};

/// A method with inputs on its device.
class Peer {
public:
  virtual ~Peer() = default;
  /// Runs once; for cuda on LibTorch's current stream, without waiting for it. With `copies` the
  /// inputs are copied first and the outputs last, always to the same memory: for a capture.
  virtual Status run(bool copies) = 0;
};

/// A TorchScript file for LibTorch to run as `cgc bench` times it.
class Peers {
public:
  virtual ~Peers() = default;
  /// `inputs` as for Reference::run. The first that is frozen freezes the whole model, which takes
  /// seconds. Usage if there is no such method or the number of inputs is wrong.
  virtual Result<std::unique_ptr<Peer>> prepare(PeerKind kind, const std::string &method,
                                                std::span<const TensorView> inputs) = 0;
};

/// As loadReference(); TF32 is as asked for also without a precision.
Result<std::unique_ptr<Peers>> loadPeers(const std::string &path, DeviceKind device,
                                         std::optional<DType> precision, bool tf32);

/// What libcgc_frontend exports as `extern "C" const Api *cgcFrontend()`. The library must stay
/// open as long as anything that it returned lives.
struct Api {
  decltype(frontend::importTorchScript) *import;
  decltype(frontend::loadReference) *loadReference;
  decltype(frontend::loadPeers) *loadPeers;
};
/// Says whether both sides were built from the same headers. The list of ops is in it: nodes cross
/// with their op's ordinal. The number at its start changes by hand whenever a struct of this
/// header or of ir's does.
inline constexpr uint32_t kFrontendAbi = [] {
  uint32_t hash = 6;
  for (char c : std::string_view(
#define CGC_OP(ENUM, NAME) NAME "\n"
#include "ir/ops.def"
           ))
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u; // FNV-1a
  return hash;
}();
/// Null if `abi` is not the library's own.
using ApiEntry = const Api *(uint32_t abi);
inline constexpr const char *kApiEntryName = "cgcFrontend";

} // namespace cgc::frontend

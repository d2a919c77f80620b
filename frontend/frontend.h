// Frontend: imports TorchScript files as ir::Module, and runs them with LibTorch as the reference.
// The only compiler part that links LibTorch; built as the library libcgc_frontend, which the tool
// loads with dlopen so that commands without LibTorch start fast.
#pragma once

#include "frontend/headers_hash.h"
#include "frontend/import_for.h"
#include "ir/module.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cgc::frontend {

/// Loads `path` on the CPU and imports every method of every module; the module hierarchy is kept.
/// The tensors of the module share LibTorch's memory. InvalidFile, with the kind of file, if it is
/// not a TorchScript file. A construct that cgc cannot express becomes a prim.refused node, so that
/// compiling a method reports all of its errors at once and no errors of other methods.
Result<std::unique_ptr<ir::Module>> importTorchScript(const std::string &path,
                                                      ImportFor purpose = ImportFor::Inference);

/// A dense tensor that owns its bytes.
struct HostTensor {
  std::string name; ///< Key of a dict output, otherwise empty.
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<std::byte> bytes;
};

/// A TorchScript file that LibTorch itself runs: the reference of `cgc compare`.
class Reference {
public:
  virtual ~Reference() = default;
  /// Runs a method without gradients and without the JIT's optimizations. `inputs` are in host
  /// memory, in the order of the method's arguments. If there are fewer inputs than arguments,
  /// `names` tells which arguments they are, and the others keep their defaults. Tuples, lists and
  /// dicts are flattened in order. Usage if there is no such method or the inputs do not match it.
  virtual Result<std::vector<HostTensor>> run(const std::string &method,
                                              std::span<const TensorView> inputs,
                                              std::span<const std::string> names = {}) = 0;
};

/// Loads `path` for `device`: the CPU, or device 0 for cuda. Device constants in the code are
/// changed too. With `precision` F32 or F64, every narrower floating dtype becomes that one, casts
/// in the code included: the ground truth for measuring reduced precision. With F16 or BF16, every
/// floating dtype becomes that one, as by `half()` of the module before tracing. With any
/// precision, f32 GEMMs round their operands to TF32 only if `tf32`. Device if LibTorch sees no
/// GPU.
Result<std::unique_ptr<Reference>> loadReference(const std::string &path, DeviceKind device,
                                                 std::optional<DType> precision, bool tf32 = false);

/// The ways in which LibTorch runs a method to be timed.
enum class PeerKind : uint8_t {
  Eager,  ///< The file's own ops, one by one, without the JIT's optimizations.
  Frozen, ///< Frozen and optimized for inference, with the JIT's fusers.
};

/// A method with its inputs on the device.
class Peer {
public:
  virtual ~Peer() = default;
  /// Runs once; on cuda on LibTorch's current stream, without synchronizing. With `copies`, copies
  /// the inputs first and the outputs last, always to the same memory, for capture into a graph.
  virtual Status run(bool copies) = 0;
};

/// A TorchScript file that LibTorch runs for the timings of `cgc bench`.
class Peers {
public:
  virtual ~Peers() = default;
  /// Prepares a method. `inputs` as for Reference::run. The first Frozen call freezes the whole
  /// model, which takes seconds. Usage if there is no such method or the number of inputs is wrong.
  virtual Result<std::unique_ptr<Peer>> prepare(PeerKind kind, const std::string &method,
                                                std::span<const TensorView> inputs) = 0;
};

/// Like loadReference(), except that `tf32` also applies without a precision.
Result<std::unique_ptr<Peers>> loadPeers(const std::string &path, DeviceKind device,
                                         std::optional<DType> precision, bool tf32);

/// The results of a method of a submodule.
struct HostModuleResults {
  std::vector<std::pair<DType, std::vector<int64_t>>> types; ///< Dtype and sizes.
  bool isTuple = false; ///< They are the elements of a tuple or list.
};

/// The submodules of a TorchScript file, for those that a plan leaves to the host program. A
/// `function` is the path of a submodule and its method: "visual.adapter.forward". Arguments after
/// the given inputs keep their defaults.
class HostModules {
public:
  virtual ~HostModules() = default;
  /// The types of the results for inputs of the dtypes and sizes of `inputs`, whose data is not
  /// read: runs the method on zeros and on ones. Unsupported if it gives types that depend on
  /// values, overwrites an input, returns anything but tensors, or fails on both.
  virtual Result<HostModuleResults> resultTypes(const std::string &function,
                                                std::span<const TensorView> inputs) = 0;
  /// Computes `outputs` from `inputs`, dense views in the memory of the model's device; on cuda on
  /// `stream`. Failed if a result has another type than its output, or if LibTorch fails.
  virtual Status run(const std::string &function, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, void *stream) = 0;
};

/// Loads `path` for `device` in its own dtypes: the CPU, or device 0 for cuda.
Result<std::unique_ptr<HostModules>> loadHostModules(const std::string &path, DeviceKind device);

/// The optimizer of a TrainerPeer: one of LibTorch's.
struct PeerOptimizer {
  enum class Rule : uint8_t { Sgd, Adam, AdamW };
  Rule rule = Rule::Sgd;
  double momentum = 0, dampening = 0; ///< Of SGD.
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8; ///< Of Adam and AdamW.
  double clipNorm = 0, clipValue = 0;            ///< 0: none.

  struct Group {
    std::vector<std::string> parameters;
    double weightDecay = 0;
  };
  std::vector<Group> groups;

  /// Limits of a parameter after each update.
  struct Clamp {
    std::string parameter;
    double min = 0, max = 0;
  };
  std::vector<Clamp> clamps;
};

/// A TorchScript file that LibTorch trains op by op, with autograd and an optimizer of its own: the
/// peer of `cgc train`.
class TrainerPeer {
public:
  virtual ~TrainerPeer() = default;
  /// Copies a dense view in host memory to the parameter or buffer `name`.
  virtual Status write(const std::string &name, const TensorView &from) = 0;
  /// Makes a step on a batch in host memory, with a learning rate for each group, waits for it, and
  /// returns its loss.
  virtual Result<double> step(std::span<const TensorView> inputs,
                              std::span<const double> rates) = 0;
};

/// What loadTrainerPeer() takes.
struct TrainerPeerOptions {
  std::string method; ///< Returns the loss.
  size_t loss = 0;    ///< The output that is the loss.
  size_t inputs = 0;  ///< Tensors that the method takes.
  /// Views without data: the dtype and sizes of each parameter and buffer that a plan trains.
  std::vector<std::pair<std::string, TensorView>> states;
  PeerOptimizer optimizer;
  std::optional<DType> autocast; ///< F16 or BF16.
};

/// Loads `path` for `device` in its own dtypes, in training mode: the CPU, or device 0 for cuda.
/// Usage, naming the difference, if it has not the states or the method of the options.
Result<std::unique_ptr<TrainerPeer>> loadTrainerPeer(const std::string &path, DeviceKind device,
                                                     const TrainerPeerOptions &options);

/// The functions that libcgc_frontend exports through `extern "C" const Api *cgcFrontend()`. The
/// library must stay loaded as long as any object that it returned exists.
struct Api {
  decltype(frontend::importTorchScript) *import;
  decltype(frontend::loadReference) *loadReference;
  decltype(frontend::loadPeers) *loadPeers;
  decltype(frontend::loadHostModules) *loadHostModules;
  decltype(frontend::loadTrainerPeer) *loadTrainerPeer;
};
/// Hash of the headers that both sides were compiled from: any of them may define a layout
/// that crosses the boundary, and nodes cross it with their op's ordinal.
inline constexpr uint64_t kFrontendAbi = fnv1a(CGC_FRONTEND_HEADERS_HASH);
/// Returns null if `abi` is not the library's own.
using ApiEntry = const Api *(uint64_t abi);
inline constexpr const char *kApiEntryName = "cgcFrontend";

} // namespace cgc::frontend

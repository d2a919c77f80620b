// PlanData: the contents of a plan file as plain structs. A plan has entries, an entry has buckets,
// and a bucket has tensors and launch records.
//
// Invariants, which validate.cpp checks for every plan that is read or written:
//  - A plan is pure data. A record refers to kernels, libraries and ATen ops by name; a plan
//    contains neither code nor pointers.
//  - Every element that a TensorRef can address lies inside the tensor's buffer.
//  - Records are in execution order, or in one of several if they have branches. Each element that
//    a record reads lies in a weight, an input or a state, or a record that always runs earlier
//    wrote it. No record writes to a weight or an input, and the records of a bucket together write
//    all of each output.
//  - Only a state is read before it is written. It keeps its value from one run to the next.
//  - A record that uses states of a shard runs on one of the ranks only. What it writes, other
//    records read after a broadcast of that shard, if they do not use states of the same one.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/export.h"
#include "runtime/base/optimizer_options.h"
#include "runtime/base/state_role.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace cgc {

/// The version of the file format. A reader accepts this version only.
inline constexpr uint32_t kPlanFormatVersion = 11;
/// The version of the launch record's argument lists: reads, writes, ints, floats.
inline constexpr uint32_t kKernelAbi = 1;
/// Alignment of weights in the file and of buffers in the arena, in bytes.
inline constexpr uint64_t kBufferAlignment = 256;
/// Tensors of 64 KiB or more are aligned to 64 KiB in memory. On an H200, cuBLAS's fp32 kernels
/// lost up to 15 % when a matrix began 16 KiB off (docs/log/2026-11-21-64-kib-alignment.md).
inline constexpr uint64_t kLargeAlignment = 64 << 10;
/// The alignment in memory of a tensor of this many bytes.
constexpr uint64_t placementAlignment(uint64_t bytes) {
  return bytes >= kLargeAlignment ? kLargeAlignment : kBufferAlignment;
}

/// The buffer that a tensor lies in. The values are part of the plan format.
enum class BufferKind : uint8_t {
  Weight, ///< Read-only; `index` is the weight.
  Arena,  ///< The context's scratch memory, shared by all buckets; `index` is 0.
  Input,  ///< A static input buffer of the bucket; `index` is the input.
  Output, ///< A static output buffer of the bucket; `index` is the output.
  State,  ///< A tensor that all buckets may read and write; `index` is the state.
};

/// A memory location: a buffer and an offset in bytes. Never a pointer.
struct Slot {
  BufferKind buffer = BufferKind::Arena;
  uint32_t index = 0;
  uint64_t offset = 0;
  bool operator==(const Slot &) const = default;
};

/// A strided tensor that begins at a slot. Strides are in elements and nonnegative.
struct TensorRef {
  Slot slot;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  bool operator==(const TensorRef &) const = default;
};

/// An index into Bucket::tensors.
enum class TensorId : uint32_t {};

/// An index into PlanData::locations; kNoLocation if the record has no source location.
enum class LocationId : uint32_t {};
inline constexpr LocationId kNoLocation{0xffffffffu};

/// The source line and module path of a model node, for messages and profiles.
struct SourceLocation {
  std::string file;
  uint32_t line = 0;
  std::string module;
  bool operator==(const SourceLocation &) const = default;
};

/// Stands for a `Device` argument: always the plan's target.
struct DeviceArg {
  bool operator==(const DeviceArg &) const = default;
};
/// Stands for an absent optional argument.
struct NoneArg {
  bool operator==(const NoneArg &) const = default;
};
/// Marks an absent tensor: an absent element of a `Tensor?[]` argument, an optional operand that is
/// not given, or a result that is not needed.
inline constexpr TensorId kNoTensor{0xffffffffu};
/// One argument of an ATen overload, in schema order. A list of tensors stands for `Tensor[]` and
/// `Tensor?[]`; a DType is the plan's own, not LibTorch's.
using AtenArg =
    std::variant<NoneArg, TensorId, std::vector<TensorId>, int64_t, double, bool, std::string,
                 DType, DeviceArg, std::vector<int64_t>, std::vector<double>>;

/// Calls an ATen op through the OpProvider (LibTorch).
struct AtenCall {
  std::string op;       ///< "aten::gelu"
  std::string overload; ///< The overload: "", "Tensor", "out"
  /// One for each argument of the overload, except those that it writes.
  std::vector<AtenArg> args;
  /// kNoTensor for a result that no record reads.
  std::vector<TensorId> outputs;
  /// The overload writes its results directly to its written arguments: `out`, or the `self` of an
  /// in-place op. Otherwise the provider calls the functional overload and copies the results.
  bool writesOut = false;
  bool operator==(const AtenCall &) const = default;
};

/// Launches a kernel of the runtime's kernel library (runtime/kernels/kernels.def).
struct KernelLaunch {
  std::string kernel;   ///< The kernel's name in kernels.def.
  uint64_t abiHash = 0; ///< Hash of the parameter list. Binding fails if the runtime's differs.
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t sharedBytes = 0; ///< Dynamic shared memory of a block.
  /// Operands, in the order of kernels.def. One that kernels.def declares optional may be
  /// kNoTensor.
  std::vector<TensorId> reads, writes;
  /// Parameters, in the order of kernels.def.
  std::vector<int64_t> ints;
  std::vector<double> floats;
  bool operator==(const KernelLaunch &) const = default;
};

/// Calls a function of a vendor library, which the runtime opens only for a plan that calls it (the
/// only one is cublaslt.matmul: gemm_call.h), or an op of one of PlanData::opLibraries, which takes
/// dense tensors.
struct LibraryCall {
  std::string library;                 ///< "cublaslt", or the name of an op library
  std::string function;                ///< "matmul", or the op
  std::vector<TensorId> reads, writes; ///< An absent read is kNoTensor.
  std::vector<int64_t> ints;
  std::vector<double> floats;
  /// The algorithm that the tuner froze, with the GPU and library version that it is valid for
  /// (FrozenAlgorithm). Empty: the library's heuristic chooses.
  std::vector<std::byte> algorithm;
  bool operator==(const LibraryCall &) const = default;
};

/// Copies a tensor to another of the same dtype and sizes. Both are dense.
struct Memcpy {
  TensorId source{}, destination{};
  bool operator==(const Memcpy &) const = default;
};

/// Sets every byte of a dense tensor to `value`.
struct Memset {
  TensorId destination{};
  uint8_t value = 0;
  bool operator==(const Memset &) const = default;
};

/// Calls a function of the host program that stands for a method of a submodule
/// (`cgc compile --host-module`). Neither code nor weights of the submodule are in the plan. All
/// tensors are dense, and none is absent.
struct HostCall {
  std::string module;                  ///< The path of the submodule: "visual.adapter".
  std::string method;                  ///< "forward"
  std::vector<TensorId> reads, writes; ///< The method's tensors and its results, in order.
  bool operator==(const HostCall &) const = default;
};
/// The name under which the host program gives the function: "visual.adapter.forward".
CGC_API std::string hostFunctionName(const HostCall &call);

/// The most branches that a bucket may have beside branch 0.
inline constexpr uint32_t kMaxBranches = 4;
/// The detached branches: of collectives (collective_call.h), and of kernels and copies that update
/// parameters and moments while the backward pass goes on.
inline constexpr uint32_t kCollectiveBranch = kMaxBranches + 1, kUpdateBranch = kMaxBranches + 2;
inline constexpr uint32_t kDetachedBranches = 2;

/// One step of a bucket, with the model node that it comes from.
struct LaunchRecord {
  std::variant<KernelLaunch, LibraryCall, AtenCall, Memcpy, Memset, HostCall> op;
  LocationId location = kNoLocation;
  /// 0, or the parallel branch that the record belongs to, 1 to kMaxBranches. A record of branch 0
  /// runs after all records before it and before all records after it. Between two of them, the
  /// records of one branch run in order, and records of different branches in any order or at the
  /// same time (branches.h). Or a detached branch: the record is in no region and ends none. It
  /// runs after the records before it that use memory that it writes or write memory that it reads,
  /// and before the records after it that do; the records of a detached branch run in order.
  uint32_t branch = 0;
  bool operator==(const LaunchRecord &) const = default;
};

inline bool isDetached(uint32_t branch) {
  return branch > kMaxBranches;
}

inline bool isHostCall(const LaunchRecord &record) {
  return std::holds_alternative<HostCall>(record.op);
}

/// The tensors that a record reads or writes, without absent ones. Dependencies, hazards and patch
/// tables are derived from these.
CGC_API std::vector<TensorId> recordReads(const LaunchRecord &record);
CGC_API std::vector<TensorId> recordWrites(const LaunchRecord &record);
/// The name of a record for messages and listings: "aten::gelu.out", "kernel layer_norm_f16",
/// "memcpy".
CGC_API std::string recordName(const LaunchRecord &record);

/// The largest number of dimensions of a tensor.
inline constexpr size_t kMaxRank = 16;

/// The bounds that one input may have. A check of its indices reads each element so often at most.
inline constexpr size_t kMaxIndexBounds = 64;

/// The elements of an integer input that the model reads as indices, perhaps after it has added a
/// number to them: those in [least, end) are in range. They are a strided view of the input: offset
/// and strides are in elements.
struct IndexBound {
  int64_t end = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes = {}, strides = {};
  /// Negative if indices count from the end; above 0 if the model subtracts a number first.
  int64_t least = 0;
  /// A value that the model replaces before it reads the index, such as the ignore_index of a loss.
  std::optional<int64_t> exempt = {};

  bool allows(int64_t element) const {
    return (element >= least && element < end) || element == exempt;
  }
  bool operator==(const IndexBound &) const = default;
};

/// IoTensor::batchDim of a tensor without one.
inline constexpr int32_t kNoBatchDim = -1;

/// An input or output of a bucket. Always dense.
struct IoTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<IndexBound> indexBounds = {}; ///< Of an integer input.
  /// The dimension whose size is the batch; kNoBatchDim if no dimension is. All tensors of a bucket
  /// with a batch dimension have the same size there, and all buckets of an entry have the same
  /// batch dimensions.
  int32_t batchDim = kNoBatchDim;
  bool operator==(const IoTensor &) const = default;
};

/// The integers in [least, end); none if `end` is not above `least`.
struct IndexRange {
  int64_t least, end;
};
/// The values that all bounds of `input`'s indices allow; nothing without bounds.
CGC_API std::optional<IndexRange> indexRange(const IoTensor &input);

/// An entry specialized to one concrete set of input shapes.
struct Bucket {
  std::vector<IoTensor> inputs, outputs;
  std::vector<TensorRef> tensors;
  std::vector<LaunchRecord> records;
  uint64_t arenaBytes = 0; ///< Size of the arena that the bucket's tensors need.
  /// The time of one run in microseconds, for comparing the buckets of an entry. 0 if unknown.
  double expectedMicros = 0;
  /// expectedMicros was measured on PlanData::gpu. Otherwise it is an estimate.
  bool isMeasured = false;
  bool operator==(const Bucket &) const = default;
};

/// Whether the rows of an entry's batch are independent: row i of each output with a batch
/// dimension is a function of row i of the inputs with one and of all of the other inputs, and each
/// other output is a function of the other inputs. The function is the same for every batch size of
/// the buckets. Hence a bucket may run with rows that nobody asked for, and a batch may be split.
/// It is the compiler's proof; a reader cannot check it.
struct BatchRows {
  bool independent = false;
  /// The op that makes rows depend on each other, "aten.matmul". Empty if they are independent, or
  /// if no single op is the cause.
  std::string op = {};
  /// Why they are not known to be independent, as a clause: "it combines different rows". Empty if
  /// they are independent, or if nobody has looked.
  std::string reason = {};
  LocationId location = kNoLocation; ///< Of `op`.
  bool operator==(const BatchRows &) const = default;
};

/// A method of the model, such as "encode_image", with one bucket for each set of input shapes.
struct Entry {
  std::string name;
  std::vector<Bucket> buckets;
  BatchRows rows = {};
  bool operator==(const Entry &) const = default;
};

/// A weight's metadata; its bytes are dense and row-major.
struct Weight {
  std::string name; ///< Qualified name in the model; the first of several with equal bytes.
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  uint64_t fileOffset = 0; ///< Set by the writer.
  uint64_t hash = 0;       ///< xxhash64 of the bytes. Set by the writer.
  /// The compiler computed the values, so that they may depend on the sizes of inputs. Otherwise
  /// they are those of a parameter or buffer of the model, possibly in another dtype.
  bool isComputed = false;
  bool operator==(const Weight &) const = default;
};

/// State::initial of a state that begins as zeros.
inline constexpr uint32_t kBeginsAsZeros = 0xffffffffu;

/// A dense, row-major tensor that keeps its value from one run to the next, in each context:
/// parameters in training, moments, statistics. Entries of one plan share the states.
struct State {
  std::string name; ///< Unique. That of the model for a parameter or a buffer.
  StateRole role = StateRole::Parameter;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  /// The weight with its first value, of the same dtype and sizes; or kBeginsAsZeros.
  uint32_t initial = kBeginsAsZeros;
  /// The shard that the state is in. One of the ranks that run the plan holds all states of a shard
  /// (shards.h). None: every rank holds the state.
  std::optional<uint32_t> shard = {};
  bool operator==(const State &) const = default;
};

/// The step that a training plan computes, for whoever computes it in another way.
struct TrainingStep {
  std::string method;                 ///< The method of the model.
  uint32_t loss = 0;                  ///< The output of the method that is the loss.
  std::optional<DType> autocast = {}; ///< F16 or BF16: the dtype of matrix products.
  OptimizerOptions optimizer = {};
  bool operator==(const TrainingStep &) const = default;
};

/// The GPU that launch shapes were chosen for. The plan also runs on other GPUs, possibly slower.
struct TargetGpu {
  std::string name; ///< "NVIDIA H200"
  uint32_t multiprocessors = 0;
  bool tuned = false; ///< GEMM kernels were chosen by measurement on it, not by the cost model.
  bool operator==(const TargetGpu &) const = default;
};

/// Identifies an op library that the plan calls. Whoever runs the plan supplies the file.
struct OpLibraryId {
  std::string name;  ///< The file's name.
  uint64_t hash = 0; ///< xxhash64 of the file's bytes.
  bool operator==(const OpLibraryId &) const = default;
};

/// Everything in a plan except the bytes of the weights.
struct PlanData {
  DeviceKind target = DeviceKind::Cpu;
  std::string producer; ///< Informational: "cgc 0.1.0".
  std::vector<Entry> entries;
  std::vector<Weight> weights;
  std::vector<SourceLocation> locations;
  std::optional<DType> precision; ///< The dtype that the model's floats were converted to, if any.
  std::optional<TargetGpu> gpu;   ///< Set only for target cuda.
  std::vector<OpLibraryId> opLibraries; ///< The op libraries that records call, each once.
  std::vector<State> states;
  bool tf32 = false; ///< GEMMs of f32 may round their operands to TF32. Only for target cuda.
  std::optional<TrainingStep> training = {}; ///< Of the entry `step`.
  bool operator==(const PlanData &) const = default;

  /// The index in opLibraries of the library that `call` calls; std::nullopt for a vendor library.
  CGC_API std::optional<size_t> opLibraryOf(const LibraryCall &call) const;
  /// The entry called `name`; null if there is none.
  CGC_API const Entry *findEntry(std::string_view name) const;
  /// The index of the state called `name`; std::nullopt if there is none.
  CGC_API std::optional<size_t> findState(std::string_view name) const;
};

/// The value of `cgc compile --precision` for the plan: "keep", "fp16", "bf16", "fp32" or "tf32".
CGC_API std::string precisionOption(const PlanData &plan);

/// The batch of a bucket; std::nullopt if no input has a batch dimension.
CGC_API std::optional<int64_t> batchOf(const Bucket &bucket);
/// Whether a run of the bucket calls functions of the host.
CGC_API bool hasHostCalls(const Bucket &bucket);

/// "f16[1,3]".
CGC_API std::string shapeText(DType dtype, std::span<const int64_t> sizes);
/// "image=f16[1,3,224,224], text=i64[1,77]".
CGC_API std::string shapesText(const std::vector<IoTensor> &tensors);

/// The size in bytes of a dense tensor; std::nullopt if a size is negative or the product
/// overflows.
CGC_API std::optional<uint64_t> tensorBytes(DType dtype, std::span<const int64_t> sizes);
/// The bytes from the beginning of a tensor's first element to the end of its last addressable
/// element; 0 for an empty tensor. std::nullopt if sizes and strides differ in number, one is
/// negative, or the arithmetic overflows.
CGC_API std::optional<uint64_t> tensorExtent(const TensorRef &tensor);
/// Whether the bytes from the first to the last elements of two tensors of a valid plan overlap.
CGC_API bool overlap(const TensorRef &a, const TensorRef &b);
/// Whether a tensor is row-major without gaps. Strides of dimensions of size 1 are ignored.
CGC_API bool isDense(std::span<const int64_t> sizes, std::span<const int64_t> strides);

} // namespace cgc

// LaunchPlan: what a plan file holds, as plain structs: entries, buckets, tensors in slots, launch
// records.
//
// Invariants (validate.cpp checks them for every plan that is read or written):
//  - a plan is data: records name kernels, libraries and ATen ops, never code or pointers;
//  - a TensorRef lies inside its buffer with every element it can address;
//  - records are in execution order; each element that a record reads was written by an earlier
//    record, or lies in a weight or an input; no record names one of these as what it writes, and
//    all of each output is written.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/export.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace cgc {

/// The version of the file format. A reader accepts exactly this one.
inline constexpr uint32_t kPlanFormatVersion = 3;
/// The convention by which kernels take their arguments: pointers, then ints, then floats.
inline constexpr uint32_t kKernelAbi = 1;
/// Alignment of weights in the file and of buffers in the arena, in bytes.
inline constexpr uint64_t kBufferAlignment = 256;
/// Large tensors begin at multiples of 64 KiB in memory: cuBLAS's fp32 kernels lost up to 15 % on
/// an H200 to a matrix that began 16 KiB off (docs/log/2026-11-21-64-kib-alignment.md).
inline constexpr uint64_t kLargeAlignment = 64 << 10;
constexpr uint64_t placementAlignment(uint64_t bytes) {
  return bytes >= kLargeAlignment ? kLargeAlignment : kBufferAlignment;
}

enum class BufferKind : uint8_t {
  Weight, ///< Read-only; `index` is the weight.
  Arena,  ///< The context's scratch memory, shared by all buckets; `index` is 0.
  Input,  ///< A static input buffer of the bucket; `index` is the input.
  Output, ///< A static output buffer of the bucket; `index` is the output.
};

/// A place: buffer and byte offset. Never a pointer.
struct Slot {
  BufferKind buffer = BufferKind::Arena;
  uint32_t index = 0;
  uint64_t offset = 0;
  bool operator==(const Slot &) const = default;
};

/// A strided tensor in a slot. Strides are in elements and not negative.
struct TensorRef {
  Slot slot;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  bool operator==(const TensorRef &) const = default;
};

/// An index into Bucket::tensors.
enum class TensorId : uint32_t {};

/// An index into Plan::locations; kNoLocation for none.
enum class LocationId : uint32_t {};
inline constexpr LocationId kNoLocation{0xffffffffu};

/// A node of the model: for messages and profiles.
struct SourceLocation {
  std::string file;
  uint32_t line = 0;
  std::string module;
  bool operator==(const SourceLocation &) const = default;
};

/// One argument of an ATen overload, in schema order. A dtype is the IR's; a device is always the
/// plan's target.
struct DeviceArg {
  bool operator==(const DeviceArg &) const = default;
};
struct NoneArg {
  bool operator==(const NoneArg &) const = default;
};
/// `Tensor[]` and `Tensor?[]`; an absent element is kNoTensor.
inline constexpr TensorId kNoTensor{0xffffffffu};
using AtenArg =
    std::variant<NoneArg, TensorId, std::vector<TensorId>, int64_t, double, bool, std::string,
                 DType, DeviceArg, std::vector<int64_t>, std::vector<double>>;

/// Calls an ATen op through the provider (LibTorch).
struct AtenCall {
  std::string op;       ///< "aten::gelu"
  std::string overload; ///< The overload to call: "", "Tensor", "out", ...
  /// One for each argument of the overload but those that it writes.
  std::vector<AtenArg> args;
  /// A result that nobody reads may be kNoTensor.
  std::vector<TensorId> outputs;
  /// The overload computes straight into its written arguments: `out`, or the `self` of an in-place
  /// op. Otherwise the provider calls the functional overload and copies.
  bool writesOut = false;
  bool operator==(const AtenCall &) const = default;
};

/// Launches a kernel of the runtime's kernel library (runtime/kernels/kernels.def).
struct KernelLaunch {
  std::string kernel;   ///< The row's name.
  uint64_t abiHash = 0; ///< Of the row's parameter list: refused if the runtime's differs.
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t sharedBytes = 0;
  /// Become pointers, reads first. What the kernel's row calls optional may be kNoTensor.
  std::vector<TensorId> reads, writes;
  std::vector<int64_t> ints; ///< Passed after the pointers, in the row's order.
  std::vector<double> floats;
  bool operator==(const KernelLaunch &) const = default;
};

/// Calls a function of a vendor library that the runtime opens when a plan names it (the one that
/// there is: product.h), or an op of one of PlanData::opLibraries, with dense tensors.
struct LibraryCall {
  std::string library;                 ///< "cublaslt", or the name of an op library
  std::string function;                ///< "matmul", or the op
  std::vector<TensorId> reads, writes; ///< An absent read is kNoTensor.
  std::vector<int64_t> ints;
  std::vector<double> floats;
  /// Frozen by a tuner, with the machine it holds for; empty: the library's heuristic.
  std::vector<std::byte> algorithm;
  bool operator==(const LibraryCall &) const = default;
};

/// Copies one tensor onto another of the same dtype and sizes; both dense.
struct Memcpy {
  TensorId source{}, destination{};
  bool operator==(const Memcpy &) const = default;
};

/// Sets every byte of a dense tensor.
struct Memset {
  TensorId destination{};
  uint8_t value = 0;
  bool operator==(const Memset &) const = default;
};

struct LaunchRecord {
  std::variant<KernelLaunch, LibraryCall, AtenCall, Memcpy, Memset> op;
  LocationId location = kNoLocation;
  bool operator==(const LaunchRecord &) const = default;
};

/// The tensors that a record reads and writes: dependencies, hazards and patch tables derive from
/// these.
CGC_API std::vector<TensorId> recordReads(const LaunchRecord &record);
CGC_API std::vector<TensorId> recordWrites(const LaunchRecord &record);
/// "aten::gelu.out", "kernel layer_norm_f16", "memcpy": for messages and listings.
CGC_API std::string recordName(const LaunchRecord &record);

/// An input or output of a bucket. Always dense.
struct IoTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  /// Integer inputs that index an embedding: each value must be in [0, upperBound). 0: no bound is
  /// known.
  int64_t upperBound = 0;
  bool operator==(const IoTensor &) const = default;
};

/// One entry specialised to one concrete set of input shapes.
struct Bucket {
  std::vector<IoTensor> inputs, outputs;
  std::vector<TensorRef> tensors;
  std::vector<LaunchRecord> records;
  uint64_t arenaBytes = 0;
  bool operator==(const Bucket &) const = default;
};

/// A method of the model: "encode_image".
struct Entry {
  std::string name;
  std::vector<Bucket> buckets;
  bool operator==(const Entry &) const = default;
};

/// A weight's metadata; its bytes are dense and row-major.
struct Weight {
  std::string name; ///< Qualified name in the model; of several with equal bytes, the first.
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  uint64_t fileOffset = 0; ///< Set by the writer.
  uint64_t hash = 0;       ///< xxhash64 of the bytes; set by the writer.
  bool operator==(const Weight &) const = default;
};

/// The GPU that launch shapes were chosen for. The plan runs on others too, and may be slower
/// there.
struct TargetGpu {
  std::string name; ///< "NVIDIA H200"
  uint32_t multiprocessors = 0;
  bool tuned = false; ///< What computes each product was measured on it, not modelled.
  bool operator==(const TargetGpu &) const = default;
};

/// A library of the user's own that the plan calls; whoever runs the plan names its file.
struct OpLibraryId {
  std::string name;  ///< The file's.
  uint64_t hash = 0; ///< xxhash64 of the file's bytes.
  bool operator==(const OpLibraryId &) const = default;
};

/// Everything in a plan but the weights' bytes.
struct PlanData {
  DeviceKind target = DeviceKind::Cpu;
  std::string producer; ///< "cgc 0.1.0": informational.
  std::vector<Entry> entries;
  std::vector<Weight> weights;
  std::vector<SourceLocation> locations;
  std::optional<DType> precision; ///< What the model's floats were converted to; none: nothing was.
  std::optional<TargetGpu> gpu;   ///< Of target cuda.
  std::vector<OpLibraryId> opLibraries; ///< Those that records call, each once.
  bool operator==(const PlanData &) const = default;

  /// The position in opLibraries of the one that `call` goes to; nothing for a vendor's library.
  CGC_API std::optional<size_t> opLibraryOf(const LibraryCall &call) const;
  CGC_API const Entry *findEntry(std::string_view name) const;
};

/// Elements and bytes of a tensor with these sizes; nothing if a size is negative or the product
/// overflows.
CGC_API std::optional<uint64_t> tensorBytes(DType dtype, std::span<const int64_t> sizes);
/// Bytes from a tensor's first to past its last addressable element; nothing if sizes and strides
/// do not match, one is negative, or the arithmetic overflows.
CGC_API std::optional<uint64_t> tensorExtent(const TensorRef &tensor);
/// Whether the tensor is row-major without gaps. Strides of dimensions of size 1 do not matter.
CGC_API bool isDense(std::span<const int64_t> sizes, std::span<const int64_t> strides);

} // namespace cgc

// Type: dtype, sizes, strides and device of a value. TensorData: the bytes of a parameter.
#pragma once

#include "runtime/base/dtype.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cgc::ir {

using Dims = llvm::SmallVector<int64_t, 6>;

/// Returns row-major strides, in elements, of a dense tensor with these sizes.
Dims contiguousStrides(llvm::ArrayRef<int64_t> sizes);

/// The type of a tensor value of known shape. All sizes are concrete: a bucket has no symbolic
/// sizes.
struct TensorType {
  DType dtype = DType::F32;
  Dims sizes;
  Dims strides; ///< In elements, one per size; 0 in a dimension that a view broadcasts.
  DeviceKind device = DeviceKind::Cpu;

  /// Returns the type of a contiguous tensor.
  static TensorType dense(DType dtype, llvm::ArrayRef<int64_t> sizes,
                          DeviceKind device = DeviceKind::Cpu);

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t numElements() const;
  uint64_t numBytes() const { return static_cast<uint64_t>(numElements()) * dtypeSize(dtype); }
  /// Returns true if row-major and dense, as LibTorch's is_contiguous(): strides of size-1
  /// dimensions are ignored.
  bool isContiguous() const;
  bool operator==(const TensorType &other) const = default;
};

/// Returns the permutation of dimensions that makes `type` contiguous; nullopt if there is none.
std::optional<Dims> denseOrder(const TensorType &type);
/// Returns true if the last `inner` dimensions are dense in memory, and so are the others in some
/// order.
bool hasDenseRows(const TensorType &type, int64_t inner);

/// Returns `f16[1,50,768]`, with the strides in a second bracket unless contiguous, and `@cuda`
/// unless on the CPU.
std::string toString(const TensorType &type);
/// Parses the output of toString; nullopt if `text` is not exactly one tensor type.
std::optional<TensorType> parseTensorType(llvm::StringRef text);

/// The type of an IR value: a tensor type, or dynamic if nothing is known before specialization. A
/// dynamic value may also be an int, a list or any other TorchScript value.
class Type {
public:
  Type() = default;
  Type(TensorType tensor) : tensor_(std::move(tensor)) {}

  bool isDynamic() const { return !tensor_.has_value(); }
  bool isTensor() const { return tensor_.has_value(); }
  const TensorType &tensor() const {
    assert(isTensor() && "tensor() of a dynamic type");
    return *tensor_;
  }
  bool operator==(const Type &other) const = default;

private:
  std::optional<TensorType> tensor_;
};

/// Returns `dynamic` or the tensor type.
std::string toString(const Type &type);

/// Dense row-major bytes of a parameter, buffer or constant, in host memory. Immutable and shared:
/// modules, clones and constants reference one copy.
class TensorData {
public:
  /// `keepAlive` owns the memory at `bytes`: a LibTorch tensor's storage, a vector, or a mapping.
  TensorData(TensorType type, llvm::ArrayRef<std::byte> bytes,
             std::shared_ptr<const void> keepAlive)
      : type_(std::move(type)), bytes_(bytes), keepAlive_(std::move(keepAlive)) {
    assert(type_.isContiguous() && bytes_.size() == type_.numBytes());
  }
  /// Copies `bytes`.
  static std::shared_ptr<const TensorData> copyOf(TensorType type, llvm::ArrayRef<std::byte> bytes);

  const TensorType &type() const { return type_; }
  llvm::ArrayRef<std::byte> bytes() const { return bytes_; }

private:
  TensorType type_;
  llvm::ArrayRef<std::byte> bytes_;
  std::shared_ptr<const void> keepAlive_;
};

} // namespace cgc::ir

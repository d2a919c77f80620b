// WrittenBytes: the exact set of bytes of one buffer that records have written, strided tensors
// included.
#pragma once

#include "runtime/plan/plan.h"

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace cgc {

/// A set of bytes, stored as disjoint ranges.
class ByteRanges final {
public:
  struct Range {
    uint64_t begin, end;
  };
  /// Adds the nonempty range [begin, end). Returns the merged range that contains it.
  Range add(uint64_t begin, uint64_t end);
  /// Removes the bytes of [begin, end).
  void remove(uint64_t begin, uint64_t end);
  /// Removes all ranges that meet [begin, end).
  void removeMeeting(uint64_t begin, uint64_t end);
  bool isEmpty() const { return ranges_.empty(); }
  /// Whether one range contains [begin, end).
  bool covers(uint64_t begin, uint64_t end) const;
  /// The beginning of the first range. The set must not be empty.
  uint64_t begin() const { return ranges_.begin()->first; }

private:
  std::map<uint64_t, uint64_t> ranges_; // begin -> end
};

/// The bytes of one buffer that were written. Tensors passed in must lie inside the buffer. The
/// gaps between the elements of a strided tensor do not count as written.
///
/// A strided tensor is stored as a contiguous run of bytes and the dimensions over which it
/// repeats. Runs with equal dimensions are merged, and a dimension whose repetitions touch becomes
/// part of the run, so the slices that the operands of a cat fill merge into one range. Adding a
/// tensor takes time logarithmic in the number of runs, independent of the tensor's number of
/// elements.
class WrittenBytes final {
public:
  /// Adds the bytes of every element of `tensor`.
  void add(const TensorRef &tensor);
  /// Removes the bytes [begin, end), and all strided runs that may reach into them. Decrements
  /// `steps` for each set of dimensions, and removes all bytes once it is 0.
  void remove(uint64_t begin, uint64_t end, uint64_t &steps);
  /// Whether every byte of every element was written. Decrements `steps` for each run that it
  /// examines and returns false once `steps` is 0.
  bool covers(const TensorRef &tensor, uint64_t &steps) const;
  /// Whether each of the buffer's first `bytes` bytes was written.
  bool coversFirst(uint64_t bytes) const;

private:
  struct Dimension {
    uint64_t size, stride; ///< The stride is in bytes.
    auto operator<=>(const Dimension &) const = default;
  };
  using Dimensions = std::vector<Dimension>; ///< By descending stride.
  struct Run {
    uint64_t begin, end;
    Dimensions dimensions;
  };
  static Run runOf(const TensorRef &tensor);
  void add(uint64_t begin, uint64_t end, Dimensions dimensions);
  bool covers(const Run &run, size_t dimension, uint64_t &steps) const;
  bool coversRepeated(uint64_t begin, uint64_t end, uint64_t &steps) const;

  ByteRanges dense_;
  /// Strided runs by their dimensions. A byte b of the ranges stands for the bytes b + sum(i_d *
  /// stride_d) for all i_d in [0, size_d).
  std::map<Dimensions, ByteRanges> repeated_;
};

} // namespace cgc

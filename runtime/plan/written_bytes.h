// WrittenBytes: which bytes of one buffer the records so far have written, exactly, for strided
// tensors too.
#pragma once

#include "runtime/plan/plan.h"

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace cgc {

/// A set of bytes as disjoint ranges.
class ByteRanges final {
public:
  struct Range {
    uint64_t begin, end;
  };
  /// Adds [begin, end), which is not empty; the range that it is part of now.
  Range add(uint64_t begin, uint64_t end);
  bool covers(uint64_t begin, uint64_t end) const;
  /// Where the first range begins; there is one.
  uint64_t begin() const { return ranges_.begin()->first; }

private:
  std::map<uint64_t, uint64_t> ranges_; // begin -> end
};

/// The bytes of one buffer that were written. Tensors passed in lie inside the buffer; the gaps
/// between their elements belong to nobody.
///
/// A strided tensor is a run of bytes and dimensions over which it repeats. Runs with equal
/// dimensions are merged, and a dimension whose repetitions touch becomes part of the run: so the
/// slices that the parts of a cat fill add up to one range. Adding a tensor takes time logarithmic
/// in what was added before, whatever its number of elements.
class WrittenBytes final {
public:
  void add(const TensorRef &tensor);
  /// Whether every byte of every element was written. Each look at a run counts against `steps`;
  /// false when none are left.
  bool covers(const TensorRef &tensor, uint64_t &steps) const;
  /// Whether the first `bytes` of the buffer were written, each of them.
  bool coversFirst(uint64_t bytes) const;

private:
  /// In bytes.
  struct Dimension {
    uint64_t size, stride;
    auto operator<=>(const Dimension &) const = default;
  };
  using Dimensions = std::vector<Dimension>; ///< The largest stride first.
  struct Run {
    uint64_t begin, end;
    Dimensions dimensions;
  };
  static Run runOf(const TensorRef &tensor);
  void add(uint64_t begin, uint64_t end, Dimensions dimensions);
  bool covers(const Run &run, size_t dimension, uint64_t &steps) const;
  bool coversRepeated(uint64_t begin, uint64_t end, uint64_t &steps) const;

  ByteRanges dense_;
  /// Byte b of the ranges stands for b + sum(i * stride) for all i below each dimension's size.
  std::map<Dimensions, ByteRanges> repeated_;
};

} // namespace cgc

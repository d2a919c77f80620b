// RecordAccesses: the memory that a record reads and writes.
#pragma once

#include "runtime/plan/plan.h"

#include <vector>

namespace cgc {

/// The memory of one record of a valid bucket.
class CGC_API RecordAccesses final {
public:
  RecordAccesses(const Bucket &bucket, const LaunchRecord &record);

  /// Whether the order of two records matters: one writes memory that the other uses.
  bool conflictsWith(const RecordAccesses &other) const;

private:
  /// The bytes [begin, end) of a buffer.
  struct Range {
    BufferKind buffer;
    uint32_t index;
    uint64_t begin, end;
  };
  static bool meet(const std::vector<Range> &a, const std::vector<Range> &b);

  std::vector<Range> reads_, writes_;
};

} // namespace cgc

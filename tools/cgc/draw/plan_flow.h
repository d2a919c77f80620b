// Plan flow: the bytes that the records of a bucket touch, and the dependences that follow.
#pragma once

#include "runtime/plan/plan.h"
#include "tools/cgc/draw/range_map.h"

#include <map>
#include <utility>
#include <vector>

namespace cgc::tool {

/// The range of bytes of a buffer that a tensor spans.
struct Extent {
  BufferKind buffer;
  uint32_t index;
  uint64_t begin, end;
};

Extent extentOf(const TensorRef &tensor);

/// The tensor of `bucket` with this id.
inline const TensorRef &tensorOf(const Bucket &bucket, TensorId id) {
  return bucket.tensors[static_cast<uint32_t>(id)];
}

/// Tracks the last writer of each byte. Records are added in the order of the bucket.
class Writers final {
public:
  explicit Writers(const Bucket &bucket) : bucket_(bucket) {}
  /// Adds the writes of `record`. They replace earlier writers of the same bytes.
  void add(size_t record);
  /// The last writers of the bytes of `extent`, latest first.
  std::vector<size_t> of(const Extent &extent) const;

private:
  const Bucket &bucket_;
  std::map<std::pair<BufferKind, uint32_t>, RangeMap<size_t>> writers_; ///< For each buffer.
};

/// A range of the arena, alive from the first record that writes it to the last that touches it.
struct ArenaBuffer {
  uint64_t begin = 0, end = 0; ///< Bytes.
  size_t first = 0, last = 0;  ///< Records.
  TensorId tensor{};           ///< The tensor that the first record wrote.
};

/// The arena buffers of a bucket, derived from the accesses of its records, in order of `first`.
/// Ranges that several records write and one record reads as a whole are one buffer.
std::vector<ArenaBuffer> arenaBuffers(const Bucket &bucket);

} // namespace cgc::tool

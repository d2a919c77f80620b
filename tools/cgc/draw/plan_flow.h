// Plan flow: which bytes the records of a bucket touch, and so what waits for what.
#pragma once

#include "runtime/plan/plan.h"
#include "tools/cgc/draw/range_map.h"

#include <map>
#include <utility>
#include <vector>

namespace cgc::tool {

/// The bytes of a buffer that a tensor can touch.
struct Extent {
  BufferKind buffer;
  uint32_t index;
  uint64_t begin, end;
};

Extent extentOf(const TensorRef &tensor);

/// The tensor behind an id.
inline const TensorRef &tensorOf(const Bucket &bucket, TensorId id) {
  return bucket.tensors[static_cast<uint32_t>(id)];
}

/// The records that wrote what lies in memory, as far as records have been added: in order.
class Writers final {
public:
  explicit Writers(const Bucket &bucket) : bucket_(bucket) {}
  /// Counts the writes of `record`; they hide what earlier ones wrote in their extents.
  void add(size_t record);
  /// The records that wrote what is in `extent`, latest first.
  std::vector<size_t> of(const Extent &extent) const;

private:
  const Bucket &bucket_;
  std::map<std::pair<BufferKind, uint32_t>, RangeMap<size_t>> writers_; ///< Of each buffer.
};

/// A part of the arena from the record that writes it first to the last that touches it.
struct ArenaBuffer {
  uint64_t begin = 0, end = 0; ///< Bytes.
  size_t first = 0, last = 0;  ///< Records.
  TensorId tensor{};           ///< What the first record wrote.
};

/// The buffers of a bucket in the arena, as the records use it, in order of `first`. What several
/// records write in parts and one reads whole is one buffer.
std::vector<ArenaBuffer> arenaBuffers(const Bucket &bucket);

} // namespace cgc::tool

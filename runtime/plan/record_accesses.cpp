// RecordAccesses: compares ranges of bytes.
#include "runtime/plan/record_accesses.h"

#include <algorithm>

namespace cgc {

RecordAccesses::RecordAccesses(const Bucket &bucket, const LaunchRecord &record) {
  const auto add = [&](const std::vector<TensorId> &ids, std::vector<Range> &to) {
    for (const TensorId id : ids) {
      if (id == kNoTensor)
        continue;
      const TensorRef &tensor = bucket.tensors[uint32_t(id)];
      const auto [buffer, index, offset] = tensor.slot;
      if (const uint64_t bytes = *tensorExtent(tensor); bytes > 0)
        to.push_back({buffer, index, offset, offset + bytes});
    }
  };
  add(recordReads(record), reads_);
  add(recordWrites(record), writes_);
}

bool RecordAccesses::meet(const std::vector<Range> &a, const std::vector<Range> &b) {
  return std::ranges::any_of(a, [&](const Range &one) {
    return std::ranges::any_of(b, [&](const Range &other) {
      return one.buffer == other.buffer && one.index == other.index && one.begin < other.end &&
             other.begin < one.end;
    });
  });
}

bool RecordAccesses::conflictsWith(const RecordAccesses &other) const {
  return meet(writes_, other.writes_) || meet(writes_, other.reads_) || meet(reads_, other.writes_);
}

} // namespace cgc

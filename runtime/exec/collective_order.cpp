// CollectiveOrder: compares the memory of each collective with that of all records.
#include "runtime/exec/collective_order.h"

#include <algorithm>
#include <tuple>

namespace cgc {
namespace {

/// The bytes [begin, end) of a buffer.
struct Range {
  BufferKind buffer;
  uint32_t index;
  uint64_t begin, end;

  bool overlaps(const Range &other) const {
    return buffer == other.buffer && index == other.index && begin < other.end && other.begin < end;
  }
};

struct Accesses {
  std::vector<Range> reads, writes;

  /// Whether the order of two records matters.
  bool conflicts(const Accesses &other) const {
    const auto meet = [](const std::vector<Range> &a, const std::vector<Range> &b) {
      return std::ranges::any_of(a, [&](const Range &range) {
        return std::ranges::any_of(b, [&](const Range &at) { return range.overlaps(at); });
      });
    };
    return meet(writes, other.writes) || meet(writes, other.reads) || meet(reads, other.writes);
  }
};

Accesses accessesOf(const Bucket &bucket, const LaunchRecord &record) {
  Accesses accesses;
  const auto add = [&](const std::vector<TensorId> &ids, std::vector<Range> &to) {
    for (const TensorId id : ids) {
      const TensorRef &tensor = bucket.tensors[uint32_t(id)];
      const auto [buffer, index, offset] = tensor.slot;
      if (const uint64_t bytes = *tensorExtent(tensor); bytes > 0)
        to.push_back({buffer, index, offset, offset + bytes});
    }
  };
  add(recordReads(record), accesses.reads);
  add(recordWrites(record), accesses.writes);
  return accesses;
}

} // namespace

CollectiveOrder collectiveOrder(const Bucket &bucket) {
  const auto runsBeside = [](const LaunchRecord &record) {
    return record.branch == kCollectiveBranch;
  };
  if (std::ranges::none_of(bucket.records, runsBeside))
    return {};
  CollectiveOrder order;
  std::vector<Accesses> all, collectives;
  size_t region = 0; // Its first record.
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    const LaunchRecord &record = bucket.records[i];
    all.push_back(accessesOf(bucket, record));
    const Accesses &own = all.back();
    uint32_t &waits = order.waits.emplace_back(0);
    if (runsBeside(record)) {
      for (size_t before = 0; before < i; ++before)
        if (!runsBeside(bucket.records[before]) && own.conflicts(all[before]))
          waits |= before < region ? 1u : 1u << bucket.records[before].branch;
      collectives.push_back(own);
      continue;
    }
    if (record.branch == 0)
      region = i + 1;
    for (size_t c = collectives.size(); c > 0 && waits == 0; --c)
      if (own.conflicts(collectives[c - 1]))
        waits = uint32_t(c);
  }
  return order;
}

} // namespace cgc

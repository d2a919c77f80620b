// Plan flow: computes extents, writers, and the lifetimes of arena buffers.
#include "tools/cgc/draw/plan_flow.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

namespace cgc::tool {

Extent extentOf(const TensorRef &tensor) {
  const uint64_t begin = tensor.slot.offset;
  return {tensor.slot.buffer, tensor.slot.index, begin, begin + *tensorExtent(tensor)};
}

void Writers::add(size_t record) {
  for (TensorId write : recordWrites(bucket_.records[record])) {
    const Extent extent = extentOf(tensorOf(bucket_, write));
    writers_[{extent.buffer, extent.index}].set(extent.begin, extent.end, record);
  }
}

std::vector<size_t> Writers::of(const Extent &extent) const {
  std::set<size_t, std::greater<>> records;
  if (const auto found = writers_.find({extent.buffer, extent.index}); found != writers_.end())
    for (const auto &[begin, range] : found->second.overlapping(extent.begin, extent.end))
      records.insert(range.value);
  return {records.begin(), records.end()};
}

namespace {

/// The empty value of a RangeMap that serves as a set of ranges.
struct Unit {};

/// A buffer whose last record is known and whose first is not: records are visited in reverse.
struct OpenBuffer {
  ArenaBuffer buffer;
  RangeMap<Unit> missing; ///< Ranges that no record visited so far has written.
};

class Lifetimes {
public:
  explicit Lifetimes(const Bucket &bucket) : bucket_(bucket) {}

  std::vector<ArenaBuffer> run() {
    for (size_t i = bucket_.records.size(); i-- > 0;) {
      const auto reads = arenaExtents(recordReads(bucket_.records[i]));
      RangeMap<Unit> isRead;
      for (const auto &[extent, tensor] : reads)
        isRead.set(extent.begin, extent.end, {});
      for (const auto &[extent, tensor] : arenaExtents(recordWrites(bucket_.records[i]))) {
        // A tensor that is updated in place stays the same buffer.
        const bool inPlace = !isRead.overlapping(extent.begin, extent.end).empty();
        write(extent, tensor, i, inPlace);
      }
      for (const auto &[extent, tensor] : reads)
        read(extent, tensor, i);
    }
    // Open buffers are those that no record writes. A valid plan has none.
    for (const auto &[begin, open] : open_)
      done_.push_back(open.buffer);
    std::sort(done_.begin(), done_.end(), [](const ArenaBuffer &a, const ArenaBuffer &b) {
      return std::tie(a.first, a.begin, a.last, a.end) < std::tie(b.first, b.begin, b.last, b.end);
    });
    return std::move(done_);
  }

private:
  std::vector<std::pair<Extent, TensorId>> arenaExtents(const std::vector<TensorId> &ids) const {
    std::vector<std::pair<Extent, TensorId>> extents;
    for (TensorId id : ids)
      if (id != kNoTensor && tensorOf(bucket_, id).slot.buffer == BufferKind::Arena)
        if (const Extent extent = extentOf(tensorOf(bucket_, id)); extent.begin < extent.end)
          extents.emplace_back(extent, id);
    return extents;
  }

  /// The first open buffer that ends after `begin`. Open buffers are disjoint and sorted.
  std::map<uint64_t, OpenBuffer>::iterator firstBehind(uint64_t begin) {
    auto it = open_.upper_bound(begin);
    if (it != open_.begin() && std::prev(it)->second.buffer.end > begin)
      --it;
    return it;
  }

  void write(const Extent &extent, TensorId tensor, size_t record, bool inPlace) {
    bool isRead = false;
    for (auto it = firstBehind(extent.begin); it != open_.end() && it->first < extent.end;) {
      OpenBuffer &open = it->second;
      isRead = true;
      open.buffer.first = record;
      open.buffer.tensor = tensor;
      open.missing.remove(extent.begin, extent.end);
      if (open.missing.empty() && !inPlace) {
        done_.push_back(open.buffer);
        it = open_.erase(it);
      } else {
        ++it;
      }
    }
    if (!isRead)
      done_.push_back({extent.begin, extent.end, record, record, tensor});
  }

  /// Merges all open buffers that overlap the extent that a record reads into one.
  void read(const Extent &extent, TensorId tensor, size_t record) {
    OpenBuffer merged{{extent.begin, extent.end, record, record, tensor}, {}};
    for (auto it = firstBehind(extent.begin); it != open_.end() && it->first < extent.end;
         it = open_.erase(it)) {
      OpenBuffer &open = it->second;
      merged.buffer.begin = std::min(merged.buffer.begin, open.buffer.begin);
      merged.buffer.end = std::max(merged.buffer.end, open.buffer.end);
      merged.buffer.last = std::max(merged.buffer.last, open.buffer.last);
      if (open.missing.size() > merged.missing.size())
        std::swap(open.missing, merged.missing); // Moves the smaller set.
      for (const auto &[begin, range] : open.missing)
        merged.missing.set(begin, range.end, {});
    }
    merged.missing.set(extent.begin, extent.end, {});
    open_.emplace(merged.buffer.begin, std::move(merged));
  }

  const Bucket &bucket_;
  std::map<uint64_t, OpenBuffer> open_; ///< Keyed by first byte.
  std::vector<ArenaBuffer> done_;
};

} // namespace

std::vector<ArenaBuffer> arenaBuffers(const Bucket &bucket) {
  return Lifetimes(bucket).run();
}

} // namespace cgc::tool

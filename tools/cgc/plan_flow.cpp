// Plan flow: extents, writers, and the lifetimes of arena buffers.
#include "tools/cgc/plan_flow.h"

#include <algorithm>
#include <tuple>

namespace cgc::tool {

Extent extentOf(const TensorRef &tensor) {
  uint64_t last = 0;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] == 0)
      return {tensor.slot.buffer, tensor.slot.index, tensor.slot.offset, tensor.slot.offset};
    last += static_cast<uint64_t>((tensor.sizes[d] - 1) * tensor.strides[d]);
  }
  const uint64_t begin = tensor.slot.offset;
  return {tensor.slot.buffer, tensor.slot.index, begin,
          begin + (last + 1) * dtypeSize(tensor.dtype)};
}

std::vector<size_t> writersOf(const Bucket &bucket, const Extent &extent, size_t end) {
  std::vector<size_t> writers;
  for (size_t i = end; i-- > 0;) {
    for (TensorId write : recordWrites(bucket.records[i])) {
      const Extent written = extentOf(tensorOf(bucket, write));
      if (!written.overlaps(extent))
        continue;
      if (writers.empty() || writers.back() != i)
        writers.push_back(i);
      if (written.covers(extent))
        return writers;
    }
  }
  return writers;
}

namespace {

/// A buffer whose end is known and whose beginning is not: records are visited backwards.
struct OpenBuffer {
  ArenaBuffer buffer;
  /// What no record visited so far has written: disjoint and in order.
  std::vector<std::pair<uint64_t, uint64_t>> missing;

  bool overlaps(const Extent &extent) const {
    return extent.begin < buffer.end && buffer.begin < extent.end;
  }
  void subtract(const Extent &extent) {
    std::vector<std::pair<uint64_t, uint64_t>> left;
    for (auto [begin, end] : missing) {
      if (begin < std::min(end, extent.begin))
        left.emplace_back(begin, std::min(end, extent.begin));
      if (std::max(begin, extent.end) < end)
        left.emplace_back(std::max(begin, extent.end), end);
    }
    missing = std::move(left);
  }
};

class Lifetimes {
public:
  explicit Lifetimes(const Bucket &bucket) : bucket_(bucket) {}

  std::vector<ArenaBuffer> run() {
    for (size_t i = bucket_.records.size(); i-- > 0;) {
      const auto reads = arenaExtents(recordReads(bucket_.records[i]));
      for (const auto &[extent, tensor] : arenaExtents(recordWrites(bucket_.records[i]))) {
        // What is updated in place goes on being the same buffer.
        const bool inPlace = std::any_of(reads.begin(), reads.end(),
                                         [&](auto &r) { return r.first.overlaps(extent); });
        write(extent, tensor, i, inPlace);
      }
      for (const auto &[extent, tensor] : reads)
        read(extent, tensor, i);
    }
    // What nobody writes: a plan has none.
    for (OpenBuffer &open : open_)
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

  void write(const Extent &extent, TensorId tensor, size_t record, bool inPlace) {
    bool isRead = false;
    for (size_t k = open_.size(); k-- > 0;) {
      OpenBuffer &open = open_[k];
      if (!open.overlaps(extent))
        continue;
      isRead = true;
      open.buffer.first = record;
      open.buffer.tensor = tensor;
      open.subtract(extent);
      if (open.missing.empty() && !inPlace) {
        done_.push_back(open.buffer);
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
    if (!isRead)
      done_.push_back({extent.begin, extent.end, record, record, tensor});
  }

  /// All that overlaps what is read whole is one buffer.
  void read(const Extent &extent, TensorId tensor, size_t record) {
    OpenBuffer merged{{extent.begin, extent.end, record, record, tensor},
                      {{extent.begin, extent.end}}};
    for (size_t k = open_.size(); k-- > 0;) {
      const OpenBuffer &open = open_[k];
      if (!open.overlaps(extent))
        continue;
      merged.buffer.begin = std::min(merged.buffer.begin, open.buffer.begin);
      merged.buffer.end = std::max(merged.buffer.end, open.buffer.end);
      merged.buffer.last = std::max(merged.buffer.last, open.buffer.last);
      for (auto [begin, end] : open.missing) {
        merged.subtract({extent.buffer, extent.index, begin, end});
        merged.missing.emplace_back(begin, end);
      }
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(k));
    }
    std::sort(merged.missing.begin(), merged.missing.end());
    open_.push_back(std::move(merged));
  }

  const Bucket &bucket_;
  std::vector<OpenBuffer> open_;
  std::vector<ArenaBuffer> done_;
};

} // namespace

std::vector<ArenaBuffer> arenaBuffers(const Bucket &bucket) {
  return Lifetimes(bucket).run();
}

} // namespace cgc::tool

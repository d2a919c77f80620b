// WrittenBytes: sets of contiguous and of strided byte ranges.
#include "runtime/plan/written_bytes.h"

#include <algorithm>
#include <functional>

namespace cgc {

ByteRanges::Range ByteRanges::add(uint64_t begin, uint64_t end) {
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second >= begin)
    --it;
  while (it != ranges_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace(begin, end);
  return {begin, end};
}

void ByteRanges::remove(uint64_t begin, uint64_t end) {
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second > begin)
    --it;
  while (it != ranges_.end() && it->first < end) {
    const auto [first, last] = *it;
    it = ranges_.erase(it);
    if (first < begin)
      ranges_.emplace(first, begin);
    if (last > end)
      ranges_.emplace(end, last);
  }
}

void ByteRanges::removeMeeting(uint64_t begin, uint64_t end) {
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second > begin)
    --it;
  while (it != ranges_.end() && it->first < end)
    it = ranges_.erase(it);
}

bool ByteRanges::covers(uint64_t begin, uint64_t end) const {
  const auto it = ranges_.upper_bound(begin);
  return it != ranges_.begin() && std::prev(it)->second >= end;
}

WrittenBytes::Run WrittenBytes::runOf(const TensorRef &tensor) {
  const uint64_t bytes = dtypeSize(tensor.dtype);
  Dimensions dimensions;
  for (size_t d = 0; d < tensor.sizes.size(); ++d)
    if (tensor.sizes[d] > 1 && tensor.strides[d] > 0)
      dimensions.push_back({uint64_t(tensor.sizes[d]), uint64_t(tensor.strides[d]) * bytes});
  std::ranges::sort(dimensions, std::greater(), &Dimension::stride);
  // Merges repetitions without gaps into the run, and two dimensions that step uniformly into one.
  Run run{tensor.slot.offset, tensor.slot.offset + bytes, {}};
  for (; !dimensions.empty(); dimensions.pop_back()) {
    const auto [size, stride] = dimensions.back();
    if (run.dimensions.empty() && stride <= run.end - run.begin)
      run.end += (size - 1) * stride;
    else if (!run.dimensions.empty() &&
             stride == run.dimensions.back().size * run.dimensions.back().stride)
      run.dimensions.back().size *= size;
    else
      run.dimensions.push_back({size, stride});
  }
  std::ranges::reverse(run.dimensions);
  return run;
}

void WrittenBytes::add(const TensorRef &tensor) {
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end())
    return;
  Run run = runOf(tensor);
  add(run.begin, run.end, std::move(run.dimensions));
}

void WrittenBytes::add(uint64_t begin, uint64_t end, Dimensions dimensions) {
  while (!dimensions.empty()) {
    const ByteRanges::Range range = repeated_[dimensions].add(begin, end);
    const auto [size, stride] = dimensions.back();
    if (stride > range.end - range.begin)
      return;
    begin = range.begin;
    end = range.end + (size - 1) * stride;
    dimensions.pop_back();
  }
  dense_.add(begin, end);
}

void WrittenBytes::remove(uint64_t begin, uint64_t end, uint64_t &steps) {
  dense_.remove(begin, end);
  for (auto it = repeated_.begin(); it != repeated_.end();) {
    if (steps == 0) {
      dense_ = {};
      repeated_.clear();
      return;
    }
    --steps;
    uint64_t reach = 0; // Of a repetition, from the first one.
    for (const auto &[size, stride] : it->first)
      reach += (size - 1) * stride;
    it->second.removeMeeting(begin - std::min(begin, reach), end);
    it = it->second.isEmpty() ? repeated_.erase(it) : std::next(it);
  }
}

bool WrittenBytes::covers(const TensorRef &tensor, uint64_t &steps) const {
  return std::ranges::find(tensor.sizes, 0) != tensor.sizes.end() ||
         covers(runOf(tensor), 0, steps);
}

bool WrittenBytes::coversFirst(uint64_t bytes) const {
  return bytes == 0 || dense_.covers(0, bytes);
}

/// Whether the run, repeated over its dimensions from `dimension` on, was written.
bool WrittenBytes::covers(const Run &run, size_t dimension, uint64_t &steps) const {
  if (steps == 0)
    return false;
  --steps;
  uint64_t end = run.end;
  for (size_t d = dimension; d < run.dimensions.size(); ++d)
    end += (run.dimensions[d].size - 1) * run.dimensions[d].stride;
  if (dense_.covers(run.begin, end))
    return true;
  if (dimension == run.dimensions.size())
    return coversRepeated(run.begin, run.end, steps);
  const auto same = repeated_.find({run.dimensions.begin() + dimension, run.dimensions.end()});
  if (same != repeated_.end() && same->second.covers(run.begin, run.end))
    return true;
  const auto [size, stride] = run.dimensions[dimension];
  Run part = run;
  for (uint64_t i = 0; i < size; ++i, part.begin += stride, part.end += stride)
    if (!covers(part, dimension + 1, steps))
      return false;
  return true;
}

/// Whether [begin, end) lies inside one repetition of a strided run that was written.
bool WrittenBytes::coversRepeated(uint64_t begin, uint64_t end, uint64_t &steps) const {
  for (const auto &[dimensions, ranges] : repeated_) {
    if (steps == 0)
      return false;
    --steps;
    if (begin < ranges.begin())
      continue;
    uint64_t within = begin - ranges.begin();
    for (const auto &[size, stride] : dimensions)
      within -= std::min(size - 1, within / stride) * stride;
    within += ranges.begin();
    if (ranges.covers(within, within + (end - begin)))
      return true;
  }
  return false;
}

} // namespace cgc

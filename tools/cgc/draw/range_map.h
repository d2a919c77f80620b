// RangeMap: a map from disjoint ranges of bytes to values.
#pragma once

#include <cstdint>
#include <map>
#include <ranges>

namespace cgc::tool {

/// Each operation takes time logarithmic in the number of ranges, plus the ranges that it visits or
/// removes.
template <class T> class RangeMap {
public:
  struct Entry {
    uint64_t end;
    T value;
  };
  using Map = std::map<uint64_t, Entry>; // Keyed by the first byte of a range.

  bool empty() const { return map_.empty(); }
  size_t size() const { return map_.size(); }
  auto begin() const { return map_.begin(); }
  auto end() const { return map_.end(); }

  /// The ranges that overlap [begin, end), in order.
  auto overlapping(uint64_t begin, uint64_t end) const {
    auto first = map_.upper_bound(begin);
    if (first != map_.begin() && std::prev(first)->second.end > begin)
      --first;
    auto last = first;
    while (last != map_.end() && last->first < end)
      ++last;
    return std::ranges::subrange(first, last);
  }
  /// Removes [begin, end) from all ranges that overlap it.
  void remove(uint64_t begin, uint64_t end) {
    if (begin >= end)
      return;
    const auto inside = overlapping(begin, end);
    if (inside.empty())
      return;
    const auto [first, firstEntry] = *inside.begin();
    const Entry lastEntry = std::prev(inside.end())->second;
    map_.erase(inside.begin(), inside.end());
    if (first < begin)
      map_.emplace(first, Entry{begin, firstEntry.value});
    if (end < lastEntry.end)
      map_.emplace(end, lastEntry);
  }
  /// Sets the value of [begin, end).
  void set(uint64_t begin, uint64_t end, T value) {
    remove(begin, end);
    if (begin < end)
      map_.emplace(begin, Entry{end, std::move(value)});
  }

private:
  Map map_;
};

} // namespace cgc::tool

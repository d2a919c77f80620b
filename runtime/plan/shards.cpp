// Shards: the owners of shards.
#include "runtime/plan/shards.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace cgc {

std::vector<int> shardOwners(const PlanData &plan, int ranks) {
  std::vector<uint64_t> bytes; // By shard.
  for (const State &state : plan.states)
    if (state.shard) {
      bytes.resize(std::max(bytes.size(), size_t(*state.shard) + 1));
      bytes[*state.shard] += *tensorBytes(state.dtype, state.sizes);
    }
  std::vector<size_t> largestFirst(bytes.size());
  std::iota(largestFirst.begin(), largestFirst.end(), size_t(0));
  std::ranges::stable_sort(largestFirst, std::ranges::greater(),
                           [&](size_t shard) { return bytes[shard]; });
  std::set<std::pair<uint64_t, int>> loads; // The bytes of each rank.
  for (int rank = 0; rank < ranks; ++rank)
    loads.emplace(0, rank);
  std::vector<int> owners(bytes.size());
  for (const size_t shard : largestFirst) {
    const auto [load, rank] = loads.extract(loads.begin()).value();
    owners[shard] = rank;
    loads.emplace(load + bytes[shard], rank);
  }
  return owners;
}

std::vector<bool> heldStates(const PlanData &plan, const std::vector<int> &owners, int rank) {
  std::vector<bool> held;
  for (const State &state : plan.states)
    held.push_back(!state.shard || owners[*state.shard] == rank);
  return held;
}

} // namespace cgc

// Branches: connected components by union-find, and the order of buffers.
#include "backend/branches.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <bit>

namespace cgc::backend {
namespace {

/// Finds branches from the first record to the last, one region after another.
class BranchFinder {
public:
  explicit BranchFinder(llvm::ArrayRef<BufferUse> records)
      : records_(records), branches_(records.size()), parents_(records.size()),
        sizes_(records.size()) {}

  std::vector<uint32_t> run() {
    const auto count = static_cast<uint32_t>(records_.size());
    // A region begins after up to kMostTrunk records that all chains depend on.
    for (uint32_t begin = 0, first = 0; begin < count && begin - first <= kMostTrunk;) {
      const uint32_t end = findRegion(begin);
      if (!hasBranches(begin, end)) {
        ++begin;
        continue;
      }
      numberBranches(begin, end);
      begin = first = end + 1;
    }
    return std::move(branches_);
  }

private:
  /// The records of the region that use a buffer.
  struct Uses {
    bool isWritten = false;
    llvm::SmallVector<uint32_t, 2> records;
  };

  uint32_t chainOf(uint32_t record) {
    while (parents_[record] != record)
      record = parents_[record] = parents_[parents_[record]];
    return record;
  }

  void unite(uint32_t a, uint32_t b) {
    a = chainOf(a);
    b = chainOf(b);
    if (a == b)
      return;
    if (sizes_[a] < sizes_[b])
      std::swap(a, b);
    parents_[b] = a;
    sizes_[a] += sizes_[b];
  }

  /// The chains of the region that `record`, the next one, depends on, each once.
  llvm::SmallVector<uint32_t> chainsBefore(uint32_t record) {
    llvm::SmallVector<uint32_t> chains;
    const auto add = [&](uint32_t buffer, bool writes) {
      const auto uses = uses_.find(buffer);
      if (uses == uses_.end() || !(writes || uses->second.isWritten))
        return;
      for (uint32_t user : uses->second.records)
        if (const uint32_t chain = chainOf(user); !llvm::is_contained(chains, chain))
          chains.push_back(chain);
    };
    for (uint32_t buffer : records_[record].reads)
      add(buffer, false);
    for (uint32_t buffer : records_[record].writes)
      add(buffer, true);
    return chains;
  }

  /// Finds the chains of the records from `begin` on, and returns the first record that depends on
  /// two long ones, or the number of records.
  uint32_t findRegion(uint32_t begin) {
    uses_.clear();
    for (uint32_t i = begin; i < records_.size(); ++i) {
      parents_[i] = i;
      sizes_[i] = 1;
    }
    for (uint32_t i = begin; i < records_.size(); ++i) {
      const llvm::SmallVector<uint32_t> chains = chainsBefore(i);
      if (llvm::count_if(chains, [&](uint32_t chain) { return isLong(chain); }) > 1)
        return i;
      for (uint32_t chain : chains)
        unite(chain, i);
      for (uint32_t buffer : records_[i].reads)
        uses_[buffer].records.push_back(i);
      for (uint32_t buffer : records_[i].writes) {
        uses_[buffer].isWritten = true;
        uses_[buffer].records.push_back(i);
      }
    }
    return records_.size();
  }

  bool isLong(uint32_t chain) const { return sizes_[chain] >= kLeastChain; }

  /// Whether the records from `begin` to `end` are two long chains or more.
  bool hasBranches(uint32_t begin, uint32_t end) {
    llvm::SmallVector<uint32_t, 2> found;
    for (uint32_t i = begin; i < end && found.size() < 2; ++i)
      if (const uint32_t chain = chainOf(i); isLong(chain) && !llvm::is_contained(found, chain))
        found.push_back(chain);
    return found.size() == 2;
  }

  /// Gives the records from `begin` to `end` their branches.
  void numberBranches(uint32_t begin, uint32_t end) {
    llvm::DenseMap<uint32_t, uint32_t> numbers; // Of the chains. Never iterated.
    std::vector<uint32_t> chains;               // By their first records.
    for (uint32_t i = begin; i < end; ++i)
      if (const uint32_t chain = chainOf(i); numbers.try_emplace(chain, chains.size()).second)
        chains.push_back(chain);
    const size_t numLong = llvm::count_if(chains, [&](uint32_t chain) { return isLong(chain); });
    std::vector<uint32_t> longestFirst = chains;
    llvm::stable_sort(longestFirst, [&](uint32_t a, uint32_t b) { return sizes_[a] > sizes_[b]; });
    std::vector<size_t> filled(std::min<size_t>(numLong, kMaxBranches));
    std::vector<uint32_t> branchOf(chains.size());
    for (uint32_t chain : longestFirst) {
      const auto least = std::ranges::min_element(filled);
      *least += sizes_[chain];
      branchOf[numbers.at(chain)] = uint32_t(least - filled.begin());
    }
    // Branches are numbered by their first records.
    std::vector<uint32_t> order(filled.size());
    uint32_t numbered = 0;
    for (uint32_t branch : branchOf)
      if (order[branch] == 0)
        order[branch] = ++numbered;
    for (uint32_t i = begin; i < end; ++i)
      branches_[i] = order[branchOf[numbers.at(chainOf(i))]];
  }

  llvm::ArrayRef<BufferUse> records_;
  std::vector<uint32_t> branches_;
  std::vector<uint32_t> parents_, sizes_; ///< The chains of the region, as sets of records.
  llvm::DenseMap<uint32_t, Uses> uses_;   ///< Of the region, by buffer. Never iterated.
};

} // namespace

std::vector<uint32_t> findBranches(llvm::ArrayRef<BufferUse> records) {
  return BranchFinder(records).run();
}

BufferLives::BufferLives(llvm::ArrayRef<BufferUse> uses, llvm::ArrayRef<LaunchRecord> records,
                         size_t numBuffers)
    : lives_(numBuffers) {
  Phase phase;
  for (uint32_t i = 0; i < records.size(); ++i) {
    const uint32_t branch = records[i].branch;
    if (i > 0 && (branch == 0 || records[i - 1].branch == 0))
      ++phase.index;
    phase.branches = uint32_t(1) << branch;
    for (const auto *buffers : {&uses[i].reads, &uses[i].writes})
      for (uint32_t buffer : *buffers) {
        Life &life = lives_[buffer];
        if (!life.isUsed)
          life = {true, i, i, phase, phase};
        life.last = i;
        if (life.firstPhase.index == phase.index)
          life.firstPhase.branches |= phase.branches;
        if (life.lastPhase.index != phase.index)
          life.lastPhase = phase;
        life.lastPhase.branches |= phase.branches;
      }
  }
}

bool BufferLives::isBefore(const Life &a, const Life &b) {
  if (a.last >= b.first)
    return false;
  const bool isOneBranch =
      a.lastPhase.branches == b.firstPhase.branches && std::has_single_bit(a.lastPhase.branches);
  return a.lastPhase.index < b.firstPhase.index || isOneBranch;
}

} // namespace cgc::backend

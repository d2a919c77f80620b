// Branches: finds the independent chains of a bucket's records, and which buffers they let share
// memory.
#pragma once

#include "runtime/plan/branches.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace cgc::backend {

/// A chain of fewer records gets no branch of its own. Beside another chain it saves its launches,
/// and a fork and a join cost some of that (docs/decisions/0007).
inline constexpr size_t kLeastChain = 8;
/// The most records before the chains that all of these depend on, such as a loss before the
/// backward passes of two towers. A limit keeps the search fast.
inline constexpr uint32_t kMostTrunk = 128;

/// The buffers that a record reads and writes. Constant ones, inputs and weights, are left out.
struct BufferUse {
  llvm::SmallVector<uint32_t, 4> reads, writes;
};

/// Returns the branch of each record (LaunchRecord::branch). Records depend on each other if one
/// writes a buffer that the other uses; the chains are the connected components of that relation.
/// Two or more chains of kLeastChain records or more become branches. The first record that depends
/// on two such chains ends them and gets branch 0; after it, other chains may begin, with up to
/// kMostTrunk records of branch 0 before them, the fewest that leave two long chains. Shorter
/// chains join the branch with the fewest records, as do chains beyond kMaxBranches. Deterministic.
std::vector<uint32_t> findBranches(llvm::ArrayRef<BufferUse> records);

/// When the buffers of a bucket are in use, with respect to its branches.
class BufferLives final {
public:
  BufferLives(llvm::ArrayRef<BufferUse> uses, llvm::ArrayRef<LaunchRecord> records,
              size_t numBuffers);

  /// Whether any record uses the buffer.
  bool isUsed(size_t buffer) const { return lives_[buffer].isUsed; }
  /// Whether the buffers, both used, may be at one address: every record that uses one of them runs
  /// before every record that uses the other, in each order that the branches allow.
  bool mayShare(size_t a, size_t b) const {
    return isBefore(lives_[a], lives_[b]) || isBefore(lives_[b], lives_[a]);
  }
  /// The same if all records ran in the order of the plan.
  bool mayShareInOrder(size_t a, size_t b) const {
    return lives_[a].last < lives_[b].first || lives_[b].last < lives_[a].first;
  }

private:
  /// A record of branch 0, or a parallel region, in which a buffer is in use.
  struct Phase {
    uint32_t index = 0;
    uint32_t branches = 0; ///< The set of branches that use the buffer there, as bits.
  };
  struct Life {
    bool isUsed = false;
    uint32_t first = 0, last = 0; ///< Records.
    Phase firstPhase, lastPhase;
  };
  static bool isBefore(const Life &a, const Life &b);

  std::vector<Life> lives_;
};

} // namespace cgc::backend

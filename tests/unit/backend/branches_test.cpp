// Tests of branches: which chains are found, and that the memory plan of random buckets never lets
// two records meet that may run at the same time.
#include "backend/branches.h"

#include "backend/memory_plan.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace cgc::backend {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr uint32_t kChain = kLeastChain;

/// Builds chains of records, each of which reads what the record before it in its chain wrote.
class Chains {
public:
  /// Appends `count` records to the chain with this name.
  Chains &chain(char name, size_t count) {
    for (size_t i = 0; i < count; ++i)
      join({name}, name);
    return *this;
  }
  /// Appends a record that reads the ends of these chains and becomes the end of `to`.
  Chains &join(const std::string &from, char to) {
    BufferUse use;
    for (char name : from)
      if (ends_.contains(name))
        use.reads.push_back(ends_[name]);
    use.writes.push_back(ends_[to] = next_++);
    uses_.push_back(std::move(use));
    return *this;
  }
  /// The branches of the records as digits.
  std::string branches() const {
    std::string text;
    for (uint32_t branch : findBranches(uses_))
      text += std::to_string(branch);
    return text;
  }

private:
  std::map<char, uint32_t> ends_;
  uint32_t next_ = 0;
  std::vector<BufferUse> uses_;
};

std::string repeated(char digit, size_t count) {
  return std::string(count, digit);
}

TEST(FindBranches, OneChainHasNone) {
  EXPECT_EQ(Chains().branches(), "");
  EXPECT_EQ(Chains().chain('a', 30).branches(), repeated('0', 30));
}

TEST(FindBranches, IndependentChainsAreBranches) {
  EXPECT_EQ(Chains().chain('a', 9).chain('b', kChain).branches(),
            repeated('1', 9) + repeated('2', kChain));
  Chains alternating;
  std::string expected;
  for (uint32_t i = 0; i < kChain; ++i, expected += "12")
    alternating.chain('a', 1).chain('b', 1);
  EXPECT_EQ(alternating.branches(), expected);
}

TEST(FindBranches, AShortChainIsNoBranch) {
  EXPECT_EQ(Chains().chain('a', 30).chain('b', kChain - 1).branches(),
            repeated('0', 30 + kChain - 1));
  // Beside two branches it belongs to the shorter one.
  EXPECT_EQ(Chains().chain('a', 20).chain('b', 10).chain('c', 3).branches(),
            repeated('1', 20) + repeated('2', 13));
}

TEST(FindBranches, AJoinEndsTheBranches) {
  EXPECT_EQ(Chains().chain('a', 8).chain('b', 8).join("ab", 'a').chain('a', 9).branches(),
            repeated('1', 8) + repeated('2', 8) + repeated('0', 10));
  // A short chain that joins does not.
  EXPECT_EQ(
      Chains().chain('a', 8).chain('b', 8).chain('c', 2).join("ac", 'a').chain('b', 1).branches(),
      repeated('1', 8) + repeated('2', 8) + repeated('1', 3) + "2");
  // Behind the join others may begin, and a chain that did not join goes on.
  EXPECT_EQ(Chains()
                .chain('a', 8)
                .chain('b', 8)
                .chain('c', 8)
                .join("ab", 'a')
                .chain('c', 8)
                .chain('a', 8)
                .branches(),
            repeated('1', 8) + repeated('2', 8) + repeated('3', 8) + "0" + repeated('1', 8) +
                repeated('2', 8));
}

TEST(FindBranches, ChainsMayBeginBehindATrunk) {
  const auto behind = [](size_t trunk) {
    Chains chains;
    chains.chain('t', trunk).join("t", 'a').chain('a', 9).join("t", 'b').chain('b', 7);
    return chains.branches();
  };
  for (const uint32_t trunk : {1u, 5u, kMostTrunk})
    EXPECT_EQ(behind(trunk), repeated('0', trunk) + repeated('1', 10) + repeated('2', 8)) << trunk;
  EXPECT_EQ(behind(kMostTrunk + 1), repeated('0', kMostTrunk + 1 + 18));
  // A chain may begin before the other one: both only read what the trunk wrote.
  EXPECT_EQ(Chains().chain('a', 3).join("a", 'b').chain('a', 8).chain('b', 9).branches(),
            "0001" + repeated('2', 8) + repeated('1', 9));
}

/// Two towers, their loss, and their backward passes.
TEST(FindBranches, RegionsBeforeAndBehindATrunk) {
  Chains chains;
  chains.chain('a', 8).chain('b', 9).join("ab", 'l').chain('l', 4);
  chains.join("al", 'a').chain('a', 7).join("bl", 'b').chain('b', 8).join("ab", 'u');
  EXPECT_EQ(chains.branches(), repeated('1', 8) + repeated('2', 9) + "00000" + repeated('1', 8) +
                                   repeated('2', 9) + "0");
}

TEST(FindBranches, AtMostFour) {
  Chains chains;
  for (char name = 'a'; name <= 'f'; ++name)
    chains.chain(name, name == 'b' ? 20 : 10);
  const std::string branches = chains.branches();
  EXPECT_THAT(std::set(branches.begin(), branches.end()), UnorderedElementsAre('1', '2', '3', '4'));
  EXPECT_EQ(std::ranges::count(branches, '2'), 20) << "the longest has a branch of its own";
}

TEST(FindBranches, AWriteDependsOnEarlierReads) {
  // Two chains that only read buffer 0, until one overwrites it.
  std::vector<BufferUse> uses;
  for (uint32_t i = 0; i < 10; ++i)
    for (uint32_t chain : {1, 2})
      uses.push_back({{0, chain}, {chain}});
  EXPECT_THAT(findBranches(uses), testing::Contains(2u));
  uses.push_back({{1}, {0}});
  EXPECT_EQ(findBranches(uses).back(), 0u);
  uses.pop_back();
  uses.insert(uses.begin() + 6, {{1}, {0}}); // Seven records of each chain are left.
  EXPECT_THAT(findBranches(uses), Each(0u));
}

/// A bucket of random records, with the relation "runs before in every order" by its definition.
struct RandomBucket {
  std::vector<BufferUse> uses;
  std::vector<LaunchRecord> records;
  size_t numBuffers;

  explicit RandomBucket(unsigned seed) : random_(seed) {
    const uint32_t chains = 1 + below(5);
    numBuffers = chains + 10 + below(60);
    // Each chain has buffers of its own, and any record may read a buffer that is written before
    // all chains. Now and then, a record reads from another chain.
    for (uint32_t i = 0, n = 20 + below(80); i < n; ++i) {
      const uint32_t chain = below(chains);
      BufferUse &use = uses.emplace_back();
      for (uint32_t reads = below(3); reads > 0; --reads)
        use.reads.push_back(bufferOf(below(25) == 0 ? below(chains) : chain, chains));
      if (below(8) == 0)
        use.reads.push_back(0);
      use.writes.push_back(i == 0 ? 0 : bufferOf(chain, chains));
    }
    records.resize(uses.size());
  }

  uint32_t below(uint32_t n) { return uint32_t(random_() % n); }

  bool isOrdered(size_t first, size_t second) const {
    if (first >= second)
      return false;
    if (records[first].branch == records[second].branch)
      return true;
    for (size_t i = first; i <= second; ++i)
      if (records[i].branch == 0)
        return true;
    return false;
  }

  bool touches(size_t record, uint32_t buffer) const {
    return llvm::is_contained(uses[record].reads, buffer) ||
           llvm::is_contained(uses[record].writes, buffer);
  }

  bool isBefore(uint32_t a, uint32_t b) const {
    for (size_t i = 0; i < uses.size(); ++i)
      for (size_t j = 0; j < uses.size(); ++j)
        if (touches(i, a) && touches(j, b) && !isOrdered(i, j))
          return false;
    return true;
  }

private:
  uint32_t bufferOf(uint32_t chain, uint32_t chains) {
    const auto each = uint32_t(numBuffers - 1) / chains;
    return 1 + chain * each + below(each);
  }

  std::mt19937 random_;
};

class RandomBuckets : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomBuckets, testing::Range(0u, 60u));

TEST_P(RandomBuckets, RecordsThatDependOnEachOtherAreOrdered) {
  RandomBucket bucket(GetParam());
  const std::vector<uint32_t> branches = findBranches(bucket.uses);
  for (size_t i = 0; i < branches.size(); ++i)
    bucket.records[i].branch = branches[i];
  for (size_t j = 0; j < branches.size(); ++j)
    for (size_t i = 0; i < j; ++i)
      for (uint32_t buffer = 0; buffer < bucket.numBuffers; ++buffer)
        if (bucket.touches(i, buffer) && bucket.touches(j, buffer) &&
            (llvm::is_contained(bucket.uses[i].writes, buffer) ||
             llvm::is_contained(bucket.uses[j].writes, buffer))) {
          ASSERT_TRUE(bucket.isOrdered(i, j)) << "records " << i << " and " << j;
        }
}

TEST_P(RandomBuckets, BuffersShareMemoryExactlyIfTheirRecordsAreOrdered) {
  RandomBucket bucket(GetParam());
  if (GetParam() % 2) { // Branches that have nothing to do with the data.
    for (LaunchRecord &record : bucket.records)
      record.branch = bucket.below(6) == 0 ? 0 : 1 + bucket.below(3);
  } else {
    for (auto [record, branch] : llvm::zip_equal(bucket.records, findBranches(bucket.uses)))
      record.branch = branch;
  }
  const BufferLives lives(bucket.uses, bucket.records, bucket.numBuffers);
  std::vector<uint32_t> used;
  std::vector<uint64_t> bytes;
  for (uint32_t buffer = 0; buffer < bucket.numBuffers; ++buffer)
    if (lives.isUsed(buffer)) {
      used.push_back(buffer);
      bytes.push_back(1 + bucket.below(100000));
    }
  for (uint32_t a : used)
    for (uint32_t b : used)
      if (a != b) {
        ASSERT_EQ(lives.mayShare(a, b), bucket.isBefore(a, b) || bucket.isBefore(b, a))
            << "buffers " << a << " and " << b;
      }
  const MemoryPlan plan =
      planMemory(bytes, [&](size_t a, size_t b) { return lives.mayShare(used[a], used[b]); });
  for (size_t a = 0; a < used.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const bool overlap = plan.offsets[a] < plan.offsets[b] + bytes[b] &&
                           plan.offsets[b] < plan.offsets[a] + bytes[a];
      ASSERT_TRUE(!overlap || bucket.isBefore(used[a], used[b]) ||
                  bucket.isBefore(used[b], used[a]))
          << "buffers " << used[a] << " and " << used[b];
    }
}

/// Two towers of `depth` ops each, whose results are added.
std::string towers(int depth) {
  std::string text = "graph @g(%a0: f32[64,64]@cuda, %b0: f32[64,64]@cuda) {\n";
  for (char tower : {'a', 'b'})
    for (int i = 0; i < depth; ++i)
      text += "%" + std::string(1, tower) + std::to_string(i + 1) + " = aten.neg(%" + tower +
              std::to_string(i) + ") : f32[64,64]@cuda\n";
  return text + "%sum = aten.add(%a" + std::to_string(depth) + ", %b" + std::to_string(depth) +
         ") : f32[64,64]@cuda\noutput %sum\n}";
}

std::vector<uint32_t> branchesOf(const Bucket &bucket) {
  std::vector<uint32_t> branches;
  for (const LaunchRecord &record : bucket.records)
    branches.push_back(record.branch);
  return branches;
}

TEST(LowerBranches, TowersAreBranchesWithMemoryOfTheirOwn) {
  const auto plan = lowerAll(*parse(towers(10)), DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  std::vector<uint32_t> expected(10, 1);
  expected.insert(expected.end(), 10, 2);
  expected.push_back(0);
  EXPECT_EQ(branchesOf(bucket), expected);
  // Each tower needs two buffers, and in order the second one would use the memory of the first.
  constexpr uint64_t kBytes = 64 * 64 * 4;
  EXPECT_EQ(bucket.arenaBytes, 4 * kBytes);
  ASSERT_EQ(plan->branched.size(), 1u);
  EXPECT_EQ(plan->branched[0].entry, "g");
  EXPECT_EQ(plan->branched[0].branches, 2u);
  EXPECT_EQ(plan->branched[0].arenaBytes, 4 * kBytes);
  EXPECT_EQ(plan->branched[0].serialArenaBytes, 3 * kBytes);
}

TEST(LowerBranches, TowersShareMemoryWithoutBranches) {
  const auto module = parse(towers(10));
  const EntryBucket inOrder{"g", module->findGraph("g"), /*branches=*/false};
  ir::Diagnostics diagnostics;
  const auto plan = lower({&inOrder, 1}, DeviceKind::Cuda, diagnostics);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_EQ(branchesOf(bucket), std::vector<uint32_t>(21, 0));
  EXPECT_EQ(bucket.arenaBytes, 3u * 64 * 64 * 4);
  EXPECT_TRUE(plan->branched.empty());
}

TEST(LowerBranches, ThePlanIsRefusedIfABranchIsWrong) {
  const auto plan = lowerAll(*parse(towers(10)), DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  // Every other branch of a record of a tower makes it miss what it reads, or the reverse.
  const size_t records = plan->plan.entries[0].buckets[0].records.size();
  for (size_t i = 0; i < records; ++i)
    for (uint32_t branch = 1; branch <= kMaxBranches; ++branch) {
      PlanData changed = plan->plan;
      uint32_t &place = changed.entries[0].buckets[0].records[i].branch;
      if (place == branch)
        continue;
      place = branch;
      EXPECT_THAT(validate(changed).message(), testing::HasSubstr("are in different branches"))
          << "record " << i << " in branch " << branch;
    }
}

TEST(LowerBranches, ACpuPlanHasNone) {
  std::string text = towers(10);
  for (size_t at; (at = text.find("@cuda")) != std::string::npos;)
    text.erase(at, 5);
  const auto plan = lowerAll(*parse(text), DeviceKind::Cpu);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(branchesOf(plan->plan.entries[0].buckets[0]), Each(0u));
  EXPECT_TRUE(plan->branched.empty());
}

} // namespace
} // namespace cgc::backend

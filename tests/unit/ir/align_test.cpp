// align: longest common subsequences and line diffs.
#include "support/align.h"

#include <gmock/gmock.h>

#include <random>

namespace cgc::ir {
namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;

/// Returns the length of a longest common subsequence by the textbook dynamic program.
size_t longest(const std::vector<llvm::StringRef> &a, const std::vector<llvm::StringRef> &b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j)
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
  return best[a.size()][b.size()];
}

TEST(Align, FindsALongestCommonSubsequence) {
  std::mt19937 random(0);
  const llvm::StringRef letters[] = {"a", "b", "c", "d"};
  for (int round = 0; round < 300; ++round) {
    std::vector<llvm::StringRef> a, b;
    for (auto *text : {&a, &b})
      for (unsigned n = random() % 12; n > 0; --n)
        text->push_back(letters[random() % 4]);
    const Pairs pairs = alignEqual(a, b);
    EXPECT_EQ(pairs.size(), longest(a, b));
    for (size_t k = 0; k < pairs.size(); ++k) {
      EXPECT_EQ(a[pairs[k].first], b[pairs[k].second]);
      EXPECT_TRUE(k == 0 ||
                  (pairs[k - 1].first < pairs[k].first && pairs[k - 1].second < pairs[k].second));
    }
  }
}

TEST(Align, ManyEqualElementsTakeLittleMemory) {
  std::vector<llvm::StringRef> a(30000, "relu"), b(30001, "relu");
  a.front() = a.back() = "a";
  b.front() = b.back() = "b";
  EXPECT_EQ(alignEqual(a, b).size(), 0u) << "nothing to hold on to";
  a[1] = b[1] = "anchor";
  EXPECT_EQ(alignEqual(a, b).size(), 29998u);
}

TEST(Align, OfNothingThereIsNothing) {
  EXPECT_TRUE(alignEqual({}, {}).empty());
  EXPECT_TRUE(alignEqual({"a"}, {}).empty());
}

TEST(DiffLines, ShowsWhatDiffersWithALineAround) {
  EXPECT_EQ(diffLines("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n5\n6\n7\n"),
            "  ...\n 3\n-4\n+x\n 5\n  ...\n");
  EXPECT_EQ(diffLines("a\nb\n", "b\nc\n"), "-a\n b\n+c\n");
  EXPECT_EQ(diffLines("a\nb\n", "a\nb\n"), "");
}

} // namespace
} // namespace cgc::ir

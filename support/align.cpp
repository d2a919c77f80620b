// align: the Hunt-Szymanski longest-common-subsequence algorithm, and the line diff built on it.
#include "support/align.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

namespace cgc {
namespace {

/// Bounds memory: the algorithm stores every pair of equal elements, so elements that occur more
/// often in `b` are left out of the search.
constexpr size_t kMaxOccurrences = 200;

using Pairs = std::vector<std::pair<size_t, size_t>>;

/// Extends the common subsequence by the equal elements at both ends of each gap between pairs.
Pairs extended(llvm::ArrayRef<llvm::StringRef> a, llvm::ArrayRef<llvm::StringRef> b, Pairs pairs) {
  Pairs all;
  pairs.emplace_back(a.size(), b.size());
  size_t i = 0, j = 0;
  for (auto [nextA, nextB] : pairs) {
    for (; i < nextA && j < nextB && a[i] == b[j]; ++i, ++j)
      all.emplace_back(i, j);
    size_t back = 0;
    while (i + back < nextA && j + back < nextB && a[nextA - 1 - back] == b[nextB - 1 - back])
      ++back;
    for (; back > 0; --back)
      all.emplace_back(nextA - back, nextB - back);
    if (nextA < a.size())
      all.emplace_back(nextA, nextB);
    i = nextA + 1;
    j = nextB + 1;
  }
  return all;
}

} // namespace

std::vector<std::pair<size_t, size_t>> alignEqual(llvm::ArrayRef<llvm::StringRef> a,
                                                  llvm::ArrayRef<llvm::StringRef> b) {
  // A common prefix and suffix need no search.
  size_t front = 0, back = 0;
  while (front < std::min(a.size(), b.size()) && a[front] == b[front])
    ++front;
  while (back < std::min(a.size(), b.size()) - front &&
         a[a.size() - 1 - back] == b[b.size() - 1 - back])
    ++back;

  struct Match {
    size_t a, b;
    size_t previous; ///< Index into `matches`; kNone for the first of a sequence.
  };
  constexpr size_t kNone = SIZE_MAX;
  std::vector<Match> matches;
  // ends[n] is the match that ends a common subsequence of n + 1 elements earliest in b.
  std::vector<size_t> ends;
  llvm::StringMap<std::vector<size_t>> positions;
  for (size_t j = front; j < b.size() - back; ++j)
    positions[b[j]].push_back(j);
  for (size_t i = front; i < a.size() - back; ++i) {
    auto found = positions.find(a[i]);
    if (found == positions.end() || found->second.size() > kMaxOccurrences)
      continue;
    for (size_t j : llvm::reverse(found->second)) {
      auto at = std::lower_bound(ends.begin(), ends.end(), j,
                                 [&](size_t end, size_t j) { return matches[end].b < j; });
      if (at != ends.end() && matches[*at].b == j)
        continue;
      matches.push_back({i, j, at == ends.begin() ? kNone : *std::prev(at)});
      if (at == ends.end())
        ends.push_back(matches.size() - 1);
      else
        *at = matches.size() - 1;
    }
  }

  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t k = 0; k < back; ++k)
    pairs.emplace_back(a.size() - 1 - k, b.size() - 1 - k);
  for (size_t at = ends.empty() ? kNone : ends.back(); at != kNone; at = matches[at].previous)
    pairs.emplace_back(matches[at].a, matches[at].b);
  for (size_t k = front; k-- > 0;)
    pairs.emplace_back(k, k);
  std::reverse(pairs.begin(), pairs.end());
  return extended(a, b, std::move(pairs));
}

std::string diffLines(llvm::StringRef before, llvm::StringRef after) {
  llvm::SmallVector<llvm::StringRef> a, b;
  before.rtrim('\n').split(a, '\n');
  after.rtrim('\n').split(b, '\n');
  struct Line {
    char mark;
    llvm::StringRef text;
  };
  std::vector<Line> lines;
  auto pairs = alignEqual(a, b);
  pairs.emplace_back(a.size(), b.size());
  size_t i = 0, j = 0;
  for (auto [nextA, nextB] : pairs) {
    for (; i < nextA; ++i)
      lines.push_back({'-', a[i]});
    for (; j < nextB; ++j)
      lines.push_back({'+', b[j]});
    if (i < a.size())
      lines.push_back({' ', a[i]});
    ++i, ++j;
  }
  auto differs = [&](size_t k) { return k < lines.size() && lines[k].mark != ' '; };
  std::string text;
  bool gap = false;
  for (size_t k = 0; k < lines.size(); ++k) {
    if (!differs(k) && !differs(k + 1) && !(k > 0 && differs(k - 1))) {
      gap = true;
      continue;
    }
    if (std::exchange(gap, false))
      text += "  ...\n";
    text += lines[k].mark + lines[k].text.str() + "\n";
  }
  if (!text.empty() && gap)
    text += "  ...\n";
  return text;
}

} // namespace cgc

// Op diff: first pairs ops that are identical except for their operands; in the gaps between them,
// ops of the same kind in the same module.
#include "tools/cgc/diff/op_diff.h"

#include "support/align.h"

namespace cgc::tool {
namespace {

constexpr size_t kNone = SIZE_MAX;

class Matcher {
public:
  Matcher(const std::vector<DiffOp> &before, const std::vector<DiffOp> &after)
      : before_(before), after_(after), partner_(before.size(), kNone) {}

  OpDiff run() {
    // Pairs by the whole op over the whole lists; in the remaining gaps, by weaker and weaker keys.
    pairUp(0, before_.size(), 0, after_.size(), 0);
    OpDiff diff;
    std::vector<bool> taken(after_.size(), false);
    for (size_t partner : partner_)
      if (partner != kNone)
        taken[partner] = true;
    size_t j = 0;
    auto addUpTo = [&](size_t end) {
      for (; j < end; ++j)
        if (!taken[j])
          diff.differences.push_back({OpDifference::Added, 0, j});
    };
    for (size_t i = 0; i < before_.size(); ++i) {
      if (partner_[i] == kNone) {
        diff.differences.push_back({OpDifference::Removed, i, 0});
        continue;
      }
      addUpTo(partner_[i]);
      if (same(i))
        ++diff.equal;
      else
        diff.differences.push_back({OpDifference::Changed, i, partner_[i]});
    }
    addUpTo(after_.size());
    return diff;
  }

private:
  static constexpr unsigned kLevels = 2;

  /// The text that two ops must have in common to correspond at `level`; a higher level is weaker.
  static std::string key(const DiffOp &op, unsigned level) {
    const std::string weak = op.op + '\n' + op.path;
    return level == 0 ? weak + '\n' + op.what : weak;
  }

  void pairUp(size_t beginA, size_t endA, size_t beginB, size_t endB, unsigned level) {
    if (level == kLevels || beginA == endA || beginB == endB)
      return;
    std::vector<std::string> a, b;
    for (size_t i = beginA; i < endA; ++i)
      a.push_back(key(before_[i], level));
    for (size_t j = beginB; j < endB; ++j)
      b.push_back(key(after_[j], level));
    auto pairs = alignEqual(std::vector<llvm::StringRef>(a.begin(), a.end()),
                            std::vector<llvm::StringRef>(b.begin(), b.end()));
    pairs.emplace_back(a.size(), b.size());
    size_t i = beginA, j = beginB;
    for (auto [nextA, nextB] : pairs) {
      pairUp(i, beginA + nextA, j, beginB + nextB, level + 1);
      if (nextA < a.size())
        partner_[beginA + nextA] = beginB + nextB;
      i = beginA + nextA + 1;
      j = beginB + nextB + 1;
    }
  }

  /// Whether op `i` and its partner are the same op on corresponding operands.
  bool same(size_t i) const {
    const DiffOp &a = before_[i], &b = after_[partner_[i]];
    if (a.what != b.what || a.operands.size() != b.operands.size())
      return false;
    for (size_t k = 0; k < a.operands.size(); ++k)
      if (a.operands[k].second != b.operands[k].second ||
          partner_[a.operands[k].first] != b.operands[k].first)
        return false;
    return true;
  }

  const std::vector<DiffOp> &before_, &after_;
  std::vector<size_t> partner_; ///< Index in `after_` of the partner of each op of `before_`.
};

} // namespace

OpDiff diffOps(const std::vector<DiffOp> &before, const std::vector<DiffOp> &after) {
  return Matcher(before, after).run();
}

} // namespace cgc::tool

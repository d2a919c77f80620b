// Size guards: a recursive descent over Python's expressions that computes as it reads.
#include "ir/size_guard.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <string>

namespace cgc::ir {
namespace {

using Number = std::optional<int64_t>; // Nothing: it cannot be computed.

/// Parentheses within one another, so that no text overflows the stack.
constexpr unsigned kMaxDepth = 100;

class Evaluator {
public:
  Evaluator(llvm::StringRef text, SizeOfInput sizeOf) : text_(text), sizeOf_(sizeOf) {}

  std::optional<bool> run() {
    const Number value = readOr();
    if (!value || !text_.ltrim().empty())
      return std::nullopt;
    return *value != 0;
  }

private:
  bool take(llvm::StringRef token) {
    text_ = text_.ltrim();
    return text_.consume_front(token);
  }
  bool takeWord(llvm::StringRef word) {
    text_ = text_.ltrim();
    const llvm::StringRef rest = text_.drop_front(std::min(word.size(), text_.size()));
    return text_.starts_with(word) && (rest.empty() || !llvm::isAlnum(rest[0])) &&
           text_.consume_front(word);
  }

  // Both sides are always read, so that the rest of the text is in its place.
  Number readOr() {
    Number left = readAnd();
    while (takeWord("or")) {
      const Number right = readAnd();
      left = left && right ? Number(*left || *right) : std::nullopt;
    }
    return left;
  }
  Number readAnd() {
    Number left = readNot();
    while (takeWord("and")) {
      const Number right = readNot();
      left = left && right ? Number(*left && *right) : std::nullopt;
    }
    return left;
  }
  Number readNot() {
    if (!takeWord("not"))
      return readComparison();
    const Number value = readNot();
    return value ? Number(!*value) : std::nullopt;
  }
  Number readComparison() {
    const Number left = readSum();
    for (const auto &[token, holds] : {std::pair(
                                           "==", +[](int64_t a, int64_t b) { return a == b; }),
                                       {"!=", +[](int64_t a, int64_t b) { return a != b; }},
                                       {"<=", +[](int64_t a, int64_t b) { return a <= b; }},
                                       {">=", +[](int64_t a, int64_t b) { return a >= b; }},
                                       {"<", +[](int64_t a, int64_t b) { return a < b; }},
                                       {">", +[](int64_t a, int64_t b) { return a > b; }}})
      if (take(token)) {
        const Number right = readSum();
        return left && right ? Number(holds(*left, *right)) : std::nullopt;
      }
    return left;
  }
  Number readSum() {
    Number left = readTerm();
    for (;;) {
      const bool isSum = take("+");
      if (!isSum && !take("-"))
        return left;
      const Number right = readTerm();
      int64_t result = 0;
      const bool fits = left && right &&
                        !(isSum ? __builtin_add_overflow(*left, *right, &result)
                                : __builtin_sub_overflow(*left, *right, &result));
      left = fits ? Number(result) : std::nullopt;
    }
  }
  Number readTerm() {
    Number left = readFactor();
    for (;;) {
      const bool isFloor = take("//"), isRest = !isFloor && take("%");
      if (!isFloor && !isRest && !take("*"))
        return left;
      const Number right = readFactor();
      if (isFloor || isRest)
        left = left && right && *right > 0 ? Number(floorOf(*left, *right, isRest)) : std::nullopt;
      else if (int64_t product = 0;
               left && right && !__builtin_mul_overflow(*left, *right, &product))
        left = product;
      else
        left = std::nullopt;
    }
  }
  /// Python's // and % by a positive number.
  static int64_t floorOf(int64_t a, int64_t b, bool rest) {
    const int64_t modulus = (a % b + b) % b;
    return rest ? modulus : (a - modulus) / b;
  }

  Number readFactor() {
    if (++depth_ > kMaxDepth) {
      text_ = {};
      return std::nullopt;
    }
    const Number value = readNested();
    --depth_;
    return value;
  }
  Number readNested() {
    if (take("-")) {
      const Number value = readFactor();
      return value && *value != INT64_MIN ? Number(-*value) : std::nullopt;
    }
    if (take("(")) {
      const Number value = readOr();
      return take(")") ? value : std::nullopt;
    }
    for (const bool isMax : {true, false})
      if (takeWord(isMax ? "max" : "min"))
        return readExtreme(isMax);
    if (take("L"))
      return readSize();
    return readLiteral();
  }
  Number readExtreme(bool isMax) {
    if (!take("("))
      return std::nullopt;
    Number best = readOr();
    while (take(",")) {
      const Number next = readOr();
      best = best && next ? Number(isMax ? std::max(*best, *next) : std::min(*best, *next))
                          : std::nullopt;
    }
    return take(")") ? best : std::nullopt;
  }
  /// Reads `['x'].size()[1]`, after L.
  Number readSize() {
    std::string name;
    while (take("[")) {
      const size_t end = text_.find(']');
      if (end == llvm::StringRef::npos)
        return std::nullopt;
      name += (name.empty() ? "" : "_") + text_.substr(0, end).trim(" '\"").str();
      text_ = text_.drop_front(end + 1);
    }
    if (!take(".size()["))
      return std::nullopt;
    const Number dim = readLiteral();
    if (!take("]") || !dim || *dim < 0 || *dim > UINT32_MAX)
      return std::nullopt;
    return sizeOf_(name, unsigned(*dim));
  }
  Number readLiteral() {
    text_ = text_.ltrim();
    int64_t value = 0;
    if (text_.consumeInteger(10, value))
      return std::nullopt;
    return value;
  }

  llvm::StringRef text_; ///< What is left.
  SizeOfInput sizeOf_;
  unsigned depth_ = 0;
};

} // namespace

std::optional<bool> guardHolds(llvm::StringRef guard, SizeOfInput sizeOf) {
  return Evaluator(guard, sizeOf).run();
}

} // namespace cgc::ir

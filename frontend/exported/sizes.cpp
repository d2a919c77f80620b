// Sizes: sympy's expressions, in the form that srepr() gives them.
#include "frontend/exported/json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace cgc::exported {

using ir::LinearSize;

namespace {

constexpr unsigned kMaxSizeDepth = 64;

std::optional<LinearSize> scaled(LinearSize size, int64_t factor) {
  if (__builtin_mul_overflow(size.factor, factor, &size.factor) ||
      __builtin_mul_overflow(size.offset, factor, &size.offset))
    return std::nullopt;
  if (size.factor == 0)
    size.symbol.clear();
  return size;
}

std::optional<LinearSize> product(const LinearSize &a, const LinearSize &b) {
  if (a.symbol.empty())
    return scaled(b, a.offset);
  return b.symbol.empty() ? scaled(a, b.offset) : std::nullopt;
}

std::optional<LinearSize> sum(LinearSize a, const LinearSize &b) {
  if (!a.symbol.empty() && !b.symbol.empty() && a.symbol != b.symbol)
    return std::nullopt;
  if (__builtin_add_overflow(a.factor, b.factor, &a.factor) ||
      __builtin_add_overflow(a.offset, b.offset, &a.offset))
    return std::nullopt;
  if (a.symbol.empty())
    a.symbol = b.symbol;
  if (a.factor == 0)
    a.symbol.clear();
  return a;
}

class Parser {
public:
  explicit Parser(llvm::StringRef text) : rest_(text) {}

  std::optional<LinearSize> parse() {
    std::optional<LinearSize> size = term(0);
    return rest_.trim().empty() ? size : std::nullopt;
  }

private:
  bool take(llvm::StringRef text) {
    rest_ = rest_.ltrim();
    return rest_.consume_front(text);
  }

  llvm::StringRef word() {
    rest_ = rest_.ltrim();
    const llvm::StringRef word =
        rest_.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest_ = rest_.drop_front(word.size());
    return word;
  }

  std::optional<LinearSize> term(unsigned depth) {
    const llvm::StringRef name = word();
    if (name.empty() || depth > kMaxSizeDepth)
      return std::nullopt;
    if (!take("(")) {
      int64_t number = 0;
      if (!name.getAsInteger(10, number))
        return LinearSize{"", 0, number};
      return LinearSize{name.str(), 1, 0};
    }
    if (name == "Symbol")
      return symbol();
    if (name == "Integer")
      return integer();
    if (name != "Add" && name != "Mul")
      return std::nullopt;
    std::optional<LinearSize> result = term(depth + 1);
    while (result && take(",")) {
      const std::optional<LinearSize> next = term(depth + 1);
      if (!next)
        return std::nullopt;
      result = name == "Add" ? sum(*result, *next) : product(*result, *next);
    }
    return result && take(")") ? result : std::nullopt;
  }

  /// 's0', positive=True, integer=True)
  std::optional<LinearSize> symbol() {
    if (!take("'"))
      return std::nullopt;
    const llvm::StringRef name = word();
    const auto [assumptions, after] = rest_.split(')');
    if (name.empty() || !assumptions.starts_with("'"))
      return std::nullopt;
    rest_ = after;
    return LinearSize{name.str(), 1, 0};
  }

  std::optional<LinearSize> integer() {
    int64_t number = 0;
    if (rest_.consumeInteger(10, number) || !take(")"))
      return std::nullopt;
    return LinearSize{"", 0, number};
  }

  llvm::StringRef rest_;
};

} // namespace

std::optional<LinearSize> parseSize(std::string_view expression) {
  return Parser(expression).parse();
}

} // namespace cgc::exported

// Arg: conversions and traversal.
#include "ir/arg.h"

namespace cgc::ir {

std::optional<llvm::SmallVector<int64_t, 6>> Arg::asInts() const {
  if (!isList())
    return std::nullopt;
  llvm::SmallVector<int64_t, 6> ints;
  for (const Arg &element : list()) {
    const std::optional<int64_t> value = element.asInt();
    if (!value)
      return std::nullopt;
    ints.push_back(*value);
  }
  return ints;
}

std::optional<int64_t> Arg::asInt() const {
  if (auto *i = getIf<int64_t>())
    return *i;
  if (auto *b = getIf<bool>()) // A bool counts as an int, as in checkArgs.
    return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Arg::asNumber() const {
  if (auto *i = getIf<int64_t>())
    return static_cast<double>(*i);
  if (auto *d = getIf<double>())
    return *d;
  if (auto *b = getIf<bool>())
    return *b ? 1.0 : 0.0;
  return std::nullopt;
}

bool Arg::isConstant() const {
  bool constant = true;
  forEachValue([&](Value *) { constant = false; });
  return constant;
}

void Arg::forEachValue(llvm::function_ref<void(Value *)> fn) const {
  if (isValue())
    fn(value());
  else if (isList())
    for (const Arg &element : list())
      element.forEachValue(fn);
}

void Arg::mapValues(llvm::function_ref<Arg(Value *)> fn) {
  if (isValue())
    *this = fn(value());
  else if (isList())
    for (Arg &element : list())
      element.mapValues(fn);
}

} // namespace cgc::ir

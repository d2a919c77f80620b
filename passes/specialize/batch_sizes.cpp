// BatchSizes: evaluates linear host ops at a second batch, which gives their slope.
#include "passes/specialize/batch_sizes.h"

#include "ir/op_def.h"
#include "ir/op_views.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

namespace cgc::passes {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

/// Rows between the two batches of which the difference gives the slope. A power of two, so that
/// its quotients are exact.
constexpr int64_t kMore = 1024;

bool isInteger(double number) {
  return number == std::floor(number);
}

} // namespace

bool BatchSizes::Terms::isConstant() const {
  return perRow == 0 && llvm::all_of(elements, [](const Terms &t) { return t.isConstant(); });
}

BatchSizes::Terms BatchSizes::termsOf(const Arg &arg) const {
  if (arg.isValue()) {
    const auto it = terms_.find(arg.value());
    return it == terms_.end() ? Terms() : it->second;
  }
  Terms terms;
  if (arg.isList())
    for (const Arg &element : arg.list())
      terms.elements.push_back(termsOf(element));
  return terms;
}

BatchSizes::Linear BatchSizes::linear(const Arg &number, const Terms &terms) const {
  const double value = number.asNumber().value_or(0);
  return {terms.perRow, value - terms.perRow * static_cast<double>(batch_)};
}

Arg BatchSizes::shifted(const Arg &arg, const Terms &terms, int64_t more) {
  if (arg.isList()) {
    Arg::List list = arg.list();
    for (auto [element, inner] : llvm::zip(list, terms.elements))
      element = shifted(element, inner, more);
    return Arg(std::move(list));
  }
  const double change = terms.perRow * static_cast<double>(more);
  if (arg.is<int64_t>())
    return Arg(arg.as<int64_t>() + static_cast<int64_t>(std::llround(change)));
  return arg.is<double>() ? Arg(arg.as<double>() + change) : arg;
}

BatchSizes::Terms BatchSizes::difference(const Arg &from, const Arg &to, int64_t more) {
  Terms terms;
  if (from.isList() && to.isList())
    for (auto [a, b] : llvm::zip(from.list(), to.list()))
      terms.elements.push_back(difference(a, b, more));
  else if (from.asNumber() && to.asNumber())
    terms.perRow = (*to.asNumber() - *from.asNumber()) / static_cast<double>(more);
  return terms;
}

bool BatchSizes::isDecided(OpKind op, Linear a, Linear b) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double slope = a.perRow - b.perRow, rest = a.rest - b.rest;
  if (slope == 0)
    return true;
  // The range of the difference for n from 1 on.
  const double least = slope > 0 ? slope + rest : -kInfinity;
  const double most = slope > 0 ? kInfinity : slope + rest;
  switch (op) {
  case OpKind::Lt:
  case OpKind::Ge:
    return most < 0 || least >= 0;
  case OpKind::Le:
  case OpKind::Gt:
    return most <= 0 || least > 0;
  case OpKind::Maximum:
  case OpKind::Minimum:
    return most <= 0 || least >= 0;
  default: // Equality.
    return most < 0 || least > 0 || !isInteger(-rest / slope);
  }
}

bool BatchSizes::areComparable(const Arg &a, const Terms &ta, const Arg &b, const Terms &tb) const {
  if (ta.isConstant() && tb.isConstant())
    return true;
  if (a.asNumber() && b.asNumber())
    return isDecided(OpKind::Eq, linear(a, ta), linear(b, tb));
  if (!a.isList() || !b.isList() || a.list().size() != b.list().size())
    return true; // They differ for all n.
  for (size_t i = 0; i < a.list().size(); ++i)
    if (!areComparable(a.list()[i], i < ta.elements.size() ? ta.elements[i] : Terms(), b.list()[i],
                       i < tb.elements.size() ? tb.elements[i] : Terms()))
      return false;
  return true;
}

const char *BatchSizes::whyNotLinear(const Node &node, llvm::ArrayRef<Arg> args,
                                     llvm::ArrayRef<Terms> terms) const {
  constexpr const char *kCompares = "it compares the size of the batch with another number";
  constexpr const char *kNotLinear = "its result is no multiple of the size of the batch";
  const auto at = [&](size_t i) { return linear(args[i], terms[i]); };
  const auto isConstant = [&](size_t i) { return terms[i].isConstant(); };
  switch (node.op()) {
  case OpKind::PrimList:
  case OpKind::PrimDict:
  case OpKind::PrimUnpack:
  case OpKind::PrimConcat:
  case OpKind::PrimSubstituted:
  case OpKind::PrimAppend:
  case OpKind::PrimNumToTensor:
  case OpKind::Detach:
  case OpKind::Clone:
  case OpKind::PrimItem:
  case OpKind::PrimFloat:
  case OpKind::Neg:
    return nullptr;
  case OpKind::PrimGetItem:
  case OpKind::PrimListSlice:
    return llvm::all_of(llvm::drop_begin(terms), [](const Terms &t) { return t.isConstant(); })
               ? nullptr
               : "the size of the batch chooses an element";
  case OpKind::PrimSetItem:
    return isConstant(1) ? nullptr : "the size of the batch chooses an element";
  case OpKind::PrimLen: // A list has as many elements for every batch.
    return args[0].isList() ? nullptr : kNotLinear;
  case OpKind::Add:
  case OpKind::Sub:
  case OpKind::Rsub:
    return isConstant(2) ? nullptr : kNotLinear;
  case OpKind::Mul:
    return isConstant(0) || isConstant(1) ? nullptr : kNotLinear;
  case OpKind::Div:
  case OpKind::FloorDivide: {
    const Linear a = at(0), b = at(1);
    if (b.perRow != 0) // The quotient of two multiples.
      return a.rest == 0 && b.rest == 0 && isInteger(a.perRow / b.perRow) ? nullptr : kNotLinear;
    const bool rounds = node.is(OpKind::FloorDivide) || !args[2].isNone();
    return !rounds || (isInteger(a.perRow / b.rest) && isInteger(a.rest / b.rest)) ? nullptr
                                                                                   : kNotLinear;
  }
  case OpKind::Remainder: {
    const Linear a = at(0), b = at(1);
    if (b.perRow != 0)
      return a.rest == 0 && b.rest == 0 && isInteger(a.perRow / b.perRow) ? nullptr : kNotLinear;
    return isInteger(a.perRow / b.rest) ? nullptr : kNotLinear;
  }
  case OpKind::PrimInt:
  case OpKind::PrimFloor:
  case OpKind::PrimCeil:
  case OpKind::Floor:
  case OpKind::Ceil:
  case OpKind::Trunc:
  case OpKind::Round:
  case OpKind::To:
    return isInteger(at(0).perRow) && isInteger(at(0).rest) ? nullptr : kNotLinear;
  case OpKind::PrimBool:
  case OpKind::PrimNot:
    return isDecided(OpKind::Eq, at(0), {0, 0}) ? nullptr : kCompares;
  case OpKind::Eq:
  case OpKind::Ne:
  case OpKind::Lt:
  case OpKind::Le:
  case OpKind::Gt:
  case OpKind::Ge:
  case OpKind::Maximum:
  case OpKind::Minimum:
    return isDecided(node.op(), at(0), at(1)) ? nullptr : kCompares;
  case OpKind::PrimEqual:
  case OpKind::PrimIs:
    return areComparable(args[0], terms[0], args[1], terms[1]) ? nullptr : kCompares;
  case OpKind::PrimContains: {
    if (!args[0].isList())
      return kCompares;
    for (auto [i, element] : llvm::enumerate(args[0].list()))
      if (!areComparable(element, i < terms[0].elements.size() ? terms[0].elements[i] : Terms(),
                         args[1], terms[1]))
        return kCompares;
    return nullptr;
  }
  case OpKind::PrimFormat: // The text of an exception that no batch raises.
    return llvm::all_of(node.result()->users(),
                        [](const Node *user) { return user->is(OpKind::PrimRaise); })
               ? nullptr
               : "it makes a text of the size of the batch";
  default:
    return kNotLinear;
  }
}

void BatchSizes::follow(const Node &node, llvm::ArrayRef<Arg> args, const Arg &value) {
  if (!args.empty() && args[0].isValue() &&
      (node.is(OpKind::Size) || node.is(OpKind::Numel) || node.is(OpKind::Dim) ||
       node.is(OpKind::PrimLen))) {
    if (parts_.contains(args[0].value()))
      return add(node, "it reads a size that is no multiple of the size of the batch");
    if (node.is(OpKind::Size) && !termsOf(node.args()[1]).isConstant())
      return add(node, "the size of the batch chooses a dimension");
    const auto perRow = [&](const Arg &size) -> double {
      const int64_t elements = size.as<int64_t>();
      const int64_t multiple = elements / batch_;
      return !node.is(OpKind::Dim) && isOfBatch(elements) ? static_cast<double>(multiple) : 0;
    };
    Terms terms;
    if (value.isList())
      for (const Arg &size : value.list())
        terms.elements.push_back({perRow(size), {}});
    else
      terms.perRow = perRow(value);
    terms_[node.result()] = std::move(terms);
    return;
  }
  std::vector<Terms> terms;
  for (const Arg &arg : node.args())
    terms.push_back(termsOf(arg));
  if (llvm::all_of(terms, [](const Terms &t) { return t.isConstant(); }))
    return;
  if (const char *reason = whyNotLinear(node, args, terms))
    return add(node, reason);
  std::vector<Arg> later;
  for (auto [arg, inner] : llvm::zip(args, terms))
    later.push_back(shifted(arg, inner, kMore));
  const Result<Arg> there = ir::opDef(node.op()).evaluate(later);
  if (!there)
    return add(node, "it fails for other sizes of the batch");
  Terms result = difference(value, *there, kMore);
  if (node.numResults() == 1 && !node.is(OpKind::PrimUnpack)) {
    terms_[node.result()] = std::move(result);
    return;
  }
  for (unsigned i = 0; i < node.numResults() && i < result.elements.size(); ++i)
    terms_[node.result(i)] = result.elements[i];
}

void BatchSizes::follow(const Node &node, unsigned index, const Arg &from) {
  if (Terms terms = termsOf(from); !terms.isConstant())
    terms_[node.result(index)] = std::move(terms);
}

void BatchSizes::followTensors(const Node &node) {
  bool isPart = false;
  node.forEachInput([&](const Value *value) { isPart |= parts_.contains(value); });
  if (auto slice = ir::SliceOp::of(node)) { // Its bounds are clamped.
    const ir::Dims &from = slice->self()->tensor().sizes, &to = node.result()->tensor().sizes;
    for (auto [before, after] : llvm::zip_equal(from, to))
      isPart |= before != after && isOfBatch(before);
  } else if (auto squeeze = ir::SqueezeOp::of(node)) { // A batch of one is dropped.
    const ir::TensorType &self = squeeze->self()->tensor();
    const auto dims = squeeze->dim();
    for (int64_t dim = 0; dim < self.rank(); ++dim)
      isPart |= isOfBatch(self.sizes[dim]) && (!dims || llvm::is_contained(*dims, dim) ||
                                               llvm::is_contained(*dims, dim - self.rank()));
  } else if (auto diagonal = ir::DiagonalOp::of(node)) { // As long as the shorter dimension.
    const ir::TensorType &self = diagonal->self()->tensor();
    for (int64_t dim : {diagonal->dim1(), diagonal->dim2()})
      isPart |= isOfBatch(self.sizes[dim < 0 ? dim + self.rank() : dim]);
  }
  if (isPart)
    for (const Value &result : node.results())
      parts_.insert(&result);
}

void BatchSizes::add(const Node &node, const char *reason) {
  if (!use_)
    use_ = BatchUse{ir::opName(node.op()).str(), node.loc(), reason};
}

} // namespace cgc::passes

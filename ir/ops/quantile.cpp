// aten.quantile: quantiles along a dimension.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

#include <limits>

namespace cgc::ir {
namespace {

/// What is left without the dimension 'dim', or without all if it is none.
struct QuantileDims {
  Dims sizes;    ///< Reduced dimensions are kept as 1 if 'keepdim'.
  int64_t count; ///< The elements that each result is a quantile of.
};
Result<QuantileDims> quantileDims(const InferArgs &args) {
  const TensorType &self = args.tensor("self");
  if (args.isNone("dim"))
    return QuantileDims{Dims(args.boolean("keepdim") ? self.sizes.size() : 0, 1),
                        self.numElements()};
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  QuantileDims reduced{self.sizes, 1};
  if (self.rank() == 0)
    return reduced;
  reduced.count = self.sizes[dim];
  if (args.boolean("keepdim"))
    reduced.sizes[dim] = 1;
  else
    reduced.sizes.erase(reduced.sizes.begin() + dim);
  return reduced;
}

Status inferQuantile(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.dtype != DType::F32 && self.dtype != DType::F64)
    return rules::mismatch("self", "of dtype f32 or f64", self);
  const llvm::StringRef mode = args.str("interpolation");
  if (mode != "linear" && mode != "lower" && mode != "higher" && mode != "midpoint" &&
      mode != "nearest")
    return rules::refuse("expected 'interpolation' to be \"linear\", \"lower\", \"higher\", "
                         "\"midpoint\" or \"nearest\", got \"" +
                         mode + "\"");
  CGC_ASSIGN_OR_RETURN(const QuantileDims reduced, quantileDims(args));
  if (self.numElements() == 0)
    return rules::mismatch("self", "nonempty", self);
  Dims sizes = reduced.sizes;
  if (args.isTensor("q")) {
    const TensorType &q = args.tensor("q");
    CGC_TRY(rules::sameDType(args, "self", {"q"}));
    if (q.rank() > 1 || q.numElements() == 0)
      return rules::mismatch("q", "a number or a vector of one element or more", q);
    if (q.rank() == 1)
      sizes.insert(sizes.begin(), q.sizes[0]);
  } else if (!(args.number("q") >= 0 && args.number("q") <= 1)) {
    return rules::refuse("expected 'q' to be in [0, 1]");
  }
  return rules::addDense(results, self.dtype, sizes);
}

/// Sorts and interpolates between the elements beside q * (count - 1). NaN comes last in the order
/// and is the quantile if there is one.
Result<Values> defineQuantile(OpBuilder &b) {
  const TensorType &self = b.input("self")->tensor();
  CGC_ASSIGN_OR_RETURN(const QuantileDims reduced, quantileDims(b.args()));
  const bool isFlat = b.arg("dim").isNone() || self.rank() == 0;
  Value *rows =
      isFlat ? b.reshape(b.input("self"), {self.numElements()})
             : b.call(OpKind::Movedim, {b.arg("self"), Arg::List{b.arg("dim")}, Arg::List{-1}});
  Value *sorted = b.callNode(OpKind::Sort, {rows, false, -1, false})->result();
  Value *q = b.input("q");
  q = q ? b.reshape(q, {q->tensor().numElements()})
        : b.call(OpKind::Full, {Arg::ints(Dims{1}), b.arg("q"), self.dtype});
  const llvm::StringRef mode = b.args().str("interpolation");
  Value *rank = b.mul(q, reduced.count - 1);
  Value *below = b.call(mode == "nearest"  ? OpKind::Round
                        : mode == "higher" ? OpKind::Ceil
                                           : OpKind::Floor,
                        {rank});
  const auto elementsAt = [&](Value *ranks) {
    return b.call(OpKind::IndexSelect, {sorted, -1, b.to(ranks, DType::I64)});
  };
  Value *y = elementsAt(below);
  if (mode == "linear" || mode == "midpoint") {
    Value *above = elementsAt(b.call(OpKind::Ceil, {rank}));
    y = b.call(
        OpKind::Lerp,
        {y, above,
         mode == "midpoint" ? Arg(0.5) : Arg(b.expand(b.sub(rank, below), y->tensor().sizes))});
  }
  Value *last = b.call(OpKind::Slice, {sorted, -1, reduced.count - 1, reduced.count});
  y = b.call(OpKind::Where, {b.call(OpKind::IsNan, {last}), last, y});
  // The quantiles come first.
  y = b.call(OpKind::Movedim, {y, Arg::ints(Dims{-1}), Arg::ints(Dims{0})});
  return Values{b.reshape(y, b.result()->tensor().sizes)};
}

} // namespace

const OpDef defs::Quantile = {
    .schema = "(Tensor self, Tensor|number q, int? dim=none, bool keepdim=false, str "
              "interpolation=\"linear\") -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferQuantile,
    .decompose = defineQuantile,
    .doc =
        "The quantiles q, a number or a vector in [0, 1], along dim or of all elements; a vector "
        "is a new first dimension. f32 or f64.",
};

} // namespace cgc::ir

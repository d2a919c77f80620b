// aten.slice: a range of one dimension.
#include "ir/ops/view_rules.h"

#include <algorithm>

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::dimOfSelf(args));
  int64_t step = args.integer("step"), size = self.sizes[dim];
  if (step < 1)
    return rules::mismatch("step", "at least 1", step);
  auto bound = [&](llvm::StringRef name, int64_t fallback) {
    int64_t value = args.isNone(name) ? fallback : args.integer(name);
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  int64_t start = bound("start", 0), end = std::max(start, bound("end", size));
  Dims sizes = self.sizes, strides = self.strides;
  sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  if (__builtin_mul_overflow(strides[dim], step, &strides[dim]))
    return rules::mismatch("step", "within the tensor's size", step);
  return rules::addView(results, self, sizes, strides, start * self.strides[dim]);
}

} // namespace

const OpDef defs::Slice = {
    .schema = "(Tensor self, int dim=0, int? start=none, int? end=none, int step=1) -> Tensor",
    .traits = kPure | kView,
    .infer = infer,
    .doc = "Elements start, start + step, ... before end of dimension dim. Negative bounds count "
           "from the end; both are clamped.",
};

} // namespace cgc::ir

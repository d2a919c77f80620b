// aten.split: splits into parts of given sizes.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferSplit(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::dimOfSelf(args));
  int64_t size = self.sizes[dim];
  if (auto parts = args["split_size"].asInts())
    return rules::addParts(results, self, dim, "split_size", *parts);
  const int64_t *part = args["split_size"].getIf<int64_t>();
  if (!part)
    return rules::refuse("expected 'split_size' to be an int or a list of ints");
  if (*part < 0 || (*part == 0 && size != 0))
    return rules::mismatch("split_size", "at least 1", *part);
  return rules::addEqualParts(results, self, dim, *part, size == 0 ? 1 : (size - 1) / *part + 1);
}

} // namespace

const OpDef defs::Split = {
    .schema = "(Tensor self, any split_size, int dim=0) -> Tensor[]",
    .traits = kPure | kView,
    .infer = inferSplit,
    .batch = batch::parts,
    .gradient = [](GradientBuilder &b) { return gradient::joined(b, OpKind::Cat); },
    .doc = "Parts of dimension dim: split_size is the size of every part but the last, or the list "
           "of their sizes.",
};

} // namespace cgc::ir

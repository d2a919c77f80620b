// aten.chunk: splits into parts of about equal size.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferChunk(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::dimOfSelf(args));
  int64_t chunks = args.integer("chunks"), size = self.sizes[dim];
  if (chunks < 1)
    return rules::mismatch("chunks", "at least 1", chunks);
  if (size == 0) // LibTorch returns all of them, each empty.
    return rules::addEqualParts(results, self, dim, 0, chunks);
  int64_t part = size / chunks + (size % chunks != 0);
  return rules::addEqualParts(results, self, dim, part, (size - 1) / part + 1);
}

} // namespace

const OpDef defs::Chunk = {
    .schema = "(Tensor self, int chunks, int dim=0) -> Tensor[]",
    .traits = kPure | kView,
    .infer = inferChunk,
    .batch = batch::parts,
    .gradient = [](GradientBuilder &b) { return gradient::joined(b, OpKind::Cat); },
    .doc = "At most chunks parts of dimension dim, each of ceil(size / chunks) but the last, which "
           "may be smaller.",
};

} // namespace cgc::ir

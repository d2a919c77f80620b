// aten.movedim: moves dimensions.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

/// The dimension of self that becomes each dimension of the result.
Result<Dims> orderOf(const InferArgs &args) {
  const int64_t rank = args.tensor("self").rank();
  const Dims sources = args.ints("source"), destinations = args.ints("destination");
  if (sources.size() != destinations.size())
    return rules::refuse("expected as many 'destination' as 'source' dimensions");
  constexpr int64_t kFree = -1;
  Dims order(static_cast<size_t>(rank), kFree);
  llvm::SmallVector<bool, 6> isMoved(static_cast<size_t>(rank));
  for (auto [source, destination] : llvm::zip_equal(sources, destinations)) {
    CGC_ASSIGN_OR_RETURN(const int64_t from, rules::wrapDim("source", source, rank));
    CGC_ASSIGN_OR_RETURN(const int64_t to, rules::wrapDim("destination", destination, rank));
    if (rank == 0)
      continue;
    if (isMoved[from] || order[to] != kFree)
      return rules::refuse("a dimension appears twice in 'source' or 'destination'");
    isMoved[from] = true;
    order[to] = from;
  }
  int64_t next = 0; // The others keep their order.
  for (int64_t &dim : order) {
    if (dim != kFree)
      continue;
    while (isMoved[next])
      ++next;
    dim = next++;
  }
  return order;
}

Status inferMovedim(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(const Dims order, orderOf(args));
  Dims sizes, strides;
  for (int64_t dim : order) {
    sizes.push_back(self.sizes[dim]);
    strides.push_back(self.strides[dim]);
  }
  return rules::addView(results, self, sizes, strides);
}

Result<Values> defineMovedim(OpBuilder &b) {
  CGC_ASSIGN_OR_RETURN(const Dims order, orderOf(b.args()));
  return Values{b.permute(b.input("self"), order)};
}

} // namespace

const OpDef defs::Movedim = {
    .schema = "(Tensor self, int[] source, int[] destination) -> Tensor",
    .traits = kPure | kView,
    .infer = inferMovedim,
    .decompose = defineMovedim,
    .doc =
        "self with the dimensions source at the places destination; the others keep their order.",
};

} // namespace cgc::ir

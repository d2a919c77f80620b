// Index bounds: the limits of each op that reads indices, and values that are replaced before.
#include "backend/index_bounds.h"

#include <limits>
#include <utility>

namespace cgc::backend {
namespace {

/// Bounds `index`, which picks from `self` along the argument `dim`.
void boundAlongDim(const ir::Node &node, BucketBuilder &builder) {
  const ir::Dims &sizes = node.arg("self").value()->tensor().sizes;
  const auto dim = node.arg("dim").as<int64_t>(), rank = static_cast<int64_t>(sizes.size());
  // A 0-d tensor counts as a tensor of size [1].
  builder.boundInput(builder.place(node.arg("index").value()),
                     rank == 0 ? 1 : sizes[dim < 0 ? dim + rank : dim]);
}

/// Bounds the list `indices`, one for each leading dimension of `self`. Negative ones count from
/// the end.
void boundEachDim(const ir::Node &node, BucketBuilder &builder) {
  const ir::Dims &sizes = node.arg("self").value()->tensor().sizes;
  for (const auto &[d, index] : llvm::enumerate(node.arg("indices").list()))
    if (index.isValue() && index.value()->tensor().dtype != DType::Bool)
      builder.boundInput(builder.place(index.value()), sizes[d], /*wraps=*/true);
}

/// The integer that `mask` compares `tensor` with, if it is `tensor == number`, or
/// `tensor != number` unless `equal`.
std::optional<int64_t> comparedWith(const ir::Arg &mask, bool equal, const ir::Value *tensor) {
  if (!mask.isValue())
    return std::nullopt;
  const ir::Node &compare = *mask.value()->node();
  if (compare.kind() != ir::NodeKind::CallFunction ||
      !compare.is(equal ? ir::OpKind::Eq : ir::OpKind::Ne))
    return std::nullopt;
  const ir::Arg &self = compare.arg("self"), &other = compare.arg("other");
  const auto *number = other.getIf<int64_t>();
  return self.isValue() && self.value() == tensor && number ? std::optional(*number) : std::nullopt;
}

} // namespace

void boundIndices(const ir::Node &node, BucketBuilder &builder) {
  const auto rowsOf = [&](llvm::StringRef table, size_t dim) {
    return node.arg(table).value()->tensor().sizes[dim];
  };
  const auto bound = [&](llvm::StringRef index, int64_t rows) {
    if (const ir::Arg &arg = node.arg(index); arg.isValue())
      builder.boundInput(builder.place(arg.value()), rows);
  };
  switch (node.op()) {
  case ir::OpKind::Embedding:
  case ir::OpKind::CgcEmbedding:
    return bound("indices", rowsOf("weight", 0));
  case ir::OpKind::CgcEmbeddingBackward:
    return bound("indices", node.arg("num_weights").as<int64_t>());
  case ir::OpKind::CgcRows:
    return bound("index", rowsOf("input", 1));
  case ir::OpKind::Gather:
  case ir::OpKind::IndexSelect:
  case ir::OpKind::Scatter:
  case ir::OpKind::ScatterAdd:
  case ir::OpKind::ScatterReduce:
    return boundAlongDim(node, builder);
  case ir::OpKind::Index:
  case ir::OpKind::IndexPut:
    return boundEachDim(node, builder);
  default:
    return;
  }
}

void noteShiftedIndex(const ir::Node &node, BucketBuilder &builder) {
  const bool subtracts = node.is(ir::OpKind::Sub);
  if (!subtracts && !node.is(ir::OpKind::Add))
    return;
  const ir::Arg *tensor = &node.arg("self"), *other = &node.arg("other");
  if (!subtracts && !tensor->isValue())
    std::swap(tensor, other);
  const auto *number = other->getIf<int64_t>();
  if (!tensor->isValue() || !number || node.arg("alpha") != ir::Arg(1) ||
      (subtracts && *number == std::numeric_limits<int64_t>::min()))
    return;
  builder.noteSum(builder.place(tensor->value()), subtracts ? -*number : *number,
                  builder.place(node.result()));
}

void noteReplacedIndex(const ir::Node &node, BucketBuilder &builder) {
  const bool fills = node.is(ir::OpKind::MaskedFill);
  const ir::Arg &mask = node.arg(fills ? "mask" : "condition");
  // Where the mask holds, and where it does not.
  const ir::Arg &chosen = node.arg(fills ? "value" : "self"),
                &rest = node.arg(fills ? "self" : "other");
  for (const bool equal : {true, false}) {
    const ir::Arg &filling = equal ? chosen : rest, &kept = equal ? rest : chosen;
    if (!kept.isValue() || filling != ir::Arg(0))
      continue;
    if (const auto value = comparedWith(mask, equal, kept.value()))
      builder.noteCopy(builder.place(kept.value()), builder.place(node.result()), value);
  }
}

} // namespace cgc::backend

// The pattern that writes an einsum of two operands as a matmul.
#include "ir/ops/einsum_rules.h"
#include "passes/canonicalize/patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::Arg;
using ir::Dims;
using ir::OpKind;
using ir::Value;

namespace {

/// Returns the positions in `labels` of the letters of `order`.
Dims positions(const std::string &labels, const std::string &order) {
  Dims dims;
  for (char label : order)
    dims.push_back(static_cast<int64_t>(labels.find(label)));
  return dims;
}

bool contains(const std::string &labels, char label) {
  return labels.find(label) != std::string::npos;
}

} // namespace

bool expandEinsum(ir::Node &node, PatternRewriter &rewriter) {
  if (!node.is(OpKind::Einsum))
    return false;
  if (node.arg("tensors").list().size() != 2)
    return rewriter.notifyMatchFailure(node, "it has other than two operands");
  Dims ranks;
  for (const Arg &tensor : node.arg("tensors").list())
    ranks.push_back(tensor.value()->tensor().rank());
  auto einsum = ir::rules::parseEinsum(node.arg("equation").as<std::string>(), ranks);
  if (!einsum)
    return rewriter.notifyMatchFailure(node, einsum.status().message());
  const std::string &a = einsum->terms[0], &b = einsum->terms[1], &result = einsum->result;
  std::string batch, rows, columns, summed;
  for (char label : a) {
    const bool inB = contains(b, label), kept = contains(result, label);
    if (!inB && !kept)
      return rewriter.notifyMatchFailure(node, "it sums over a dimension of one operand alone");
    (inB ? kept ? batch : summed : rows) += label;
  }
  for (char label : b)
    if (!contains(a, label)) {
      if (!contains(result, label))
        return rewriter.notifyMatchFailure(node, "it sums over a dimension of one operand alone");
      columns += label;
    }

  auto create = [&](OpKind op, std::vector<Arg> args) {
    return rewriter.create(op, std::move(args), node, &node)->result();
  };
  // An operand as [batch, first, second], where each group of labels is one dimension.
  auto matrix = [&](unsigned i, const std::string &first, const std::string &second) {
    Value *value = node.arg("tensors").list()[i].value();
    const Dims order = positions(einsum->terms[i], batch + first + second);
    const Dims &sizes = value->tensor().sizes;
    Dims merged;
    size_t next = 0;
    for (const std::string &group : {batch, first, second}) {
      merged.push_back(1);
      for (size_t k = 0; k < group.size(); ++k)
        merged.back() *= sizes[order[next++]];
    }
    value = create(OpKind::Permute, {value, Arg::ints(order)});
    return create(OpKind::Reshape, {value, Arg::ints(merged)});
  };
  Value *product = create(OpKind::Matmul, {matrix(0, rows, summed), matrix(1, summed, columns)});
  const std::string labels = batch + rows + columns;
  const Dims back = positions(labels, result);
  Dims sizes(labels.size());
  for (auto [i, dim] : llvm::enumerate(back))
    sizes[dim] = node.result()->tensor().sizes[i];
  product = create(OpKind::View, {product, Arg::ints(sizes)});
  replaceAllUsesWith(rewriter, node.result(), create(OpKind::Permute, {product, Arg::ints(back)}));
  return true;
}

} // namespace cgc::passes

// Match: helpers for patterns.
#include "passes/match.h"

#include "passes/constants.h"
#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

/// Returns the offset of result `index` in the memory of the first argument; nullopt if it has
/// memory of its own.
std::optional<int64_t> viewOffset(const ir::Node &node, unsigned index) {
  if (node.kind() != ir::NodeKind::CallFunction || !ir::hasTrait(node.op(), ir::kView) ||
      node.isInPlace())
    return std::nullopt;
  auto inferred = ir::inferResults(node.op(), node.args(), node.result()->tensor().device);
  CGC_CHECK(inferred && "a typed node is refused by its rule");
  return (*inferred)[index].viewOffset;
}

/// Whether `node` is a detach in a model that is trained.
bool stopsGradients(const ir::Node &node) {
  if (node.kind() != ir::NodeKind::CallFunction || !node.is(ir::OpKind::Detach))
    return false;
  const ir::Module *owner = node.graph()->owner();
  return owner && isTrained(*owner);
}

/// Whether patterns must not look through the alias `node`.
bool isBarrier(const ir::Node &node) {
  return stopsGradients(node) || isEqualCast(node);
}

llvm::SmallVector<Operands, 2> bothOrders(const ir::Arg &a, const ir::Arg &b) {
  if (!a.isValue() || !b.isValue())
    return {};
  return {{a.value(), b.value()}, {b.value(), a.value()}};
}

} // namespace

bool isAlias(const ir::Node &node) {
  return viewOffset(node, 0).has_value();
}

bool isEqualCast(const ir::Node &node) {
  return node.kind() == ir::NodeKind::CallFunction && node.is(ir::OpKind::To) && isAlias(node);
}

bool isView(const ir::Node &node) {
  return isAlias(node) && !isBarrier(node);
}

Layout layoutOf(ir::Value *value) {
  Layout layout{value, 0};
  while (!isBarrier(*layout.base->node())) {
    const auto offset = viewOffset(*layout.base->node(), layout.base->index());
    if (!offset)
      break;
    layout.offset += *offset;
    layout.base = ir::aliasedArg(*layout.base->node()).value();
  }
  return layout;
}

bool sameLayout(const ir::TensorType &a, const ir::TensorType &b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes || a.device != b.device)
    return false;
  for (size_t i = 0; i < a.sizes.size(); ++i)
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i])
      return false;
  return true;
}

bool isIdentity(llvm::ArrayRef<int64_t> dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != static_cast<int64_t>(i))
      return false;
  return true;
}

ir::Dims inverse(llvm::ArrayRef<int64_t> dims) {
  ir::Dims result(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    result[dims[i]] = static_cast<int64_t>(i);
  return result;
}

llvm::SmallVector<Operands, 2> operandsOfSum(const ir::Node &node) {
  auto add = ir::AddOp::of(node);
  return add && add->alpha() == 1 ? bothOrders(add->self(), add->other())
                                  : llvm::SmallVector<Operands, 2>();
}

llvm::SmallVector<Operands, 2> operandsOfProduct(const ir::Node &node) {
  auto mul = ir::MulOp::of(node);
  return mul ? bothOrders(mul->self(), mul->other()) : llvm::SmallVector<Operands, 2>();
}

std::optional<RowNorm> rowNormOf(ir::Node &node) {
  if (auto norm = ir::LayerNormOp::of(node); norm && norm->normalizedShape().size() == 1)
    return RowNorm{&node, norm->input(), norm->weight(), norm->bias(), norm->result()};
  if (auto norm = ir::CgcAddLayerNormOp::of(node);
      norm && !norm->addend() && !norm->rowStatistics())
    return RowNorm{&node, norm->input(), norm->weight(), norm->bias(), norm->result(1)};
  return std::nullopt;
}

std::optional<RowNorm> onlyRowNormOf(const ir::Value *value) {
  std::optional<RowNorm> norm = rowNormOf(*value->node());
  const bool isOnly = norm && norm->result == value &&
                      llvm::none_of(norm->node->results(), [&](const ir::Value &other) {
                        return &other != value && other.hasUsers();
                      });
  return isOnly ? norm : std::nullopt;
}

void replaceAllUsesWith(ir::GraphRewriter &rewriter, ir::Value *from, ir::Value *to) {
  bool same = from->type() == to->type();
  rewriter.replaceAllUsesWith(from, to);
  if (same)
    return;
  ir::Node *refused = ir::reinferTypes(rewriter.graph());
  CGC_CHECK(!refused && "a rewrite changed strides that an op needs");
}

} // namespace cgc::passes

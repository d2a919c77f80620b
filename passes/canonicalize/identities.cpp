// Identity patterns: drop nodes whose result equals their input.
#include "passes/canonicalize/patterns.h"

namespace cgc::passes {
namespace {

using ir::OpKind;

/// Returns true if the arithmetic of `node` returns its argument `self` bit for bit.
bool isNeutral(const ir::Node &node) {
  if (auto mul = ir::MulOp::of(node))
    return mul->other().asNumber() == 1;
  if (auto div = ir::DivOp::of(node))
    return div->other().asNumber() == 1 && !div->roundingMode();
  if (auto sub = ir::SubOp::of(node))
    return sub->other().asNumber() == 0;
  if (auto add = ir::AddOp::of(node)) // -0.0 + 0 is +0.0
    return add->other().asNumber() == 0 && !isFloating(add->result()->tensor().dtype);
  if (auto pad = ir::ConstantPadNdOp::of(node))
    return llvm::all_of(pad->pad(), [](int64_t width) { return width == 0; });
  return false;
}

/// Returns the input that the result of `node` equals, element for element and in the same memory
/// layout; null if there is none.
ir::Value *equalInput(ir::Node &node) {
  if (node.numResults() != 1)
    return nullptr;
  const bool view = isView(node);
  if (!view && !isNeutral(node))
    return nullptr;
  const ir::Arg &input = view ? ir::aliasedArg(node) : node.arg("self");
  if (!input.isValue() || !sameLayout(input.value()->tensor(), node.result()->tensor()))
    return nullptr;
  const bool moves = view && layoutOf(node.result()).offset != layoutOf(input.value()).offset;
  return moves ? nullptr : input.value();
}

/// Returns true if every value of `from` is representable in `to`.
bool isLossless(DType from, DType to) {
  if (from == to)
    return true;
  switch (from) {
  case DType::F16:
  case DType::BF16:
    return to == DType::F32 || to == DType::F64;
  case DType::F32:
    return to == DType::F64;
  case DType::I32:
    return to == DType::I64 || to == DType::F64;
  case DType::Bool:
    return true;
  default:
    return false;
  }
}

/// Returns the type of `expand` after its input has been cast to the dtype of `to`.
ir::TensorType expandedType(ir::ExpandOp expand, ir::ToOp to) {
  ir::TensorType type = to.result()->tensor();
  const ir::TensorType &from = expand.self()->tensor();
  ir::Dims dense = ir::contiguousStrides(from.sizes);
  int64_t added = type.rank() - from.rank();
  for (int64_t dim = 0; dim < type.rank(); ++dim)
    type.strides[dim] =
        dim < added || from.sizes[dim - added] != type.sizes[dim] ? 0 : dense[dim - added];
  return type;
}

} // namespace

bool dropIdentity(ir::Node &node, PatternRewriter &rewriter) {
  if (ir::Value *input = equalInput(node)) {
    replaceAllUsesWith(rewriter, node.result(), input);
    return true;
  }
  if (auto to = ir::ToOp::of(node))
    if (auto first = ir::ToOp::of(to->self())) {
      ir::Value *original = first->self();
      if (isLossless(original->tensor().dtype, to->self()->tensor().dtype)) {
        const DType dtype = node.result()->tensor().dtype;
        ir::Node *cast = rewriter.create(OpKind::To, {original, dtype, ir::Arg()}, node, &node);
        replaceAllUsesWith(rewriter, node.result(), cast->result());
        return true;
      }
    }
  if (auto rsub = ir::RsubOp::of(node); rsub && rsub->self().isValue() && rsub->other().isValue()) {
    ir::Node *sub =
        rewriter.create(OpKind::Sub, {rsub->other(), rsub->self(), node.arg("alpha")}, node, &node);
    replaceAllUsesWith(rewriter, node.result(), sub->result());
    return true;
  }
  return false;
}

bool dropEqualCast(ir::Node &node, PatternRewriter &rewriter) {
  if (!isEqualCast(node))
    return false;
  replaceAllUsesWith(rewriter, node.result(), ir::ToOp::of(node)->self());
  return true;
}

bool castBeforeExpand(ir::Node &node, PatternRewriter &rewriter) {
  auto to = ir::ToOp::of(node);
  if (!to || isEqualCast(node))
    return false;
  auto expand = ir::ExpandOp::of(to->self());
  if (!expand)
    return false;
  const ir::TensorType type = expandedType(*expand, *to);
  if (const ir::Node *reader = findStridesRefused(node.result(), type))
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, type); });
  ir::Node *cast = rewriter.create(
      OpKind::To, {expand->self(), node.arg("dtype"), node.arg("device")}, node, &node);
  ir::Node *expanded =
      rewriter.create(OpKind::Expand, {cast->result(), expand->node().arg("size")}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), expanded->result());
  return true;
}

} // namespace cgc::passes

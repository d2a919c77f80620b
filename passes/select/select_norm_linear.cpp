// select-norm-linear: fuses a linear of normalized rows into cgc.norm_linear.
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"
#include "passes/select/row_statistics.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Creates the constants of one cgc.norm_linear before its linear. Operands of the linear's dtype
/// are combined with f32 operands in mul and add: LibTorch then computes in f32, without an f32
/// copy of a weight.
class Folding {
public:
  Folding(Node &linear, ir::GraphRewriter &rewriter)
      : linear_(linear), rewriter_(rewriter), dtype_(linear.result()->tensor().dtype) {}

  Value *create(OpKind op, std::vector<Arg> args) {
    return createNode(op, std::move(args))->result();
  }
  Node *createNode(OpKind op, std::vector<Arg> args) {
    return rewriter_.create(op, std::move(args), linear_, &linear_);
  }
  Value *inF32(const Arg &arg) {
    return arg.value()->tensor().dtype == DType::F32 ? arg.value()
                                                     : create(OpKind::To, {arg, DType::F32, Arg()});
  }
  Value *rounded(Value *value) { return create(OpKind::To, {value, dtype_, Arg()}); }

  /// Returns `weight` with its columns scaled and its rows centered.
  Value *centered(const Arg &weight, const Arg &scale) {
    Value *scaled = scale.isNone() ? inF32(weight) : create(OpKind::Mul, {weight, inF32(scale)});
    return rounded(create(OpKind::CgcCenterRows, {scaled, dtype_}));
  }
  /// Returns `bias` plus `weight` times `shift`.
  Arg shifted(const Arg &bias, const Arg &weight, const Arg &shift) {
    if (shift.isNone())
      return bias;
    Value *sums = create(OpKind::Sum, {create(OpKind::Mul, {weight, inF32(shift)}),
                                       Arg::ints(ir::Dims{1}), false, DType::F32});
    return rounded(bias.isNone() ? sums : create(OpKind::Add, {bias, sums, 1}));
  }

private:
  Node &linear_;
  ir::GraphRewriter &rewriter_;
  const DType dtype_;
};

bool selectNormLinear(Node &node, PatternRewriter &rewriter) {
  const bool isFused = node.is(OpKind::CgcLinear);
  if (!isFused && !node.is(OpKind::Linear))
    return false;
  const auto rowNorm = onlyRowNormOf(node.arg("input").value());
  if (!rowNorm)
    return false;
  const Node *norm = rowNorm->node;
  const ir::TensorType &type = node.result()->tensor();
  const Arg &weight = node.arg("weight"), &bias = node.arg("bias");
  if (isFused && !node.arg("residual").isNone())
    return rewriter.notifyMatchFailure(node, "it adds a residual");
  if (type.dtype != DType::F16 && type.dtype != DType::BF16)
    return rewriter.notifyMatchFailure(node, "it is not in f16 or bf16");
  if (weight.value()->tensor().rank() != 2)
    return rewriter.notifyMatchFailure(node, "the weight is a vector");
  if (!node.arg("input").value()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the normalized rows have other users");
  const Arg &scale = norm->arg("weight"), &shift = norm->arg("bias");
  if (!dependsOnParametersOnly(weight) || !dependsOnParametersOnly(bias) ||
      !dependsOnParametersOnly(scale) || !dependsOnParametersOnly(shift))
    return rewriter.notifyMatchFailure(
        node, "a weight or bias of the linear or of the layer_norm does not depend on parameters "
              "alone");
  if (!hasOneReader(weight.value()))
    return rewriter.notifyMatchFailure(node, "the weight has other users");
  Folding folding(node, rewriter);
  const Arg newWeight = folding.centered(weight, scale);
  const Arg newBias = folding.shifted(bias, weight, shift);
  // May replace the op that computes the input.
  Value *statistics = requestRowStatistics(norm->arg("input").value(), rewriter);
  Node *fused = folding.createNode(OpKind::CgcNormLinear,
                                   {norm->arg("input"), newWeight, newBias,
                                    statistics ? Arg(statistics) : Arg(), norm->arg("eps"),
                                    isFused ? node.arg("activation") : Arg("none"),
                                    isFused ? node.arg("row_statistics") : Arg(false)});
  for (Value &result : node.results())
    replaceAllUsesWith(rewriter, &result, fused->result(result.index()));
  return true;
}

constexpr Pattern kSelectNormLinearPatterns[] = {CGC_PATTERN(selectNormLinear)};

} // namespace

/// Fuses a linear of normalized rows in f16 or bf16 into cgc.norm_linear, if the layer_norm has no
/// other user and the parameters of both are constant. If an op that can have row statistics
/// computes the input, that op gets them as a result, and cgc.norm_linear reads them. The norm's
/// scale goes into the columns of the weight, whose rows are then centered, and its shift into the
/// bias. A weight with other users is left alone, so that a plan never holds it twice. Requires
/// `fold` after it.
struct SelectNormLinearPass {
  static constexpr const char *name = "select-norm-linear";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectNormLinearPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectNormLinearPatterns, context);
}

CGC_DEFINE_PASS(SelectNormLinearPass)

} // namespace cgc::passes

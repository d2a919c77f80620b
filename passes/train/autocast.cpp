// autocast: computes matrix products in 16 bits and what needs range or precision in f32.
#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"
#include "passes/op_precision.h"
#include "passes/preconditions.h"

#include "llvm/ADT/DenseMap.h"

namespace cgc::passes {

/// Casts the f32 arguments of matrix products, convolutions and attention to `to`, and the 16-bit
/// arguments of norms, softmax, losses, exp, pow and sums to f32, by the lists of PyTorch's
/// autocast for CUDA (torch.amp, "Autocast Op Reference"). Other ops compute in the dtype of their
/// arguments, and in f32 if these differ. A value is cast once. Parameters stay f32, and so do
/// their gradients.
struct AutocastPass {
  static constexpr const char *name = "autocast";
  static constexpr bool isRequired = true;
  /// Option: to, bf16 or f16.
  static Result<AutocastPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  DType to = DType::BF16;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool is16Bit(const Value *value) {
  return value->isTensor() && isFloating(value->tensor().dtype) &&
         dtypeSize(value->tensor().dtype) == 2;
}

class Caster {
public:
  Caster(ir::Graph &graph, DType to) : rewriter_(graph), to_(to) {}

  /// Casts the arguments of `node` and gives its results the types that follow.
  Status visit(Node &node) {
    switch (precisionOf(node.op())) {
    case OpPrecision::Lower:
      castArgs(node, to_, [](const Value *v) { return v->tensor().dtype == DType::F32; });
      break;
    case OpPrecision::Full:
      castArgs(node, DType::F32, is16Bit);
      break;
    case OpPrecision::Either:
      break;
    }
    if (setTypes(node).isOk())
      return Status::ok();
    castArgs(node, DType::F32, is16Bit); // Arguments of different dtypes.
    return setTypes(node);
  }

  bool changed() const { return rewriter_.changed(); }

private:
  template <class Which> void castArgs(Node &node, DType dtype, Which which) {
    std::vector<Arg> args = node.args();
    for (Arg &arg : args)
      arg.mapValues([&](Value *value) {
        return Arg(value->isTensor() && which(value) ? cast(value, dtype, node) : value);
      });
    if (args != node.args().vec())
      rewriter_.setArgs(&node, std::move(args));
  }

  Value *cast(Value *value, DType dtype, Node &before) {
    Value *&known = casts_[{value, static_cast<int>(dtype)}];
    if (!known) // Behind the value, so that every later node may use it.
      known = rewriter_.create(OpKind::To, {value, dtype, Arg()}, before, &before)->result();
    return known;
  }

  Status setTypes(Node &node) {
    CGC_ASSIGN_OR_RETURN(const auto inferred,
                         ir::inferResults(node.op(), node.args(), node.result()->tensor().device));
    for (unsigned i = 0; i < node.numResults(); ++i)
      node.result(i)->setType(inferred[i].type);
    return Status::ok();
  }

  ir::GraphRewriter rewriter_;
  DType to_;
  llvm::DenseMap<std::pair<Value *, int>, Value *> casts_; ///< Looked up, never iterated.
};

} // namespace

Result<AutocastPass> AutocastPass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto to, options.takeOneOf("to", {"bf16", "f16"}));
  return AutocastPass{to == "f16" ? DType::F16 : DType::BF16};
}

Result<Changed> AutocastPass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  Caster caster(graph, to);
  for (Node &node : graph) {
    if (node.kind() != ir::NodeKind::CallFunction)
      continue;
    if (Status status = caster.visit(node); !status.isOk() && context.diagnostics)
      context.diagnostics->error(node, "under autocast: " + status.message());
  }
  if (context.diagnostics)
    CGC_TRY(context.diagnostics->toStatus(Code::Unsupported));
  return caster.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(AutocastPass)

} // namespace cgc::passes

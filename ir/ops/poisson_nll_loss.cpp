// aten.poisson_nll_loss: negative log-likelihood of counts.
#include "ir/ops/loss_rules.h"

#include <numbers>

namespace cgc::ir {
namespace {

Status inferPoissonNllLoss(const InferArgs &args, rules::Results &results) {
  return rules::loss(args, {"input", "target"}, results);
}

Result<Values> definePoissonNllLoss(OpBuilder &b) {
  Value *input = b.input("input"), *target = b.input("target"), *loss = nullptr;
  if (b.args().boolean("log_input")) {
    Value *rate = b.call(OpKind::Exp, {input});
    loss = b.sub(rate, b.mul(target, input));
  } else {
    Value *logarithm = b.call(OpKind::Log, {b.add(input, b.arg("eps"))});
    loss = b.sub(input, b.mul(target, logarithm));
  }
  if (b.args().boolean("full")) { // Stirling's approximation.
    Value *term = b.sub(b.mul(target, b.call(OpKind::Log, {target})), target);
    Value *logarithm = b.call(OpKind::Log, {b.mul(target, 2 * std::numbers::pi)});
    term = b.add(term, b.mul(logarithm, 0.5));
    Value *isSmall = b.call(OpKind::Le, {target, 1});
    loss = b.add(loss, b.call(OpKind::MaskedFill, {term, isSmall, 0.0}));
  }
  return rules::reduced(b, loss);
}

} // namespace

const OpDef defs::PoissonNllLoss = {
    .schema = "(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) "
              "-> Tensor",
    .traits = kPure | kReduction,
    .infer = inferPoissonNllLoss,
    .decompose = definePoissonNllLoss,
    .doc = "exp(input) - target * input, or input - target * log(input + eps) without log_input, "
           "plus Stirling's approximation of log(target!) where target exceeds 1 if full, "
           "elementwise and then reduced.",
};

} // namespace cgc::ir

// Arithmetic on parameters, for passes that put an op into a weight.
#pragma once

#include "passes/pattern.h"

namespace cgc::passes {

/// Adds ops on parameters, which `fold` evaluates at compile time, in f64 so that the result is
/// rounded once.
class ParameterMath {
public:
  /// Adds them before `node`, and with its location.
  ParameterMath(ir::Node &node, PatternRewriter &rewriter) : node_(node), rewriter_(rewriter) {}

  ir::Value *operator()(ir::OpKind op, std::vector<ir::Arg> args) const;
  /// `parameter` in f64. One that such ops have computed is taken before it was rounded.
  ir::Value *wide(const ir::Arg &parameter) const;
  /// `value`, rounded to `dtype`.
  ir::Value *narrow(ir::Value *value, DType dtype) const;

private:
  ir::Node &node_;
  PatternRewriter &rewriter_;
};

/// Returns true if a weight of `dtype` times `factor` is as exact as `product`, the product of its
/// op's result and `factor`. Weights of f16 may become subnormal; a sum with a residual hides that.
bool keepsPrecision(const ir::Node &product, ir::Value *factor, DType dtype);

} // namespace cgc::passes

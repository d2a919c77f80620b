// normalization_rules: the type rule of layer normalization, and the definitions that layer and
// batch normalization share.
#include "ir/ops/normalization_rules.h"

namespace cgc::ir {

Status rules::layerNorm(const InferArgs &args, Results &results,
                        llvm::ArrayRef<llvm::StringRef> parameters) {
  const TensorType &input = args.tensor("input");
  Dims shape = args.ints("normalized_shape");
  if (!isFloating(input.dtype))
    return rules::mismatch("input", "of a floating dtype", input);
  if (shape.empty() || static_cast<int64_t>(shape.size()) > input.rank() ||
      llvm::ArrayRef(input.sizes).take_back(shape.size()) != llvm::ArrayRef(shape))
    return rules::mismatch(
        "input", "[..., normalized_shape] with normalized_shape " + rules::toString(shape), input);
  llvm::StringRef first; // The first parameter that is given.
  for (llvm::StringRef name : parameters) {
    if (args.isNone(name))
      continue;
    // A model traced under autocast has f32 parameters here.
    if (args.tensor(name).dtype != DType::F32 || dtypeSize(input.dtype) != 2)
      CGC_TRY(rules::sameDType(args, "input", {name}));
    if (args.tensor(name).sizes != shape)
      return rules::mismatch(name, rules::toString(shape), args.tensor(name));
    if (!first.empty())
      CGC_TRY(rules::sameDType(args, first, {name}));
    first = name;
  }
  return rules::addDense(results, input.dtype, input.sizes);
}

Status rules::rowNormParameters(const InferArgs &args, llvm::ArrayRef<llvm::StringRef> parameters) {
  const int64_t columns = args.tensor("input").sizes.back();
  for (llvm::StringRef name : parameters) {
    if (args.isNone(name))
      continue;
    const TensorType &parameter = args.tensor(name);
    if (llvm::ArrayRef(parameter.sizes) != llvm::ArrayRef({columns}))
      return rules::mismatch(name, "[" + llvm::Twine(columns) + "]", parameter);
    if (parameter.dtype != DType::F32)
      CGC_TRY(rules::sameDType(args, "input", {name}));
  }
  return Status::ok();
}

Value *rules::rowNorm(OpBuilder &b, Value *x, llvm::StringRef weight, llvm::StringRef bias,
                      llvm::StringRef eps) {
  const Value *parameter = b.input(weight) ? b.input(weight) : b.input(bias);
  Value *rows = parameter ? b.to(x, parameter->tensor().dtype) : x;
  Value *normalized = b.call(OpKind::LayerNorm, {rows, Arg::ints(Dims{x->tensor().sizes.back()}),
                                                 b.arg(weight), b.arg(bias), b.arg(eps)});
  return b.to(normalized, x->tensor().dtype);
}

DType rules::statisticsDType(DType dtype) {
  return dtypeSize(dtype) == 2 ? DType::F32 : dtype;
}

Dims rules::normalizedDims(const InferArgs &args) {
  Dims dims;
  for (auto i = static_cast<int64_t>(args.ints("normalized_shape").size()); i > 0; --i)
    dims.push_back(-i);
  return dims;
}

Value *rules::rstdOf(OpBuilder &b, Value *variance, double eps) {
  return b.call(OpKind::Rsqrt, {b.add(variance, eps)});
}

rules::Statistics rules::statisticsOf(OpBuilder &b, Value *x, llvm::ArrayRef<int64_t> dims,
                                      double eps) {
  Value *mean = b.call(OpKind::Mean, {x, Arg::ints(dims), true});
  Value *variance = b.call(OpKind::Var, {x, Arg::ints(dims), 0, true});
  return {mean, variance, rstdOf(b, variance, eps)};
}

Value *rules::normalized(OpBuilder &b, Value *x, Value *mean, Value *rstd) {
  return b.mul(b.sub(x, mean), rstd);
}

Value *rules::normalizedGradient(OpBuilder &b, Value *grad, Value *y, Value *rstd,
                                 llvm::ArrayRef<int64_t> dims) {
  const auto mean = [&](Value *x) { return b.call(OpKind::Mean, {x, Arg::ints(dims), true}); };
  Value *centered = b.sub(grad, mean(grad));
  Value *projection = b.mul(y, mean(b.mul(grad, y)));
  return b.mul(b.sub(centered, projection), rstd);
}

Value *rules::affine(OpBuilder &b, Value *x, Value *weight, Value *bias) {
  x = weight ? b.mul(x, weight) : x;
  return bias ? b.add(x, bias) : x;
}

Values rules::batchNormTrain(OpBuilder &b, Value *x, const Statistics &statistics,
                             const Arg &correction) {
  const TensorType &type = b.input("input")->tensor();
  const Dims sizes = channelsOf(type, b.args().boolean("channels_last")).sizes;
  const auto wide = [&](llvm::StringRef name) {
    Value *value = b.input(name);
    return value ? b.to(value, x->tensor().dtype) : nullptr;
  };
  const auto broadcast = [&](Value *value) { return value ? b.reshape(value, sizes) : nullptr; };
  const auto vector = [&](Value *value) { return b.reshape(value, {sizes.front()}); };
  Value *y = normalized(b, x, statistics.mean, statistics.rstd);
  Value *weight = broadcast(wide("weight")), *bias = broadcast(wide("bias"));
  y = b.to(affine(b, y, weight, bias), type.dtype); // Rounded before the residual is added.
  if (Value *residual = b.input("residual"))
    y = b.add(y, residual);
  if (b.args().boolean("relu"))
    y = b.call(OpKind::Relu, {y});
  Value *mean = vector(statistics.mean), *variance = vector(statistics.variance);
  Values values{y, mean, vector(statistics.rstd)};
  for (llvm::StringRef name : {"running_mean", "running_var"}) {
    Value *running = wide(name);
    if (!running)
      continue;
    Value *now = name == "running_mean" ? mean : b.mul(variance, correction);
    Value *moved = b.call(OpKind::Lerp, {running, now, b.arg("momentum")});
    values.push_back(b.to(moved, b.input(name)->tensor().dtype));
  }
  return values;
}

} // namespace cgc::ir

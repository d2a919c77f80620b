// aten.layer_norm: layer normalization.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  Dims shape = args.ints("normalized_shape");
  if (!isFloating(input.dtype))
    return rules::mismatch("input", "of a floating dtype", input);
  if (shape.empty() || static_cast<int64_t>(shape.size()) > input.rank() ||
      llvm::ArrayRef(input.sizes).take_back(shape.size()) != llvm::ArrayRef(shape))
    return rules::mismatch(
        "input", "[..., normalized_shape] with normalized_shape " + rules::toString(shape), input);
  llvm::StringRef first; // The first of weight and bias that is given.
  for (llvm::StringRef name : {"weight", "bias"}) {
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

} // namespace

const OpDef defs::LayerNorm = {
    .schema = "(Tensor input, int[] normalized_shape, Tensor? weight=none, Tensor? bias=none, "
              "float eps=1e-05) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .readsStrides =
        [](const InferArgs &args, llvm::StringRef name, const TensorType &type) {
          return name == "input" && hasDenseRows(type, args.ints("normalized_shape").size());
        },
    .rowArgs =
        [](const InferArgs &args) {
          return args.ints("normalized_shape").size() == 1 ? RowArgs{"input"} : RowArgs();
        },
    .batch =
        [](const BatchCall &call) {
          const int64_t normalized = call.args.ints("normalized_shape").size();
          const TensorType &input = call.args.tensor("input");
          batch::Join join(call);
          join.add(call.args["input"], batch::leading(input, input.rank() - normalized));
          return join.state();
        },
    .doc =
        "input [..., normalized_shape] normalized to zero mean and unit variance over its last "
        "dimensions, times weight, plus bias. Both have sizes normalized_shape and input's dtype, "
        "or f32 if that has 16 bits: then everything is computed in f32 and rounded once.",
};

} // namespace cgc::ir

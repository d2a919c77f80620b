// layer_norm_rules: the type rules of layer normalization, forward and backward.
#include "ir/ops/layer_norm_rules.h"

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

DType rules::statisticsDType(DType dtype) {
  return dtypeSize(dtype) == 2 ? DType::F32 : dtype;
}

} // namespace cgc::ir

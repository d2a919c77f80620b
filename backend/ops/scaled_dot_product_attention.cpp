// scaled_dot_product_attention: LibTorch's attention.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "backend/ops/lower_attention.h"

namespace cgc::backend {

Place additiveMask(Place mask, DType dtype, BucketBuilder &builder) {
  if (mask.dtype == dtype && (mask.sizes.back() == 1 || mask.strides.back() == 1))
    return mask;
  for (size_t dim = 0; dim + 1 < mask.sizes.size(); ++dim)
    if (mask.strides[dim] == 0) // Broadcast.
      mask.sizes[dim] = 1;
  const Place result = builder.temporary(dtype, mask.sizes);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (mask.dtype != DType::Bool) {
    builder.copy(mask, result);
  } else if (!launchWhere(mask, 0.0, kHidden, result, builder)) {
    const auto number = [&](double value) {
      return builder.tensor(scalarTensor(value, dtype, builder));
    };
    builder.callInto("aten::where", "self_out",
                     {builder.tensor(mask), number(0.0), number(kHidden)}, result);
  }
  return result;
}

Status lowerAttention(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  std::vector<AtenArg> args = callArgs(node, builder);
  const std::optional<Place> mask = builder.optionalPlace(node.arg("attn_mask"));
  if (mask && builder.target() == DeviceKind::Cuda) {
    // The definition of the op, which takes no bools. Of LibTorch's kernels for GPUs, cuDNN's takes
    // a false for -65504, and the memory-efficient one finfo.min for -infinity: queries without a
    // visible key get other results.
    args[3] = builder.tensor(additiveMask(*mask, result.dtype, builder));
    args.insert(args.begin() + 6, NoneArg{}); // dropout_mask
    builder.callThenCopy("aten::_scaled_dot_product_attention_math", "", std::move(args),
                         {result, std::nullopt}); // Without the weights.
    return Status::ok();
  }
  builder.callThenCopy("aten::scaled_dot_product_attention", "", std::move(args), {result});
  return Status::ok();
}

} // namespace cgc::backend

// Full precision: the thread's guard, the host's setting, and convolutions that take allow_tf32 as
// an argument.
#include "runtime/aten/full_precision.h"

#include <algorithm>

namespace cgc::aten {
namespace {

using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

/// The value set explicitly for (backend, op), or NONE. LibTorch reports only the effective value,
/// which may be inherited from (backend, ALL) or (GENERIC, ALL).
Float32Precision ownPrecision(Float32Backend backend, Float32Op op) {
  at::Context &context = at::globalContext();
  const Float32Precision value = context.float32Precision(backend, op);
  if (op == Float32Op::ALL && backend == Float32Backend::GENERIC)
    return value;
  const Float32Backend parent = op == Float32Op::ALL ? Float32Backend::GENERIC : backend;
  if (context.float32Precision(parent, Float32Op::ALL) != value)
    return value;
  // The value equals its parent's. It is inherited if it changes with the parent's.
  const Float32Precision parents = ownPrecision(parent, Float32Op::ALL);
  context.setFloat32Precision(parent, Float32Op::ALL,
                              value == Float32Precision::IEEE ? Float32Precision::TF32
                                                              : Float32Precision::IEEE);
  const bool follows = context.float32Precision(backend, op) != value;
  context.setFloat32Precision(parent, Float32Op::ALL, parents);
  return follows ? Float32Precision::NONE : value;
}

/// Serializes changes of LibTorch's process-wide settings.
std::mutex &settings() {
  static std::mutex mutex;
  return mutex;
}

} // namespace

bool multipliesMatrices(std::string_view op) {
  constexpr std::string_view kOps[] = {
      "aten::_native_multi_head_attention",
      "aten::_scaled_dot_product_attention_math",
      "aten::addmm",
      "aten::baddbmm",
      "aten::bmm",
      "aten::cdist",
      "aten::conv1d",
      "aten::conv2d",
      "aten::conv3d",
      "aten::conv_transpose2d",
      "aten::conv_transpose3d",
      "aten::linear",
      "aten::matmul",
      "aten::mm",
      "aten::scaled_dot_product_attention",
  };
  return std::ranges::find(kOps, op) != std::end(kOps);
}

FullPrecision::FullPrecision() : lock_(settings()) {
  at::Context &context = at::globalContext();
  if (context.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL) != Float32Precision::TF32)
    return;
  own_ = ownPrecision(Float32Backend::CUDA, Float32Op::MATMUL);
  context.setFloat32Precision(Float32Backend::CUDA, Float32Op::MATMUL, Float32Precision::IEEE);
}

FullPrecision::~FullPrecision() {
  if (own_)
    at::globalContext().setFloat32Precision(Float32Backend::CUDA, Float32Op::MATMUL, *own_);
}

bool isConvolution(std::string_view op) {
  constexpr std::string_view kOps[] = {"aten::conv1d", "aten::conv2d", "aten::conv3d",
                                       "aten::conv_transpose2d", "aten::conv_transpose3d"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

void withoutTf32(c10::OperatorHandle &op, std::vector<c10::IValue> &args, at::Tensor &output) {
  const at::Context &context = at::globalContext();
  const bool transposed = op.schema().name().starts_with("aten::conv_transpose");
  const auto spatial = static_cast<size_t>(args[1].toTensor().dim() - 2);
  if (const at::Tensor image = args[0].toTensor(); image.dim() == int64_t(spatial) + 1) {
    args[0] = image.unsqueeze(0);
    output = output.unsqueeze(0);
  }
  // The arguments after the padding: dilation, groups; transposed: output_padding, groups,
  // dilation.
  const c10::IValue groups = args[6], dilation = args[transposed ? 7 : 5];
  const c10::IValue outputPadding =
      transposed ? args[5] : c10::IValue(std::vector<int64_t>(spatial, 0));
  args.resize(5);
  args.push_back(dilation);
  args.emplace_back(transposed);
  args.push_back(outputPadding);
  args.push_back(groups);
  args.emplace_back(context.benchmarkCuDNN());
  args.emplace_back(transposed || context.deterministicCuDNN() ||
                    context.deterministicAlgorithms());
  args.emplace_back(context.userEnabledCuDNN());
  args.emplace_back(false); // allow_tf32
  op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_convolution", "");
}

} // namespace cgc::aten

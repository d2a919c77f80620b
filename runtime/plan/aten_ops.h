// kAllowedAtenOps: the ATen ops that a plan may call. A plan comes from a file, and LibTorch has
// ops that open files or replace a tensor's memory. Those are not in the list, so no plan can call
// them.
#pragma once

#include <algorithm>
#include <string_view>

namespace cgc {

/// Ops that only compute on tensors: none opens a file, runs code or replaces a tensor's memory.
/// checkAtenValues (aten_values.h) refuses dangerous arguments of these ops; the provider checks
/// what only LibTorch or the data can tell.
inline constexpr std::string_view kAllowedAtenOps[] = {
    "aten::_native_multi_head_attention",
    "aten::_softmax",
    "aten::abs",
    "aten::adaptive_avg_pool2d",
    "aten::add",
    "aten::addmm",
    "aten::amax",
    "aten::arange",
    "aten::argmax",
    "aten::avg_pool2d",
    "aten::baddbmm",
    "aten::batch_norm",
    "aten::bitwise_and",
    "aten::bitwise_not",
    "aten::bitwise_or",
    "aten::bmm",
    "aten::cat",
    "aten::clamp",
    "aten::clamp_min",
    "aten::constant_pad_nd",
    "aten::conv2d",
    "aten::copy_",
    "aten::cos",
    "aten::cumsum",
    "aten::div",
    "aten::eq",
    "aten::erf",
    "aten::exp",
    "aten::fill_",
    "aten::flip",
    "aten::floor_divide",
    "aten::gather",
    "aten::ge",
    "aten::gelu",
    "aten::gt",
    "aten::index",
    "aten::index_select",
    "aten::layer_norm",
    "aten::le",
    "aten::linalg_vector_norm",
    "aten::linear",
    "aten::log",
    "aten::lt",
    "aten::matmul",
    "aten::max_pool2d_with_indices",
    "aten::maximum",
    "aten::mean",
    "aten::minimum",
    "aten::mm",
    "aten::mul",
    "aten::ne",
    "aten::neg",
    "aten::pow",
    "aten::remainder",
    "aten::roll",
    "aten::rsqrt",
    "aten::scaled_dot_product_attention",
    "aten::sigmoid",
    "aten::silu",
    "aten::sin",
    "aten::sqrt",
    "aten::sub",
    "aten::sum",
    "aten::tanh",
    "aten::topk",
    "aten::triu",
    "aten::where",
};

/// Whether a plan may call `op`. The backend lowers to no other op, and the provider binds no
/// other.
constexpr bool isAllowedAtenOp(std::string_view op) {
  return std::ranges::find(kAllowedAtenOps, op) != std::end(kAllowedAtenOps);
}

} // namespace cgc

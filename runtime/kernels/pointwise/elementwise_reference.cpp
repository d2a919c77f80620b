// References of elementwise_*.
#include "runtime/kernels/pointwise/elementwise.h"

#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

/// Calls `f(function)` with the function (x, z) of `op`.
template <class T, class F> void withOp(ElementwiseOp op, F f) {
  const auto activation = [&](Activation kind) {
    withActivation<T>(kind, [&](auto function) { f([=](float x, float) { return function(x); }); });
  };
  switch (op) {
  case ElementwiseOp::Abs:
    return f([](float x, float) { return std::fabs(x); });
  case ElementwiseOp::Neg:
    return f([](float x, float) { return -x; });
  case ElementwiseOp::Exp:
    return f([](float x, float) { return std::exp(x); });
  case ElementwiseOp::Sqrt:
    return f([](float x, float) { return std::sqrt(x); });
  case ElementwiseOp::Rsqrt:
    return f([](float x, float) { return 1 / std::sqrt(x); });
  case ElementwiseOp::Sin:
    return f([](float x, float) { return std::sin(x); });
  case ElementwiseOp::Cos:
    return f([](float x, float) { return std::cos(x); });
  case ElementwiseOp::Erf:
    return f([](float x, float) { return std::erf(x); });
  case ElementwiseOp::Sigmoid:
    return f([](float x, float) { return sigmoid(x); });
  case ElementwiseOp::Tanh:
    return activation(Activation::Tanh);
  case ElementwiseOp::Relu:
    return activation(Activation::Relu);
  case ElementwiseOp::Gelu:
    return activation(Activation::Gelu);
  case ElementwiseOp::GeluTanh:
    return activation(Activation::GeluTanh);
  case ElementwiseOp::QuickGelu:
    return activation(Activation::QuickGelu);
  case ElementwiseOp::Silu:
    return activation(Activation::Silu);
  case ElementwiseOp::Add:
    return f([](float x, float z) { return x + z; });
  case ElementwiseOp::Sub:
    return f([](float x, float z) { return x - z; });
  case ElementwiseOp::ReverseSub:
    return f([](float x, float z) { return z - x; });
  case ElementwiseOp::Mul:
    return f([](float x, float z) { return x * z; });
  case ElementwiseOp::Div:
    return f([](float x, float z) { return x / z; });
  case ElementwiseOp::ReverseDiv:
    return f([](float x, float z) { return z / x; });
  case ElementwiseOp::Pow:
    return f([](float x, float z) { return std::pow(x, z); });
  case ElementwiseOp::Maximum:
    return f([](float x, float z) { return maxOrNan(x, z); });
  case ElementwiseOp::Minimum:
    return f([](float x, float z) { return minOrNan(x, z); });
  case ElementwiseOp::Hardshrink:
    return f([](float x, float z) { return x >= -z && x <= z ? 0 : x; });
  case ElementwiseOp::ReluBackward:
    return f([](float x, float z) { return z <= 0 ? 0 : x; });
  case ElementwiseOp::GeluBackward:
    return f([](float x, float z) {
      const float derivative = 0.5f * (1 + std::erf(z * 0.70710678118654752f)) +
                               z * 0.39894228040143268f * std::exp(-0.5f * z * z);
      return x * derivative;
    });
  case ElementwiseOp::Reciprocal:
    return f([](float x, float) { return 1 / x; });
  case ElementwiseOp::Softplus:
    return f([](float x, float) { return x > 20 ? x : std::log1p(std::exp(x)); });
  case ElementwiseOp::Log:
    return f([](float x, float) { return std::log(x); });
  }
}

/// Calls `f(function)` with the function of integers of `op`. They wrap around.
template <class F> void withIntegerOp(ElementwiseOp op, F f) {
  switch (op) {
  case ElementwiseOp::Abs:
    return f([](uint64_t x, uint64_t) { return int64_t(x) < 0 ? 0 - x : x; });
  case ElementwiseOp::Neg:
    return f([](uint64_t x, uint64_t) { return 0 - x; });
  case ElementwiseOp::Add:
    return f([](uint64_t x, uint64_t z) { return x + z; });
  case ElementwiseOp::Sub:
    return f([](uint64_t x, uint64_t z) { return x - z; });
  case ElementwiseOp::ReverseSub:
    return f([](uint64_t x, uint64_t z) { return z - x; });
  case ElementwiseOp::Mul:
    return f([](uint64_t x, uint64_t z) { return x * z; });
  case ElementwiseOp::Maximum:
    return f([](uint64_t x, uint64_t z) { return std::max(int64_t(x), int64_t(z)); });
  case ElementwiseOp::Minimum:
    return f([](uint64_t x, uint64_t z) { return std::min(int64_t(x), int64_t(z)); });
  default:
    return; // The check refuses all others.
  }
}

template <class T> void elementwise(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0], &z = a.reads[1], &y = a.writes[0];
  const auto number = static_cast<float>(a.floats[0]);
  withOp<T>(ElementwiseOp(a.ints[0]), [&](auto function) {
    forElements<3>({&y, &x, &z}, [&](const auto &at) {
      const float second = z.data ? toFloat(dataOf<T>(z)[at[2]]) : number;
      resultOf<T>(y)[at[0]] = fromFloat<T>(function(toFloat(dataOf<T>(x)[at[1]]), second));
    });
  });
}

void elementwiseOfIntegers(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0], &z = a.reads[1], &y = a.writes[0];
  const auto number = static_cast<int64_t>(a.floats[0]);
  withIntegerOp(ElementwiseOp(a.ints[0]), [&](auto function) {
    forElements<3>({&y, &x, &z}, [&](const auto &at) {
      const int64_t second = z.data ? dataOf<int64_t>(z)[at[2]] : number;
      resultOf<int64_t>(y)[at[0]] = function(dataOf<int64_t>(x)[at[1]], second);
    });
  });
}

} // namespace

CGC_FLOAT_REFERENCES(elementwise, elementwise)
CGC_REFERENCE(elementwise_i64, elementwiseOfIntegers)

} // namespace cgc::reference

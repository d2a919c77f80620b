// Conversions between LibTorch's types and cgc's: dtypes, tensors, plain constants.
#pragma once

#include "ir/arg.h"
#include "ir/type.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace cgc::frontend {

/// Nothing for a type that cgc has not (complex, quantized, float8).
std::optional<DType> toDType(c10::ScalarType type);
c10::ScalarType toScalarType(DType dtype);

/// Whether an int given for `argument` is a dtype: TorchScript stores both alike, only schemas
/// tell.
bool isDTypeArgument(const c10::Argument &argument);

/// Why cgc cannot hold `tensor` ("a ComplexFloat tensor"), or empty.
std::string whyUnsupported(const at::Tensor &tensor);

/// A constant that holds no tensor: none, bool, int, float, string, device, and lists, tuples of
/// them. Nothing for anything else.
std::optional<ir::Arg> toConstant(const c10::IValue &value);

/// Turns tensors into TensorData that shares their memory. Tensors that are the same view of the
/// same memory, such as a parameter that two modules share, give one TensorData.
class TensorPool {
public:
  /// `tensor` is on the CPU and whyUnsupported() of it is empty. Copies only if it is not
  /// contiguous.
  std::shared_ptr<const ir::TensorData> get(const at::Tensor &tensor);

private:
  using Key = std::tuple<const void *, c10::ScalarType, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<Key, std::shared_ptr<const ir::TensorData>> pool_; ///< Never iterated.
};

} // namespace cgc::frontend

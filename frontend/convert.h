// Convert: conversions between LibTorch's types and cgc's: dtypes, tensors, constants.
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

/// Returns nullopt for a type that cgc does not have (complex, quantized, float8).
std::optional<DType> toDType(c10::ScalarType type);
c10::ScalarType toScalarType(DType dtype);

/// Returns why cgc cannot hold `tensor` ("a ComplexFloat tensor"); empty if it can.
std::string whyUnsupported(const at::Tensor &tensor);

/// Converts a constant without tensors: none, bool, int, float, string, device, and lists and
/// tuples of these. Returns nullopt for any other value.
std::optional<ir::Arg> toConstant(const c10::IValue &value);

/// Converts tensors into TensorData that shares their memory. Tensors that are the same view of the
/// same memory, such as a parameter shared by two modules, give one TensorData.
class TensorPool {
public:
  /// Returns the data of `tensor`, which must be on the CPU and for which whyUnsupported() must be
  /// empty. Copies only if it is not contiguous.
  std::shared_ptr<const ir::TensorData> get(const at::Tensor &tensor);

private:
  using Key = std::tuple<const void *, c10::ScalarType, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<Key, std::shared_ptr<const ir::TensorData>> pool_; ///< Never iterated.
};

} // namespace cgc::frontend

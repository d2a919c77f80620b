// collectTensors: flattens containers.
#include "runtime/script/results.h"

namespace cgc::script {

void collectTensors(const c10::IValue &result, std::vector<at::Tensor> &tensors) {
  if (result.isTensor())
    tensors.push_back(result.toTensor());
  else if (result.isTuple())
    for (const c10::IValue &element : result.toTupleRef().elements())
      collectTensors(element, tensors);
  else if (result.isList())
    for (const c10::IValue &element : result.toListRef())
      collectTensors(element, tensors);
  else if (result.isGenericDict())
    for (const auto &entry : result.toGenericDict())
      collectTensors(entry.value(), tensors);
}

} // namespace cgc::script

// optimizer_rules: the type rules of optimizers, which update lists of tensors.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {

Status rules::optimizerUpdate(const InferArgs &args, Results &results,
                              std::initializer_list<llvm::StringRef> names) {
  const auto parameters = args.tensors("parameters"), gradients = args.tensors("gradients");
  const auto checkCount = [&](llvm::StringRef name, size_t count) {
    return count == parameters.size()
               ? Status::ok()
               : refuse("expected '" + name + "' to have as many tensors as 'parameters', " +
                        llvm::Twine(parameters.size()) + ", got " + llvm::Twine(count));
  };
  CGC_TRY(checkCount("gradients", gradients.size()));
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i]->sizes != parameters[i]->sizes || !isFloating(gradients[i]->dtype))
      return mismatch("gradients", "of floating dtypes, with the sizes of their parameters",
                      *gradients[i]);
  for (llvm::StringRef name : names) {
    const auto tensors = args.tensors(name);
    CGC_TRY(checkCount(name, tensors.size()));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorType &tensor = *tensors[i];
      if (tensor.sizes != parameters[i]->sizes || tensor.dtype != parameters[i]->dtype ||
          !isFloating(tensor.dtype))
        return mismatch(name, "of floating dtypes, with dtype and sizes of their parameters",
                        tensor);
      CGC_TRY(addDense(results, tensor.dtype, tensor.sizes));
    }
  }
  if (!args.isNone("copy")) {
    const DType copy = args.dtype("copy");
    if (copy != DType::F16 && copy != DType::BF16)
      return refuse("expected 'copy' to be f16 or bf16");
    for (const TensorType *parameter : parameters)
      CGC_TRY(addDense(results, copy, parameter->sizes));
  }
  for (llvm::StringRef name : {"lr", "scale"})
    if (!args.isNone(name) &&
        (args.tensor(name).rank() != 0 || !isFloating(args.tensor(name).dtype)))
      return mismatch(name, "of a floating dtype, without dimensions", args.tensor(name));
  if (const TensorType &step = args.tensor("step"); step.rank() != 0 || step.dtype != DType::I64)
    return mismatch("step", "i64[]", step);
  if (!args.isNone("skip") &&
      (args.tensor("skip").rank() != 0 || args.tensor("skip").dtype != DType::Bool))
    return mismatch("skip", "bool[]", args.tensor("skip"));
  return Status::ok();
}

} // namespace cgc::ir

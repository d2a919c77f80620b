// optimizer_rules: the type rules of optimizers, which update lists of tensors.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {

Status rules::optimizerUpdate(const InferArgs &args, Results &results,
                              std::initializer_list<llvm::StringRef> names) {
  const auto parameters = args.tensors("parameters");
  const auto check = [&](llvm::StringRef name) -> Status {
    const auto tensors = args.tensors(name);
    if (tensors.size() != parameters.size())
      return refuse("expected '" + name + "' to have as many tensors as 'parameters', " +
                    llvm::Twine(parameters.size()) + ", got " + llvm::Twine(tensors.size()));
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i]->sizes != parameters[i]->sizes || !isFloating(tensors[i]->dtype))
        return mismatch(name, "of a floating dtype, with the sizes of its parameter", *tensors[i]);
    return Status::ok();
  };
  CGC_TRY(check("gradients"));
  for (llvm::StringRef name : names) {
    CGC_TRY(check(name));
    for (const TensorType *tensor : args.tensors(name))
      CGC_TRY(addDense(results, tensor->dtype, tensor->sizes));
  }
  for (llvm::StringRef name : {"lr", "step", "scale", "skip"})
    if (!args.isNone(name) && args.tensor(name).rank() != 0)
      return mismatch(name, "without dimensions", args.tensor(name));
  return Status::ok();
}

} // namespace cgc::ir

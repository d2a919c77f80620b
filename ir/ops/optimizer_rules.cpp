// optimizer_rules: the type rule and the definition of optimizers, which update lists of tensors.
#include "ir/ops/optimizer_rules.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace cgc::ir {

std::optional<Values> rules::splitByDType(OpBuilder &b, llvm::ArrayRef<llvm::StringRef> lists) {
  const std::vector<Value *> firsts = b.inputs(lists.front());
  std::map<DType, llvm::SmallVector<size_t, 8>> groups;
  for (const auto &[i, value] : llvm::enumerate(firsts))
    groups[value->tensor().dtype].push_back(i);
  if (groups.size() < 2)
    return std::nullopt;
  const Node &node = b.node();
  const size_t resultLists = node.numResults() / firsts.size();
  Values results(node.numResults());
  for (const auto &[dtype, members] : groups) {
    std::vector<Arg> args(node.args().begin(), node.args().end());
    for (llvm::StringRef name : lists) {
      const Arg::List all = node.arg(name).list();
      Arg::List some;
      for (size_t i : members)
        if (i < all.size()) // A list may be empty.
          some.push_back(all[i]);
      args[*opSchema(node.op()).find(name)] = std::move(some);
    }
    Node *part = b.callNode(node.op(), std::move(args));
    for (size_t list = 0; list < resultLists; ++list)
      for (const auto &[i, member] : llvm::enumerate(members))
        results[list * firsts.size() + member] =
            part->result(static_cast<unsigned>(list * members.size() + i));
  }
  return results;
}

Values
rules::updated(OpBuilder &b, llvm::ArrayRef<llvm::StringRef> names,
               llvm::function_ref<Values(llvm::ArrayRef<Value *> old, Value *gradient)> update) {
  std::vector<std::vector<Value *>> lists; // The old values, then the new ones.
  for (llvm::StringRef name : names)
    lists.push_back(b.inputs(name));
  Value *scale = b.input("scale"), *skip = b.input("skip");
  for (auto [i, gradient] : llvm::enumerate(b.inputs("gradients"))) {
    Values old;
    for (const auto &list : lists)
      old.push_back(list[i]);
    const DType dtype = old[0]->tensor().dtype;
    gradient = b.to(gradient, dtype);
    if (scale)
      gradient = b.to(b.mul(gradient, scale), dtype);
    for (auto [list, value, fresh] : llvm::zip_equal(lists, old, update(old, gradient))) {
      fresh = b.to(fresh, dtype);
      list[i] = skip ? b.call(OpKind::Where, {skip, value, fresh}) : fresh;
    }
  }
  Values results;
  for (const auto &list : lists)
    results.append(list.begin(), list.end());
  if (!b.arg("copy").isNone())
    for (Value *parameter : lists[0])
      results.push_back(b.to(parameter, b.args().dtype("copy")));
  return results;
}

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

// Specializer: calls of submodules that the host program runs.
#include "ir/op_def.h"
#include "ir/op_views.h"
#include "ir/text/text.h"
#include "passes/specialize/specializer.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::Arg;

Result<HostResults> Specializer::hostResults(const std::string &function,
                                             llvm::ArrayRef<Arg> inputs) const {
  std::vector<ir::TensorType> types;
  for (const Arg &input : inputs) {
    if (!input.isValue())
      return Status(Code::Unsupported, ir::argText(input) +
                                           " is passed to a module of the host, which takes "
                                           "tensors first and then arguments at their defaults; "
                                           "make it part of the module");
    const ir::TensorType &type = input.value()->tensor();
    types.push_back(ir::TensorType::dense(type.dtype, type.sizes));
  }
  if (!hostTypes_)
    return Status(Code::Unsupported, "the types of its results are not known here; state 'takes' "
                                     "and 'gives'");
  return (*hostTypes_)(function, types);
}

void Specializer::visitHostCall(ir::Node &node, std::vector<Arg> args) {
  const auto call = *ir::CgcHostCallOp::of(node);
  if (!call.gives().list().empty())
    return infer(node, std::move(args));
  const Arg::List inputs = args[5].list();
  const auto results = hostResults(call.module().str() + "." + call.method().str(), inputs);
  if (!results) {
    error(node, results.status().message());
    return;
  }
  Arg::List takes, gives, values;
  for (const Arg &input : inputs)
    takes.emplace_back(ir::toString(
        ir::TensorType::dense(input.value()->tensor().dtype, input.value()->tensor().sizes)));
  for (const ir::TensorType &type : results->types)
    gives.emplace_back(ir::toString(type));
  args[0] = Arg(inputs);
  args[3] = Arg(std::move(takes));
  args[4] = Arg(std::move(gives));
  args[5] = Arg(Arg::List{});
  const auto inferred = ir::inferResults(node.op(), args, target_);
  if (!inferred) {
    error(node, inferred.status().message());
    return;
  }
  ir::Node *typed = graph_.call(node.op(), std::move(args), inferred->size(), node.loc(), &node);
  for (unsigned i = 0; i < typed->numResults(); ++i) {
    typed->result(i)->setType((*inferred)[i].type);
    values.emplace_back(typed->result(i));
  }
  if (isSilent())
    markForErasure(*typed);
  if (!results->isTuple) {
    setHostValue(node, 0, values[0]);
  } else if (node.numResults() == 1) {
    setHostValue(node, 0, Arg(std::move(values)));
  } else if (node.numResults() == values.size()) {
    for (unsigned i = 0; i < node.numResults(); ++i)
      setHostValue(node, i, values[i]);
  } else {
    error(node, "the module gives " + std::to_string(values.size()) + " results and is used for " +
                    std::to_string(node.numResults()));
  }
  markForErasure(node);
}

} // namespace cgc::passes

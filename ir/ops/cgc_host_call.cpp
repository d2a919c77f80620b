// cgc.host_call: a call of a submodule that the host program runs.
#include "ir/graph.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

/// The dense tensor types that `arg`, a list of texts, states.
Result<llvm::SmallVector<TensorType, 4>> statedTypes(const InferArgs &args, llvm::StringRef arg) {
  llvm::SmallVector<TensorType, 4> types;
  for (const Arg &text : args[arg].list()) {
    auto type = parseTensorType(text.as<std::string>());
    if (!type || !type->isContiguous())
      return rules::refuse("expected '" + arg.str() +
                           "' to be dense tensor types as in \"f32[2,3]\", got \"" +
                           text.as<std::string>() + "\"");
    types.push_back(std::move(*type));
  }
  return types;
}

Status inferHostCall(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const auto takes, statedTypes(args, "takes"));
  CGC_ASSIGN_OR_RETURN(const auto gives, statedTypes(args, "gives"));
  if (gives.empty())
    return rules::refuse("the types of its results are not known: 'gives' is empty");
  if (!args["args"].list().empty())
    return rules::refuse("expected no 'args', which specialize turns into inputs");
  const Arg::List &inputs = args["inputs"].list();
  if (inputs.size() != takes.size())
    return rules::refuse("expected as many 'inputs' as types in 'takes', " +
                         std::to_string(takes.size()) + ", got " + std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType &is = inputs[i].value()->tensor();
    if (is.dtype != takes[i].dtype || is.sizes != takes[i].sizes)
      return rules::refuse("expected input " + std::to_string(i) + " to be " + toString(takes[i]) +
                           ", got " + toString(TensorType::dense(is.dtype, is.sizes)));
  }
  for (const TensorType &type : gives)
    CGC_TRY(rules::addDense(results, type.dtype, type.sizes));
  return Status::ok();
}

} // namespace

const OpDef defs::CgcHostCall = {
    .schema = "(Tensor[] inputs, str module, str method, str[] takes=[], str[] gives=[], "
              "any[] args=[]) -> Tensor[]",
    .traits = kOpaque,
    .infer = inferHostCall,
    .doc = "The method of the submodule with the path module, which the host program runs on "
           "inputs, made dense. takes and gives are the types of inputs and results, in the "
           "model's own dtypes. Before specialize there are args in their place: what the model "
           "passes, without arguments at their defaults behind the last other one.",
};

} // namespace cgc::ir

// fallback: an ATen op without a row of its own, named by its schema.
#include "backend/lowering.h"

#include "runtime/plan/aten_ops.h"

namespace cgc::backend {

Status lowerFallback(const ir::Node &node, BucketBuilder &builder) {
  // "aten::op.overload(Tensor self, ...) -> Tensor"
  llvm::StringRef name = llvm::StringRef(node.target()).take_until([](char c) { return c == '('; });
  auto [op, overload] = name.split('.');
  if (!mayPlanCall({op.data(), op.size()}))
    return {Code::Unsupported, "a plan may not call '" + op.str() +
                                   "': add it to runtime/plan/aten_ops.h if it only computes"};
  std::vector<AtenArg> args;
  for (const ir::Arg &arg : node.arg("args").list())
    args.push_back(builder.arg(arg));
  std::vector<std::optional<Place>> outputs;
  for (const ir::Value &result : node.results())
    outputs.push_back(result.isTensor() ? std::optional(builder.allocate(result)) : std::nullopt);
  builder.callThenCopy(op.str(), overload.str(), std::move(args), outputs);
  return Status::ok();
}

} // namespace cgc::backend

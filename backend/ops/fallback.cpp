// fallback: an ATen op without an IR op of its own, named by its schema.
#include "backend/lowering.h"

#include "ir/fallback.h"
#include "runtime/plan/aten_ops.h"

namespace cgc::backend {

Status lowerFallback(const ir::Node &node, BucketBuilder &builder) {
  const ir::FallbackName name = ir::fallbackName(node);
  if (!isAllowedAtenOp({name.op.data(), name.op.size()}))
    return {Code::Unsupported, "a plan may not call '" + name.op.str() +
                                   "': add it to runtime/plan/aten_ops.h if it only computes"};
  std::vector<AtenArg> args;
  for (const ir::Arg &arg : node.arg("args").list())
    args.push_back(builder.arg(arg));
  std::vector<std::optional<Place>> outputs;
  for (const ir::Value &result : node.results())
    outputs.push_back(result.isTensor() ? std::optional(builder.allocate(result)) : std::nullopt);
  builder.callThenCopy(name.op.str(), name.overload.str(), std::move(args), outputs);
  return Status::ok();
}

} // namespace cgc::backend

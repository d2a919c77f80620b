// cgc.host_call: a call of a function of the host program.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerHostCall(const ir::Node &node, BucketBuilder &builder) {
  HostCall call;
  call.module = node.arg("module").as<std::string>();
  call.method = node.arg("method").as<std::string>();
  for (const ir::Arg &input : node.arg("inputs").list())
    call.reads.push_back(builder.tensor(densePlace(builder.place(input.value()), builder)));
  for (const ir::Value &result : node.results())
    call.writes.push_back(builder.tensor(builder.allocate(result)));
  builder.record({std::move(call)});
  return Status::ok();
}

} // namespace cgc::backend

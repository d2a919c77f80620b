// RandomStates: adds the states, their reads and the write of the offset.
#include "passes/canonicalize/random_states.h"

#include "runtime/base/training_names.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace cgc::passes {
namespace {

ir::Value *readState(ir::Graph &graph, const char *name, DeviceKind device, const ir::Loc &loc,
                     ir::Node &before) {
  ir::Module &root = *graph.owner();
  if (!root.findParameter(name))
    root.addParameter({name, ir::Parameter::Kind::State, ir::TensorType::dense(DType::I64, {}),
                       nullptr, StateRole::Control});
  return graph.getAttr(name, ir::TensorType::dense(DType::I64, {}, device), loc, &before)->result();
}

} // namespace

RandomStates readRandomStates(ir::Graph &graph, DeviceKind device, ir::Node &before) {
  return {readState(graph, kSeedState, device, before.loc(), before),
          readState(graph, kOffsetState, device, before.loc(), before)};
}

void advanceRandomOffset(ir::Graph &graph, DeviceKind device) {
  if (llvm::is_contained(graph.stateWrites(), kOffsetState))
    return;
  ir::Node &output = *graph.output();
  ir::Value *offset = readState(graph, kOffsetState, device, output.loc(), output);
  ir::Node *next = graph.call(ir::OpKind::Add, {offset, 1, 1}, 1, output.loc(), &output);
  next->result()->setType(offset->type());
  graph.addStateWrite(kOffsetState, next->result());
}

int64_t firstFreeStream(const ir::Graph &graph) {
  int64_t next = 0;
  for (const ir::Node &node : graph)
    if (node.is(ir::OpKind::CgcUniform) || node.is(ir::OpKind::CgcDropout))
      next = std::max(next, node.arg("stream").as<int64_t>() + 1);
  return next;
}

} // namespace cgc::passes

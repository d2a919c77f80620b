// StepBuilder: calls, and states that a graph adds to its module.
#include "passes/train/step_builder.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

void StepBuilder::insertFirst() {
  before_ = &*llvm::find_if(
      graph(), [](const ir::Node &node) { return node.kind() != ir::NodeKind::Placeholder; });
}

const ir::Node &StepBuilder::root() {
  const auto isTensor = [](const ir::Arg &output) {
    return output.isValue() && output.value()->isTensor();
  };
  return *llvm::find_if(graph().outputs(), isTensor)->value()->node();
}

ir::Node *StepBuilder::callNode(ir::OpKind op, std::vector<ir::Arg> args) {
  const ir::Schema &schema = ir::opSchema(op);
  for (size_t i = args.size(); i < schema.args.size(); ++i)
    args.push_back(*schema.args[i].defaultValue);
  return rewriter_.create(op, std::move(args), root(), before());
}

ir::Value *StepBuilder::read(llvm::StringRef path) {
  for (ir::Node &node : graph())
    if (node.kind() == ir::NodeKind::GetAttr && node.target() == path)
      return node.result();
  return nullptr;
}

ir::Value *StepBuilder::readState(const std::string &path, StateRole role, ir::TensorType type,
                                  std::shared_ptr<const ir::TensorData> first) {
  auto [module, name] = graph().owner()->resolve(path);
  if (!module->findParameter(name))
    module->addParameter({name.str(), ir::Parameter::Kind::State, type, std::move(first), role});
  type.device = root().result()->tensor().device;
  return rewriter_.getAttr(path, std::move(type), root(), before())->result();
}

ir::Value *StepBuilder::readControl(const char *name, DType dtype, ir::Dims sizes,
                                    std::shared_ptr<const ir::TensorData> first) {
  return readState(name, StateRole::Control, ir::TensorType::dense(dtype, sizes), std::move(first));
}

} // namespace cgc::passes

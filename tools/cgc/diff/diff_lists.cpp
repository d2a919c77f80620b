// Diff lists: builds them from IR modules and from plans.
#include "tools/cgc/diff/diff_lists.h"

#include "ir/op_def.h"
#include "ir/text/text.h"
#include "runtime/plan/plan_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/draw/plan_flow.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

namespace cgc::tool {
namespace {

// ---- IR

std::string opOf(const ir::Node &node) {
  switch (node.kind()) {
  case ir::NodeKind::Placeholder:
    return "input";
  case ir::NodeKind::GetAttr:
    return "get_attr";
  case ir::NodeKind::CallModule:
    return "call_module";
  case ir::NodeKind::Output:
    return "output";
  case ir::NodeKind::CallFunction:
    break;
  }
  return ir::opName(node.op()).str() + (node.isInPlace() ? "_" : "");
}

/// The text of an argument with a placeholder for each value.
std::string withoutValues(const ir::Arg &arg) {
  if (arg.isValue())
    return "%";
  if (!arg.isList())
    return ir::argText(arg);
  std::string text = "[";
  for (const ir::Arg &element : arg.list())
    text += withoutValues(element) + ",";
  return text + "]";
}

std::vector<DiffOp> opsOf(const ir::Graph &graph) {
  std::vector<DiffOp> ops;
  // Never iterated: the order of pointers is not deterministic.
  llvm::DenseMap<const ir::Node *, size_t> positions;
  for (const ir::Node &node : graph) {
    positions[&node] = ops.size();
    DiffOp op{.op = opOf(node), .path = node.loc().module, .what = node.target()};
    if (node.kind() == ir::NodeKind::Placeholder)
      op.what = node.result()->name();
    for (const ir::Arg &arg : node.args())
      op.what += " " + withoutValues(arg);
    for (const ir::Value &value : node.results())
      op.what += " : " + toString(value.type());
    node.forEachInput([&](const ir::Value *value) {
      op.operands.emplace_back(positions.lookup(value->node()), value->index());
    });
    op.text = toString(node);
    if (node.loc().isKnown())
      op.text += "  " + toString(node.loc());
    ops.push_back(std::move(op));
  }
  return ops;
}

void addModule(const ir::Module &module, const std::string &prefix, DiffLists &lists) {
  for (const ir::Parameter &parameter : module.parameters())
    lists.facts["parameter " + prefix + parameter.name] = toString(ir::Type(parameter.type));
  for (const ir::Attribute &attribute : module.attributes())
    lists.facts["attribute " + prefix + attribute.name] = ir::argText(attribute.value);
  for (const auto &graph : module.graphs())
    lists.lists["graph @" + prefix + graph->name()] = opsOf(*graph);
  for (const auto &submodule : module.submodules())
    addModule(*submodule, prefix + submodule->name() + ".", lists);
}

// ---- Plans

/// For example "f16[1,257,1024]"; with strides if the tensor is not dense.
std::string shapeText(const TensorRef &tensor) {
  std::string text = formatShape(dtypeName(tensor.dtype), tensor.sizes);
  return isDense(tensor.sizes, tensor.strides) ? text : text + formatShape("", tensor.strides);
}

/// For example "entry encode_image, image[4,3,32,32]". The shapes of the inputs distinguish the
/// buckets of an entry. Dtypes are left out, so that plans of two precisions correspond.
std::string titleOf(const Entry &entry, const Bucket &bucket) {
  std::string title = "entry " + entry.name;
  for (const IoTensor &input : bucket.inputs)
    title += ", " + formatShape(input.name, input.sizes);
  return title;
}

/// For example "NVIDIA H200, 132 SMs, not tuned".
std::string gpuText(const TargetGpu &gpu) {
  return fmt::format("{}, {} SMs, {}", gpu.name, gpu.multiprocessors,
                     gpu.tuned ? "tuned" : "not tuned");
}

std::vector<DiffOp> opsOf(const PlanData &plan, const Bucket &bucket) {
  std::vector<DiffOp> ops;
  auto addIo = [&](std::string op, const IoTensor &io) -> DiffOp & {
    std::string what = fmt::format("{}: {}", io.name, formatShape(dtypeName(io.dtype), io.sizes));
    ops.push_back({.op = op, .path = "", .what = what, .operands = {}, .text = op + " " + what});
    return ops.back();
  };
  for (const IoTensor &input : bucket.inputs)
    addIo("input", input);
  const size_t firstRecord = ops.size();
  Writers writers(bucket);
  auto addSources = [&](DiffOp &op, const Extent &extent) {
    if (extent.buffer == BufferKind::Input)
      op.operands.emplace_back(extent.index, 0);
    for (size_t writer : writers.of(extent))
      op.operands.emplace_back(firstRecord + writer, 0);
  };
  for (const auto &[i, record] : llvm::enumerate(bucket.records)) {
    DiffOp op{.op = recordName(record)};
    op.what = recordText(record, [&](TensorId id) -> std::string {
      if (id == kNoTensor)
        return "none";
      const TensorRef &tensor = tensorOf(bucket, id);
      return tensor.slot.buffer == BufferKind::Weight
                 ? plan.weights[tensor.slot.index].name + ": " + shapeText(tensor)
                 : shapeText(tensor);
    });
    op.text = op.what;
    if (record.location != kNoLocation) {
      op.path = plan.locations[static_cast<uint32_t>(record.location)].module;
      op.text += "  (" + op.path + ")";
    }
    for (TensorId read : recordReads(record))
      addSources(op, extentOf(tensorOf(bucket, read)));
    writers.add(i);
    ops.push_back(std::move(op));
  }
  for (const auto &[i, output] : llvm::enumerate(bucket.outputs))
    addSources(addIo("output", output),
               {BufferKind::Output, static_cast<uint32_t>(i), 0, UINT64_MAX});
  return ops;
}

} // namespace

DiffLists diffListsOf(const ir::Module &root) {
  DiffLists lists;
  addModule(root, "", lists);
  return lists;
}

DiffLists diffListsOf(const PlanData &plan) {
  DiffLists lists;
  lists.facts["target"] = deviceName(plan.target);
  lists.facts["precision"] = precisionOption(plan);
  if (plan.gpu)
    lists.facts["gpu"] = gpuText(*plan.gpu);
  for (const OpLibraryId &library : plan.opLibraries)
    lists.facts["op library " + library.name] = fmt::format("{:016x}", library.hash);
  for (const Weight &weight : plan.weights)
    lists.facts["weight " + weight.name] =
        fmt::format("{} {:016x}", formatShape(dtypeName(weight.dtype), weight.sizes), weight.hash);
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets) {
      const std::string title = titleOf(entry, bucket);
      lists.lists[title] = opsOf(plan, bucket);
      lists.facts["arena of " + title] = std::to_string(bucket.arenaBytes) + " bytes";
    }
  return lists;
}

} // namespace cgc::tool

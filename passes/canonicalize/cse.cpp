// CsePass: value numbering in one walk over the graph.
#include "passes/canonicalize/cse.h"

#include "ir/rewriter.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <bit>
#include <map>

namespace cgc::passes {
namespace {

using Numbers = llvm::DenseMap<const ir::Value *, unsigned>; // Looked up, never iterated.

/// Appends a key that is equal only for equal arguments.
void appendKey(std::string &key, const ir::Arg &arg, const Numbers &numbers) {
  auto tagged = [&](char tag, auto text) { ((key += tag) += text) += ';'; };
  if (arg.isNone())
    tagged('n', "");
  else if (arg.isValue())
    tagged('v', std::to_string(numbers.lookup(arg.value())));
  else if (auto *flag = arg.getIf<bool>())
    tagged('b', *flag ? "1" : "0");
  else if (auto *integer = arg.getIf<int64_t>())
    tagged('i', std::to_string(*integer));
  else if (auto *number = arg.getIf<double>())
    tagged('f', std::to_string(std::bit_cast<uint64_t>(*number)));
  else if (auto *text = arg.getIf<std::string>())
    tagged('s', std::to_string(text->size()) + ":" + *text);
  else if (auto *dtype = arg.getIf<DType>())
    tagged('t', std::string(dtypeName(*dtype)));
  else if (auto *device = arg.getIf<DeviceKind>())
    tagged('d', std::string(deviceName(*device)));
  else {
    key += '[';
    for (const ir::Arg &element : arg.list())
      appendKey(key, element, numbers);
    key += ']';
  }
}

std::string keyOf(const ir::Node &node, const Numbers &numbers) {
  if (node.kind() == ir::NodeKind::GetAttr) {
    const ir::Module *owner = node.graph()->owner();
    const ir::Parameter *parameter = owner ? owner->findParameter(node.target()) : nullptr;
    if (!parameter || !parameter->data || readsState(node))
      return "attr " + node.target();
    auto address = reinterpret_cast<uintptr_t>(parameter->data->bytes().data());
    return "data " + std::to_string(address) + " " + toString(node.result()->type());
  }
  std::string key = ir::opName(node.op()).str() + " " + std::to_string(node.numResults()) + " ";
  for (const ir::Arg &arg : node.args())
    appendKey(key, arg, numbers);
  return key;
}

} // namespace

Result<Changed> CsePass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireFunctional(graph));
  Numbers numbers;
  unsigned next = 1;
  std::map<std::string, ir::Node *> seen;
  ir::GraphRewriter rewriter(graph);
  for (ir::Node &node : llvm::make_early_inc_range(graph)) {
    bool candidate =
        node.kind() == ir::NodeKind::GetAttr ||
        (node.kind() == ir::NodeKind::CallFunction && !ir::hasTrait(node.op(), ir::kOpaque));
    ir::Node *first = candidate ? seen.emplace(keyOf(node, numbers), &node).first->second : &node;
    if (first == &node) {
      for (ir::Value &result : node.results())
        numbers[&result] = next++;
      continue;
    }
    for (unsigned i = 0; i < node.numResults(); ++i)
      rewriter.replaceAllUsesWith(node.result(i), first->result(i));
    rewriter.erase(&node);
  }
  return rewriter.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(CsePass)

} // namespace cgc::passes

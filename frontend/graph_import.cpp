// GraphImporter: imports nodes: attributes, calls, lists. Values are in graph_values.cpp, ops in
// ops/op_import.cpp, branches and loops in control_flow.cpp, mutation of lists in mutation.cpp,
// what depends on parameters alone in fixed_values.cpp.
#include "frontend/graph_import.h"

#include "frontend/ops/op_import.h"
#include "frontend/ops/torch_files.h"
#include "frontend/source_lines.h"
#include "frontend/torchscript_call.h"
#include "ir/op_def.h"

#include "llvm/ADT/STLExtras.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <sstream>

namespace cgc::frontend {

namespace prim = c10::prim;
using ir::Arg;
using ir::OpKind;
using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

constexpr unsigned kMaxDepth = 64; ///< Bounds the nesting of blocks and inlined functions.

/// Returns the path of a name in a module, as in "visual.conv1.forward".
std::string join(const std::string &module, const std::string &name) {
  return module.empty() ? name : module + "." + name;
}

/// Returns true if `value` is an object whose qualified class name begins with `prefix`.
bool isObject(const Value *value, llvm::StringRef prefix) {
  auto type = value->type()->cast<c10::ClassType>();
  return type && type->name() && llvm::StringRef(type->name()->qualifiedName()).starts_with(prefix);
}

bool switchesGradients(const Value *value) {
  return isObject(value, "__torch__.torch.autograd.grad_mode.");
}

bool isIdleContext(const Value *value) {
  return switchesGradients(value) ||
         isObject(value, "__torch__.torch.autograd.profiler.record_function");
}

/// Returns true if `node` belongs to `with torch.no_grad()`, `with record_function("…")` or a
/// similar context without effect on a plan for inference, which has a profiler of its own.
bool usesNoOpContext(const Node &node) {
  switch (node.kind()) {
  case prim::CreateObject:
    return isIdleContext(node.output());
  case prim::CallMethod:
  case prim::Enter:
  case prim::Exit:
    return isIdleContext(node.inputs()[0]);
  default:
    return false;
  }
}

/// Returns true if `node` creates or uses a CUDA stream or event.
bool usesStream(const Node &node) {
  auto isStream = [](const Value *value) {
    return isObject(value, "__torch__.torch.classes.cuda.");
  };
  return llvm::any_of(node.inputs(), isStream) || llvm::any_of(node.outputs(), isStream);
}

bool isTuple(const Value &value) {
  return value.type()->kind() == c10::TypeKind::TupleType;
}

Arg::List resultsOf(ir::Node &node) {
  Arg::List results;
  for (ir::Value &result : node.results())
    results.push_back(Arg(&result));
  return results;
}

/// Returns true if a caller can pass a value of `type`.
bool isTensorInput(const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return isTensorInput(optional->getElementType());
  return type->kind() == c10::TypeKind::TensorType || type->kind() == c10::TypeKind::NoneType;
}

} // namespace

void GraphImporter::import(torch::jit::Graph &source, const c10::FunctionSchema &schema,
                           Role role) {
  if (auto caller = state_.callers.find(join(path_, graph_.name())); caller != state_.callers.end())
    lastLine_ = caller->second;
  source_ = &source;
  varying_.insert(source.inputs().begin() + 1, source.inputs().end());
  // Input 0 is the module itself.
  submodules_.try_emplace(source.inputs()[0], Submodule{self_, ""});
  for (auto [input, argument] : llvm::drop_begin(llvm::zip(source.inputs(), schema.arguments()))) {
    ir::Node *node = graph_.placeholder(plainName(*input), {}, locOf(*source.param_node()));
    if (argument.default_value())
      if (std::optional<Arg> value = toConstant(*argument.default_value()))
        node->setArgs({std::move(*value)});
    args_[input] = node->result();
  }
  for (const Value *input : source.inputs().slice(1))
    if (role == Role::Entry && !isTensorInput(input->type()) &&
        args_.lookup(input).value()->node()->args().empty())
      refuseInput(*input);
  importBlock(*source.block());
  createOutput(std::as_const(source).outputs(), locOf(*source.return_node()));
}

const std::vector<std::string> *GraphImporter::namesOfOutputs(const std::string &method) const {
  if (!path_.empty())
    return nullptr;
  auto names = state_.outputNames.find(method);
  return names == state_.outputNames.end() ? nullptr : &names->second;
}

void GraphImporter::createOutput(c10::ArrayRef<const Value *> results, ir::Loc loc) {
  const std::vector<std::string> *names = namesOfOutputs(graph_.name());
  std::vector<Arg> outputs;
  for (const Value *result : results) {
    Arg output = arg(result);
    if (names && isTuple(*result)) {
      // readOutputNames() checked that the tuple has as many elements as there are names.
      outputs = output.isList()
                    ? output.list()
                    : resultsOf(*graph_.call(OpKind::PrimUnpack, {output},
                                             static_cast<unsigned>(names->size()), loc));
    } else if (result->type()->kind() != c10::TypeKind::NoneType) {
      outputs.push_back(asValue(std::move(output), loc));
    }
  }
  graph_.createOutput(std::move(outputs), loc);
  if (names)
    graph_.setOutputNames(*names);
}

void GraphImporter::refuseInput(const Value &input) {
  ir::Loc loc = locOf(*input.node());
  const std::string name = args_.lookup(&input).value()->name();
  // Nothing computed from it is reported again.
  args_[&input] =
      graph_
          .call(OpKind::PrimRefused,
                {Arg("input '" + name + "' of " + graph_.name() + " is of type " +
                     input.type()->annotation_str() +
                     "; cgc takes tensors only: give each tensor an argument of its own and make "
                     "numbers part of the model"),
                 Arg("")},
                1, std::move(loc))
          ->result();
}

void GraphImporter::refuseStream(const Node &node) {
  std::string what = node.kind().toQualString();
  if (node.kind() == prim::CallMethod && node.s(c10::attr::name) == "__init__")
    return; // CreateObject reported it.
  if (node.kind() == prim::CallMethod)
    what = node.s(c10::attr::name) + "() of a CUDA stream or event";
  else if (node.kind() == prim::CreateObject)
    what = "a CUDA stream or event";
  refuse(node, ir::explain("cgc cannot compile " + what, ir::Cause::DefaultStream),
         ir::Cause::DefaultStream);
}

void GraphImporter::refuseNoGrad(const Node &node) {
  refuse(node, "a step cannot switch gradients off for a part of its code, as no_grad() does: call "
               "detach() on what this part computes");
}

ir::Loc GraphImporter::locOf(const Node &node) {
  // An assignment to an attribute has no source line; the assigned value has one.
  const Node &source = node.kind() == prim::SetAttr ? *node.inputs()[1]->node() : node;
  std::vector<ir::Loc> frames = framesOf(source);
  auto users = llvm::find_if(frames, [](const ir::Loc &frame) { return !isTorchFile(frame.file); });
  ir::Loc loc;
  if (users != frames.end())
    loc = lastLine_ = *users;
  else if (!callSites_.empty())
    loc = callSites_.back();
  else if (lastLine_.isKnown())
    loc = lastLine_;
  else if (!frames.empty())
    loc = frames.front();
  loc.module = path_;
  return loc;
}

Arg GraphImporter::refuse(const Node &node, std::string reason, ir::Cause cause) {
  ir::Node *refused =
      graph_.call(OpKind::PrimRefused, {Arg(std::move(reason)), Arg(ir::textOf(cause).id.str())},
                  static_cast<unsigned>(node.outputs().size()), locOf(node));
  for (auto [output, result] : llvm::zip(node.outputs(), refused->results()))
    args_[output] = &result;
  return refused->numResults() == 0 ? Arg() : Arg(refused->result(0));
}

ir::Node *GraphImporter::emitFallback(const Node &node) {
  std::string target = node.kind().toQualString();
  Arg::List args;
  if (const c10::FunctionSchema *schema = node.maybeSchema()) {
    std::ostringstream text;
    text << *schema;
    target = text.str();
    for (const Value *input : node.inputs())
      if (!submodules_.count(input))
        args.push_back(arg(input));
  }
  ir::Node *result = graph_.call(OpKind::Fallback, {Arg(std::move(args))},
                                 static_cast<unsigned>(node.outputs().size()), locOf(node));
  result->setTarget(std::move(target));
  return result;
}

// Nodes

void GraphImporter::importBlock(const Block &block) {
  for (const Node *node : block.nodes())
    importNode(*node);
}

void GraphImporter::importNode(const Node &node) {
  c10::Symbol kind = node.kind();
  if (importFixed(node))
    return;
  if (kind == prim::Constant)
    return importConstant(node);
  if (kind == prim::GetAttr)
    return importGetAttr(node);
  if (usesStream(node))
    return refuseStream(node);
  if (state_.hasGradients && kind == prim::CreateObject && switchesGradients(node.output()))
    return refuseNoGrad(node);
  if (kind == prim::CallMethod && !usesNoOpContext(node))
    return importCallMethod(node);
  if (kind == prim::CallFunction)
    return importCallFunction(node);
  if (kind == prim::ListConstruct || kind == prim::TupleConstruct)
    return bind(node.output(), Arg(argsOf(node.inputs())));
  if (kind == prim::ListUnpack || kind == prim::TupleUnpack)
    return importUnpack(node);
  if (kind == prim::DictConstruct)
    return importDict(node);
  if (kind == prim::If)
    return importIf(node);
  if (kind == prim::Loop)
    return importLoop(node);
  // Affect only types.
  if (kind == prim::unchecked_cast || kind == c10::aten::_unwrap_optional)
    return bind(node.output(), arg(node.inputs()[0]));
  if (kind == prim::Uninitialized)
    return bind(node.output(), Arg());
  // Messages to the user, and contexts that switch gradients or profiling.
  if (kind == prim::Print || kind == c10::aten::warn || usesNoOpContext(node))
    return;
  if (kind == prim::RaiseException) {
    ir::Loc loc = locOf(node);
    graph_.call(OpKind::PrimRaise, {arg(node.inputs()[0])}, 0, std::move(loc));
    return;
  }
  if (importMutation(node))
    return;
  importOp(node);
}

void GraphImporter::importConstant(const Node &node) {
  if (node.output()->type()->kind() == c10::TypeKind::FunctionType)
    return; // CallFunction reads it from the type.
  std::optional<c10::IValue> value = torch::jit::toIValue(node.output());
  if (value && value->isTensor() && whyUnsupported(value->toTensor()).empty()) {
    tensorConstants_[node.output()] = value->toTensor();
    return;
  }
  bind(node.output(), importIValue(value.value_or(c10::IValue()), node));
}

void GraphImporter::importGetAttr(const Node &node) {
  auto owner = submodules_.find(node.input());
  if (owner == submodules_.end()) {
    refuse(node, "an attribute of an object that is not a module; keep its content in the module");
    return;
  }
  const std::string &name = node.s(c10::attr::name);
  std::string path = join(owner->second.path, name);
  c10::IValue value = owner->second.module.attr(name);
  if (value.isModule()) {
    submodules_.try_emplace(node.output(), Submodule{value.toModule(), path});
    return;
  }
  if (isObject(node.output(), "__torch__.torch.classes.quantized."))
    return bind(node.output(), Arg()); // Packed weights: the op that takes them is refused.
  if (!value.isTensor())
    return bind(node.output(), importIValue(value, node));
  const ir::Parameter *parameter = module_.findParameter(path);
  if (!parameter) {
    refuse(node, "'" + path + "' is " + whyUnsupported(value.toTensor()) +
                     ", which cgc does not support; convert it before the export");
    return;
  }
  bind(node.output(), graph_.getAttr(path, parameter->type, locOf(node))->result());
}

void GraphImporter::importCallMethod(const Node &node) {
  auto receiver = submodules_.find(node.inputs()[0]);
  if (receiver == submodules_.end()) {
    refuse(node, "a method of an object that is not a module; make it a function or a submodule");
    return;
  }
  const std::string &name = node.s(c10::attr::name);
  const torch::jit::Method method = receiver->second.module.get_method(name);
  // A trace gives a module no result if nothing reads it: dropout, or the pooler of an encoder.
  if (node.output()->type()->kind() == c10::TypeKind::NoneType) {
    if (!isPure(*method.graph()))
      refuse(node, "a call of '" + name +
                       "' that returns nothing but changes its arguments; return "
                       "the changed tensor instead");
    return bind(node.output(), Arg());
  }
  std::vector<Arg> args;
  for (const Value *input : node.inputs().slice(1)) {
    ir::Loc loc = locOf(node); // Before arg(), which may set lastLine_.
    args.push_back(asValue(arg(input), std::move(loc)));
  }
  const std::string &path = receiver->second.path;
  std::string target = join(path, name);
  if (ir::Loc loc = locOf(node); !isTorchFile(loc.file))
    state_.callers.try_emplace(join(path_, target), std::move(loc));
  const std::vector<std::string> *names = namesOfOutputs(target);
  if (names && isTuple(*node.output())) {
    ir::Node *call = graph_.callModule(target, std::move(args),
                                       static_cast<unsigned>(names->size()), locOf(node));
    return bind(node.output(), Arg(resultsOf(*call)));
  }
  bind(node.output(), graph_.callModule(target, std::move(args), 1, locOf(node))->result());
}

namespace {
/// Returns true for the functions of torch.nn.functional that refuse an input to normalize whose
/// channels have one element each, and do nothing else. They loop over the rank of the input, which
/// is not known here.
bool onlyChecksSizes(const torch::jit::Function &function) {
  const std::string name = function.qualname().qualifiedName();
  return name == "__torch__.torch.nn.functional._verify_batch_size" ||
         name == "__torch__.torch.nn.functional._verify_spatial_size";
}
} // namespace

void GraphImporter::importCallFunction(const Node &node) {
  auto type = node.inputs()[0]->type()->cast<c10::FunctionType>();
  if (!type || callSites_.size() >= kMaxDepth) {
    refuse(node, "a call of a function that is not known here");
    return;
  }
  if (onlyChecksSizes(*type->function())) {
    bind(node.output(), Arg());
    return;
  }
  const torch::jit::Graph &callee = *torch::jit::toGraphFunction(*type->function()).graph();
  for (auto [parameter, input] : llvm::zip(callee.inputs(), node.inputs().slice(1))) {
    // The function may have been called before: forget its earlier values.
    args_[parameter] = arg(input);
  }
  callSites_.push_back(locOf(node));
  importBlock(*callee.block());
  callSites_.pop_back();
  bind(node.output(), arg(callee.outputs()[0]));
}

void GraphImporter::importUnpack(const Node &node) {
  Arg list = arg(node.input());
  if (list.isList() && list.list().size() == node.outputs().size()) {
    for (auto [output, element] : llvm::zip(node.outputs(), list.list()))
      bind(output, element);
    return;
  }
  if (!list.isValue()) {
    refuse(node, "a list of another length is unpacked here");
    return;
  }
  ir::Node *unpack = graph_.call(OpKind::PrimUnpack, {std::move(list)},
                                 static_cast<unsigned>(node.outputs().size()), locOf(node));
  for (auto [output, result] : llvm::zip(node.outputs(), unpack->results()))
    bind(output, &result);
}

void GraphImporter::importDict(const Node &node) {
  Arg::List keys, values;
  for (size_t i = 0; i + 1 < node.inputs().size(); i += 2) {
    keys.push_back(arg(node.inputs()[i]));
    values.push_back(arg(node.inputs()[i + 1]));
  }
  bind(
      node.output(),
      graph_.call(OpKind::PrimDict, {Arg(std::move(keys)), Arg(std::move(values))}, 1, locOf(node))
          ->result());
}

void GraphImporter::importOp(const Node &node) {
  const c10::FunctionSchema *schema = node.maybeSchema();
  if (!schema || node.outputs().empty()) {
    ir::Node *fallback = emitFallback(node);
    for (auto [output, result] : llvm::zip(node.outputs(), fallback->results()))
      bind(output, &result);
    return;
  }
  TorchScriptCall call(*this, node, *schema);
  OpImporter::Results results = OpImporter(call).import();
  for (auto [output, result] : llvm::zip(node.outputs(), results))
    bind(output, std::move(result));
}

} // namespace cgc::frontend

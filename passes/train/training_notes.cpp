// training_notes: finds parameters without a gradient, and layers in evaluation mode.
#include "passes/train/training_notes.h"

#include "ir/op_def.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::OpKind;

/// The trained parameters of a module tree that a step does not write, by path.
class Unreached {
public:
  explicit Unreached(const ir::Graph &step) {
    const ir::Module &root = *step.owner();
    for (const std::string &path : step.stateWrites()) {
      written_.insert(path);
      tensors_.insert(root.findParameter(path)->data.get());
    }
    add(root, "");
  }

  const std::vector<std::string> &paths() const { return paths_; }

private:
  void add(const ir::Module &module, const std::string &prefix) {
    for (const ir::Parameter &parameter : module.parameters())
      if (parameter.kind == ir::Parameter::Kind::State && parameter.role == StateRole::Parameter &&
          !isWritten(parameter, prefix + parameter.name))
        paths_.push_back(prefix + parameter.name);
    for (const auto &submodule : module.submodules())
      add(*submodule, prefix + submodule->name() + ".");
  }

  /// A tied parameter is written under one of its names.
  bool isWritten(const ir::Parameter &parameter, const std::string &path) const {
    return written_.contains(path) || (parameter.data && tensors_.contains(parameter.data.get()));
  }

  llvm::StringSet<> written_;                      ///< Looked up, never iterated.
  llvm::DenseSet<const ir::TensorData *> tensors_; ///< Of them. Looked up, never iterated.
  std::vector<std::string> paths_;
};

/// Whether the call is one of a layer that is in evaluation mode, and would do something else in
/// training mode.
bool evaluates(const ir::Node &node) {
  if (node.kind() != ir::NodeKind::CallFunction)
    return false;
  if (node.is(OpKind::Dropout))
    return node.arg("train") == Arg(false) && node.arg("p").asNumber() != 0;
  return node.is(OpKind::BatchNorm) && node.arg("training") == Arg(false);
}

std::string count(size_t number, llvm::StringRef what) {
  return std::to_string(number) + " " + what.str() + (number == 1 ? "" : "s");
}

/// Empty if the model was exported in training mode.
std::string evaluationNote(const ir::Graph &method) {
  std::vector<const ir::Node *> nodes;
  for (const ir::Node &node : method)
    if (evaluates(node))
      nodes.push_back(&node);
  if (nodes.empty()) {
    const bool isEvaluated = llvm::any_of(method.owner()->attributes(), [](const auto &attribute) {
      return attribute.name == "training" && attribute.value == Arg(false);
    });
    return isEvaluated ? "the model was exported after eval(); if it does something else after "
                         "train(), call that before the export"
                       : "";
  }
  const size_t dropouts =
      llvm::count_if(nodes, [](const ir::Node *node) { return node->is(OpKind::Dropout); });
  const size_t norms = nodes.size() - dropouts;
  std::vector<std::string> layers;
  if (dropouts > 0)
    layers.push_back(count(dropouts, "dropout"));
  if (norms > 0)
    layers.push_back(count(norms, "batch norm"));
  return llvm::join(layers, " and ") + " of the model, the first at " +
         toString(nodes.front()->loc()) +
         ", were exported after eval(): dropout drops nothing, and batch norm keeps its "
         "statistics; call train() before the export, unless they are to be so";
}

} // namespace

std::vector<std::string> trainingNotes(const ir::Graph &method, const ir::Graph &step) {
  std::vector<std::string> notes;
  if (const std::string note = evaluationNote(method); !note.empty())
    notes.push_back(note);
  if (const Unreached unreached(step); !unreached.paths().empty())
    notes.push_back("no gradient reaches " + llvm::join(unreached.paths(), ", ") +
                    ": the step leaves " + (unreached.paths().size() == 1 ? "it" : "them") +
                    " as in the file, without weight decay");
  return notes;
}

} // namespace cgc::passes

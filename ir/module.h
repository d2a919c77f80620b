// Module: a tree of parameters, buffers, attributes and submodules, with one Graph for each method.
#pragma once

#include "ir/graph.h"
#include "runtime/base/state_role.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::ir {

/// A named tensor of a module. `data` is null in IR that was parsed from text, and for a state that
/// begins as zeros.
struct Parameter {
  enum class Kind : uint8_t {
    Parameter, ///< nn.Parameter.
    Buffer,    ///< Registered buffer, or a tensor attribute.
    Constant,  ///< Created by the frontend or a pass; has no name in the model.
    State,     ///< Mutable: a graph may write it (Graph::stateWrites). `data` is its first value.
               ///< Never a constant, and never merged with another one.
  };
  std::string name;
  Kind kind = Kind::Parameter;
  TensorType type;
  std::shared_ptr<const TensorData> data;
  StateRole role = StateRole::Parameter; ///< Of a state.
  std::optional<uint32_t> shard = {};    ///< Of a state: State::shard in a plan.
  /// Of a Constant: a parameter or buffer of the model in another dtype. The text form lacks it.
  bool isConverted = false;
  /// Whether the values are the model's own. Others may depend on the sizes of inputs.
  bool isOfModel() const { return kind != Kind::Constant || isConverted; }
};

/// A plain attribute of the original module (`training`, `num_heads`), for matching module
/// substitutions.
struct Attribute {
  std::string name;
  Arg value; ///< A constant.
};

class Module {
public:
  Module(std::string name, std::string className)
      : name_(std::move(name)), className_(std::move(className)) {}
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// The attribute name in the parent. The creator of a root chooses its name.
  const std::string &name() const { return name_; }
  /// The Python class, for example "VisionTransformer". A traced file keeps only the class name.
  const std::string &className() const { return className_; }
  Module *parent() const { return parent_; }
  /// Dotted path from the root; empty for the root.
  std::string path() const;

  // Children, in insertion order. Names are unique within each kind.
  const std::vector<std::unique_ptr<Module>> &submodules() const { return submodules_; }
  const std::vector<Parameter> &parameters() const { return parameters_; }
  const std::vector<Attribute> &attributes() const { return attributes_; }
  const std::vector<std::unique_ptr<Graph>> &graphs() const { return graphs_; }

  Module *addSubmodule(std::unique_ptr<Module> module);
  void addParameter(Parameter parameter);
  /// Sets the bytes of this module's parameter `name`, which must exist. For IR parsed from text.
  void setParameterData(llvm::StringRef name, std::shared_ptr<const TensorData> data);
  /// Makes the parameter `path`, which must exist below this module, a state with this role. A
  /// state stays as it is.
  void makeState(llvm::StringRef path, StateRole role);
  /// Puts the state `path`, which must exist below this module, into a shard.
  void setShard(llvm::StringRef path, uint32_t shard);
  void addAttribute(Attribute attribute);
  Graph *addGraph(std::unique_ptr<Graph> graph);
  /// Adds a Constant named after `hint`, made unique, and returns its name. `isConverted`: as in
  /// Parameter.
  std::string addConstant(llvm::StringRef hint, std::shared_ptr<const TensorData> data,
                          bool isConverted = false);
  void removeGraph(llvm::StringRef name);

  /// Returns null if there is no such submodule or graph.
  Module *findSubmodule(llvm::StringRef name) const;
  Graph *findGraph(llvm::StringRef name) const;
  /// Finds a parameter by its dotted path relative to this module, as in "conv1.weight". Null if
  /// there is none.
  const Parameter *findParameter(llvm::StringRef path) const;
  /// Splits `a.b.forward` into the submodule `a.b` and the name `forward`. The module is null if a
  /// path component is missing.
  std::pair<Module *, llvm::StringRef> resolve(llvm::StringRef target) const;

private:
  std::string name_, className_;
  Module *parent_ = nullptr;
  std::vector<std::unique_ptr<Module>> submodules_;
  std::vector<Parameter> parameters_;
  std::vector<Attribute> attributes_;
  std::vector<std::unique_ptr<Graph>> graphs_;
};

} // namespace cgc::ir

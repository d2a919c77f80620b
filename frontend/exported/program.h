// Program: what models/model.json of a .pt2 archive says, checked and in C++ types.
#pragma once

#include "ir/arg.h"
#include "ir/input_shapes.h"
#include "runtime/base/status.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cgc::exported {

/// An argument or a result of a node.
struct Argument {
  /// A value of the graph: a result of a node, or an input.
  struct Name {
    std::string name;
    bool isTensor = false;
  };
  /// Something that cgc does not have, such as a complex number.
  struct Refused {
    std::string reason;
  };
  using List = std::vector<Argument>;
  /// A constant is an ir::Arg without values.
  std::variant<ir::Arg, Name, List, Refused> value;

  /// Calls `fn` for each name in the argument, those in lists included.
  template <class Fn> void forEachName(Fn &&fn) const {
    if (const auto *name = std::get_if<Name>(&value))
      fn(*name);
    else if (const auto *list = std::get_if<List>(&value))
      for (const Argument &element : *list)
        element.forEachName(fn);
  }
};

struct NamedArgument {
  std::string name; ///< By the schema of the op.
  Argument argument;
};

/// A module in which a node ran.
struct ModuleCall {
  std::string key;       ///< Differs for each call of a module that is called again.
  std::string path;      ///< Dotted; empty for the root.
  std::string className; ///< Without its Python module: "VisionTransformer".
};

struct Node {
  std::string target; ///< "torch.ops.aten.add.Tensor", "_operator.mul".
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::vector<ModuleCall> modules; ///< Outermost first.
  std::string stackTrace;          ///< Python's frames, the innermost last.
};

/// An input of the graph.
struct InputSpec {
  enum class Kind {
    User,     ///< An argument of the program.
    Constant, ///< An argument of the program that was a constant, which it stays.
    Tensor,   ///< The parameter, buffer or constant `target`.
  };
  Kind kind = Kind::User;
  Argument argument;
  std::string name; ///< Of a User: what the model calls it.
  std::string target;
  std::string place;       ///< The path of a Tensor in the module that is made of the program.
  bool isConstant = false; ///< Of a Tensor: it has no name in the model.
};

/// An output of the graph.
struct OutputSpec {
  enum class Kind { User, BufferMutation };
  Kind kind = Kind::User;
  Argument argument;
  std::string target; ///< The buffer.
};

/// The type of a tensor.
struct TensorMeta {
  std::optional<DType> dtype; ///< None: one that cgc does not have.
  std::string dtypeName;      ///< For messages.
  bool isStrided = true;      ///< Its layout is neither sparse nor another one.
  bool requiresGrad = false;
  std::vector<std::optional<ir::LinearSize>> sizes; ///< None: no linear function of a symbol.
  std::vector<std::optional<int64_t>> hints;        ///< The sizes while the program was exported.
  std::vector<std::optional<ir::LinearSize>> strides;
  std::optional<ir::LinearSize> offset; ///< In elements, from the begin of the storage.
};

/// The structure of the program's arguments or of its result. A leaf has no elements and stands for
/// one input or output.
struct ValueTree {
  bool isLeaf = true;
  std::vector<std::string> keys; ///< Of a dict, one for each element.
  std::vector<ValueTree> elements;
};

struct Program {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<Node> nodes;
  llvm::StringMap<TensorMeta> tensors; ///< By the name of the value. Never iterated.
  llvm::StringMap<ir::InputShapes::Range> ranges;
  std::vector<std::string> guards; ///< Conditions on the sizes of inputs, in Python.
  ValueTree outputTree;
};

/// Parses the text of models/model.json. InvalidFile if it is no such text, if its schema is of
/// another major version than 8, or if the program has inputs or outputs of a kind that cgc does
/// not have.
Result<Program> parseProgram(std::string_view text);

/// Of the members data/weights/model_weights_config.json and its kin.
struct Payload {
  std::string name; ///< Of the weight: "visual.conv1.weight".
  std::string file; ///< The member, without its folder: "weight_3".
  bool isParameter = false, isPickled = false;
  std::optional<TensorMeta> meta;
};
Result<std::vector<Payload>> parsePayloads(std::string_view text);

} // namespace cgc::exported

// importExported: reads program and weights, then imports the program scope by scope.
#include "frontend/exported/exported.h"

#include "frontend/exported/archive.h"
#include "frontend/exported/module_tree.h"
#include "frontend/exported/program.h"
#include "frontend/exported/scope_import.h"
#include "frontend/exported/weights.h"
#include "runtime/base/printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

namespace cgc::exported {
namespace {

using ir::Parameter;

Status refuseInput(const std::string &name, const std::string &what) {
  return Status(Code::Unsupported, "input '" + printable(name) + "' is " + what);
}

/// The dtypes and sizes of the arguments of the program.
Result<ir::InputShapes> shapesOf(const Program &program) {
  ir::InputShapes shapes;
  shapes.ranges = program.ranges;
  shapes.guards = program.guards;
  for (const InputSpec &input : program.inputs) {
    const auto *name = std::get_if<Argument::Name>(&input.argument.value);
    if (input.kind != InputSpec::Kind::User || !name)
      continue;
    const auto meta = program.tensors.find(name->name);
    if (!name->isTensor || meta == program.tensors.end())
      return refuseInput(input.name, "a number that the caller chooses; cgc takes tensors only: "
                                     "export the model with a constant there");
    if (!meta->second.dtype)
      return refuseInput(input.name, "a " + meta->second.dtypeName +
                                         " tensor, which cgc does not have; convert it before the "
                                         "export");
    ir::InputShape shape{input.name, *meta->second.dtype, {}, {}};
    for (const auto &[dim, size] : llvm::enumerate(meta->second.sizes)) {
      if (!size)
        return refuseInput(input.name, "of a size in dimension " + std::to_string(dim) +
                                           " that is no multiple of one symbol plus a number; "
                                           "export the model with a torch.export.Dim there");
      shape.sizes.push_back(*size);
      shape.example.push_back(meta->second.hints[dim].value_or(size->offset));
    }
    shapes.inputs.push_back(std::move(shape));
  }
  return shapes;
}

/// Counts the leaves of a tree.
size_t leavesOf(const ValueTree &tree) {
  size_t count = tree.isLeaf;
  for (const ValueTree &element : tree.elements)
    count += leavesOf(element);
  return count;
}

/// Gives each changed buffer its new value by an op of its own, as a program has it that torch did
/// not make functional.
void writeBuffers(Program &program) {
  for (const OutputSpec &output : program.outputs) {
    if (output.kind != OutputSpec::Kind::BufferMutation)
      continue;
    const auto buffer = llvm::find_if(program.inputs, [&](const InputSpec &input) {
      return input.kind == InputSpec::Kind::Tensor && input.target == output.target;
    });
    if (buffer == program.inputs.end())
      continue;
    Node copy;
    copy.target = "torch.ops.aten.copy_.default";
    copy.inputs.push_back({"self", buffer->argument});
    copy.inputs.push_back({"src", output.argument});
    const std::string name = "new_" + std::to_string(program.nodes.size()) + "." + output.target;
    copy.outputs.push_back({Argument::Name{name, true}});
    program.nodes.push_back(std::move(copy));
  }
}

bool areEqual(const ir::TensorData &a, const ir::TensorData &b) {
  return a.type() == b.type() && a.bytes() == b.bytes();
}

bool isIdentifier(llvm::StringRef text) {
  const auto isOfWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !text.empty() && !llvm::isDigit(text[0]) && llvm::all_of(text, isOfWord);
}

/// The name of a method that `path` gives; empty if its name has other characters than those of an
/// identifier.
std::string methodOf(llvm::StringRef path) {
  const llvm::StringRef stem = llvm::sys::path::stem(path);
  return isIdentifier(stem) ? stem.str() : "";
}

/// A file that is being imported.
struct Source {
  Program program;
  Weights weights;
};

Result<Source> readSource(const Archive &archive) {
  CGC_ASSIGN_OR_RETURN(const std::string name, archive.programName());
  const std::string member = "models/" + name + ".json";
  CGC_ASSIGN_OR_RETURN(const auto text, archive.read(member));
  auto program = parseProgram({reinterpret_cast<const char *>(text->data()), text->size()});
  if (!program.isOk())
    return program.status().withContext(member);
  const auto isUser = [](const OutputSpec &output) {
    return output.kind == OutputSpec::Kind::User;
  };
  if (leavesOf(program->outputTree) !=
      static_cast<size_t>(llvm::count_if(program->outputs, isUser)))
    return Status(Code::InvalidFile, member + ": the program has other outputs than its signature "
                                              "says; export the model again");
  writeBuffers(*program);
  CGC_ASSIGN_OR_RETURN(Weights weights, Weights::open(archive, name));
  return Source{*std::move(program), std::move(weights)};
}

class Importer {
public:
  explicit Importer(frontend::ImportFor purpose)
      : isTraining_(purpose == frontend::ImportFor::Training) {}

  /// Adds the program in the file at `path` as a method.
  Status add(const std::string &path, const std::string &method) {
    CGC_ASSIGN_OR_RETURN(const Archive archive, Archive::open(path));
    auto source = readSource(archive);
    const Status status = source.isOk() ? add(*source, method) : source.status();
    return status.isOk() ? status : status.withContext(path);
  }

  ExportedModule take() { return {tree_.take(), std::move(shapes_)}; }

private:
  Status add(Source &source, const std::string &method) {
    auto &[program, weights] = source;
    CGC_ASSIGN_OR_RETURN(shapes_[method], shapesOf(program));
    CGC_ASSIGN_OR_RETURN(const ValueUses uses, ValueUses::of(program));
    CGC_TRY(place(source, method));
    tree_.add(program);
    ImportState state{program, uses};
    for (const InputSpec &input : program.inputs)
      CGC_TRY(addInput(input, weights, state));
    ir::Graph &graph = *tree_.root().addGraph(std::make_unique<ir::Graph>(method));
    const Scope scope = findScopes(program.nodes);
    ScopeImporter(state, scope, tree_.root(), graph).importRoot();
    return Status::ok();
  }

  /// Whether another program has other values at the place of a weight.
  Result<bool> isTaken(const InputSpec &input, Weights &weights) {
    const Parameter *other = tree_.root().findParameter(input.place);
    if (!other)
      return false;
    CGC_ASSIGN_OR_RETURN(const Weight weight, weights.get(input.target));
    return !weight.data || !areEqual(*weight.data, *other->data);
  }

  /// Gives a program behind the first one places for its modules, weights and constants.
  Status place(Source &source, const std::string &method) {
    auto &[program, weights] = source;
    if (!tree_.hasRoot())
      return Status::ok();
    bool isApart = false;
    for (InputSpec &input : program.inputs) {
      if (input.kind != InputSpec::Kind::Tensor)
        continue;
      CGC_ASSIGN_OR_RETURN(bool taken, isTaken(input, weights));
      isApart |= taken && !input.isConstant;
      while (taken && input.isConstant) { // The names of constants are torch's own.
        input.place += "_" + method;
        CGC_ASSIGN_OR_RETURN(taken, isTaken(input, weights));
      }
    }
    if (!isApart)
      return Status::ok();
    std::string folder = method;
    while (tree_.root().findSubmodule(folder))
      folder += "_";
    for (InputSpec &input : program.inputs)
      if (input.kind == InputSpec::Kind::Tensor)
        input.place = folder + "." + input.place;
    for (Node &node : program.nodes)
      for (ModuleCall &call : node.modules)
        call.path = call.path.empty() ? folder : folder + "." + call.path;
    return Status::ok();
  }

  Status addInput(const InputSpec &input, Weights &weights, ImportState &state) {
    const auto *name = std::get_if<Argument::Name>(&input.argument.value);
    if (input.kind != InputSpec::Kind::Tensor || !name)
      return Status::ok();
    CGC_ASSIGN_OR_RETURN(Weight weight, weights.get(input.target));
    if (weight.refusal.empty())
      CGC_TRY(addParameter(input, weight));
    state.weights[name->name] = {input.place, weight.data ? weight.data->type() : ir::TensorType(),
                                 weight.refusal};
    return Status::ok();
  }

  Status addParameter(const InputSpec &input, const Weight &weight) {
    const auto [path, name] = llvm::StringRef(input.place).rsplit('.');
    ir::Module *module = name.empty() ? &tree_.root() : tree_.at(path);
    if (!module)
      return Status(Code::InvalidFile, "the weight '" + printable(input.target) +
                                           "' is nested too deep; export the model again");
    if (tree_.root().findParameter(input.place))
      return Status::ok();
    using Kind = Parameter::Kind;
    // A frozen parameter is a state, too, so that checkpoints have it.
    const bool isTrained = weight.isParameter && weight.requiresGrad;
    const Kind kind = input.isConstant                    ? Kind::Constant
                      : isTraining_ && weight.isParameter ? Kind::State
                      : weight.isParameter                ? Kind::Parameter
                                                          : Kind::Buffer;
    module->addParameter({name.empty() ? path.str() : name.str(), kind, weight.data->type(),
                          weight.data, isTrained ? StateRole::Parameter : StateRole::Buffer});
    return Status::ok();
  }

  bool isTraining_;
  ModuleTree tree_;
  ir::ShapesOfMethods shapes_;
};

} // namespace

Result<ExportedModule> importExported(llvm::ArrayRef<std::string> paths,
                                      frontend::ImportFor purpose, const std::string &onlyMethod) {
  if (!isIdentifier(onlyMethod))
    return Status(Code::Usage, "'" + printable(onlyMethod) +
                                   "' is no name of a method; give an "
                                   "identifier, as encode_image");
  Importer importer(purpose);
  llvm::StringMap<std::string> files; // By method. Never iterated.
  for (const std::string &path : paths) {
    const std::string method = paths.size() == 1 ? onlyMethod : methodOf(path);
    if (method.empty())
      return Status(Code::Usage, path + ": the name of a file becomes that of a method, and this "
                                        "one is no identifier; rename the file, as image.pt2");
    const auto [other, isNew] = files.try_emplace(method, path);
    if (!isNew)
      return Status(Code::Usage, path + ": '" + method + "' is the name of another file too, " +
                                     other->second + "; rename one, since it names the method");
    CGC_TRY(importer.add(path, method));
  }
  return importer.take();
}

} // namespace cgc::exported

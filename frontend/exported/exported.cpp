// importExported: reads program and weights, then imports the program scope by scope.
#include "frontend/exported/exported.h"

#include "frontend/exported/archive.h"
#include "frontend/exported/module_tree.h"
#include "frontend/exported/program.h"
#include "frontend/exported/scope_import.h"
#include "frontend/exported/weights.h"
#include "runtime/base/printable.h"

#include "llvm/ADT/STLExtras.h"

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
  for (const InputSpec &input : program.inputs) {
    const auto *name = std::get_if<Argument::Name>(&input.argument.value);
    if (input.kind != InputSpec::Kind::User || !name)
      continue;
    const auto meta = program.tensors.find(name->name);
    if (!name->isTensor || meta == program.tensors.end())
      return refuseInput(name->name, "a number that the caller chooses; cgc takes tensors only: "
                                     "export the model with a constant there");
    if (!meta->second.dtype)
      return refuseInput(name->name, "a " + meta->second.dtypeName +
                                         " tensor, which cgc does not have; convert it before the "
                                         "export");
    ir::InputShape shape{name->name, *meta->second.dtype, {}, {}};
    for (const auto &[dim, size] : llvm::enumerate(meta->second.sizes)) {
      if (!size)
        return refuseInput(name->name, "of a size in dimension " + std::to_string(dim) +
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
size_t leavesOf(const OutputTree &tree) {
  size_t count = tree.isLeaf;
  for (const OutputTree &element : tree.elements)
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

class Importer {
public:
  Importer(Program program, Weights weights, frontend::ImportFor purpose)
      : program_(std::move(program)), weights_(std::move(weights)), tree_(program_),
        isTraining_(purpose == frontend::ImportFor::Training) {}

  Result<ExportedModule> import() {
    CGC_ASSIGN_OR_RETURN(ir::InputShapes shapes, shapesOf(program_));
    CGC_ASSIGN_OR_RETURN(const ValueUses uses, ValueUses::of(program_));
    ImportState state{program_, uses};
    for (const InputSpec &input : program_.inputs)
      CGC_TRY(addInput(input, state));
    ir::Graph &forward = *tree_.root().addGraph(std::make_unique<ir::Graph>("forward"));
    const Scope scope = findScopes(program_.nodes);
    ScopeImporter(state, scope, tree_.root(), forward).importRoot();
    return ExportedModule{tree_.take(), std::move(shapes)};
  }

private:
  Status addInput(const InputSpec &input, ImportState &state) {
    const auto *name = std::get_if<Argument::Name>(&input.argument.value);
    if (input.kind != InputSpec::Kind::Tensor || !name)
      return Status::ok();
    CGC_ASSIGN_OR_RETURN(Weight weight, weights_.get(input.target));
    if (weight.refusal.empty())
      CGC_TRY(addParameter(input, weight));
    state.weights[name->name] = {input.target, weight.data ? weight.data->type() : ir::TensorType(),
                                 weight.refusal};
    return Status::ok();
  }

  Status addParameter(const InputSpec &input, const Weight &weight) {
    const auto [path, name] = llvm::StringRef(input.target).rsplit('.');
    ir::Module *module = name.empty() ? &tree_.root() : tree_.at(path);
    if (!module)
      return Status(Code::InvalidFile, "the weight '" + printable(input.target) +
                                           "' is nested too deep; export the model again");
    if (tree_.root().findParameter(input.target))
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

  Program program_;
  Weights weights_;
  ModuleTree tree_;
  bool isTraining_;
};

Result<ExportedModule> import(const Archive &archive, frontend::ImportFor purpose) {
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
  return Importer(*std::move(program), std::move(weights), purpose).import();
}

} // namespace

Result<ExportedModule> importExported(const std::string &path, frontend::ImportFor purpose) {
  CGC_ASSIGN_OR_RETURN(const Archive archive, Archive::open(path));
  auto imported = import(archive, purpose);
  if (!imported.isOk())
    return imported.status().withContext(path);
  return imported;
}

} // namespace cgc::exported

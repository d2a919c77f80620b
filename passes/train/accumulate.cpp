// accumulate: sums gradients of micro-batches in states, and computes their mean.
#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"
#include "passes/train/differentiate.h"
#include "runtime/base/training_names.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// With mode=first or mode=next, after `differentiate`: the outputs `gradient.<path>` become new
/// values of states `<path>:gradient`; the loss, which is the first output, and the number of
/// micro-batches become those of control states. `first` overwrites these states, `next` adds to
/// them. With mode=mean, in a graph without nodes: adds the mean loss and the mean gradients of the
/// micro-batches as outputs, as `differentiate` would, and sets the number of micro-batches to 0.
/// Usage if there are no gradients.
struct AccumulatePass {
  static constexpr const char *name = "accumulate";
  static constexpr bool isRequired = true;
  enum class Mode : uint8_t { First, Next, Mean };
  /// Option: mode, first (the default), next or mean.
  static Result<AccumulatePass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  Mode mode = Mode::First;
};

namespace {

using ir::Arg;
using ir::OpKind;
using ir::Value;

Status noGradients() {
  return {Code::Usage, "there are no gradients to accumulate: run the pass 'differentiate' first"};
}

class Accumulation {
public:
  Accumulation(ir::Graph &graph, DeviceKind device)
      : graph_(graph), device_(device), rewriter_(graph), output_(graph.output()) {}

  /// The sums after a micro-batch, as new values of the states.
  Status sum(bool isFirst) {
    std::vector<Arg> outputs;
    std::vector<std::string> names;
    const std::vector<Arg> all = graph_.outputs().vec();
    if (all.size() != graph_.outputNames().size() || all.empty())
      return noGradients();
    const auto write = [&](const std::string &path, StateRole role, Value *value) {
      addState(path, role, value->tensor());
      if (!isFirst)
        value = create(OpKind::Add, {read(path), value, 1}, *value->node());
      graph_.addStateWrite(path, value);
    };
    for (const auto &[output, name] : llvm::zip_equal(all, graph_.outputNames())) {
      const llvm::StringRef path = gradientPath(name);
      if (path.empty()) {
        outputs.push_back(output);
        names.push_back(name);
        continue;
      }
      write(path.str() + kGradientSuffix, StateRole::Gradient, output.value());
    }
    if (outputs.size() == all.size())
      return noGradients();
    Value *value = all.front().value();
    const ir::Node &root = *value->node();
    if (value->tensor().dtype != DType::F64)
      value = create(OpKind::To, {value, DType::F32}, root);
    write(kLossSumState, StateRole::Control, value);
    write(kMicroBatchesState, StateRole::Control,
          create(OpKind::Full, {Arg::ints(ir::Dims()), 1, DType::I64}, root));
    graph_.setOutputs(std::move(outputs), std::move(names));
    return Status::ok();
  }

  /// The means, as outputs.
  Status mean() {
    std::vector<std::string> paths;
    addGradientPaths(*graph_.owner(), "", paths);
    if (paths.empty())
      return noGradients();
    Value *count = read(kMicroBatchesState);
    const ir::Node &root = *count->node();
    if (graph_.owner()->findParameter(kLossScaleState))
      read(kLossScaleState); // `optimize` finds the scale of the gradients by it.
    Value *divisor = create(OpKind::To, {count, DType::F32}, root);
    std::vector<Arg> outputs = {create(OpKind::Div, {read(kLossSumState), divisor}, root)};
    std::vector<std::string> names = {"loss"};
    for (const std::string &path : paths) {
      read(path); // The pass `optimize` updates what the graph reads.
      outputs.emplace_back(create(OpKind::Div, {read(path + kGradientSuffix), divisor}, root));
      names.push_back(gradientName(path));
    }
    graph_.addStateWrite(kMicroBatchesState,
                         create(OpKind::Full, {Arg::ints(ir::Dims()), 0, DType::I64}, root));
    graph_.setOutputs(std::move(outputs), std::move(names));
    return Status::ok();
  }

private:
  Value *create(OpKind op, std::vector<Arg> args, const ir::Node &root) {
    const ir::Schema &schema = ir::opSchema(op);
    for (size_t i = args.size(); i < schema.args.size(); ++i)
      args.push_back(*schema.args[i].defaultValue);
    return rewriter_.create(op, std::move(args), root, output_)->result();
  }

  /// A read of a state of the owning module.
  Value *read(const std::string &path) {
    ir::TensorType type = graph_.owner()->findParameter(path)->type;
    type.device = device_;
    return graph_.getAttr(path, std::move(type), ir::Loc::unknown(), output_)->result();
  }

  /// Adds a state of zeros to the owning module, if the graph of another entry has not added it
  /// yet.
  void addState(const std::string &path, StateRole role, const ir::TensorType &type) {
    auto [module, name] = graph_.owner()->resolve(path);
    if (!module->findParameter(name))
      module->addParameter({name.str(), ir::Parameter::Kind::State,
                            ir::TensorType::dense(type.dtype, type.sizes), nullptr, role});
  }

  static void addGradientPaths(const ir::Module &module, const std::string &prefix,
                               std::vector<std::string> &paths) {
    for (const ir::Parameter &parameter : module.parameters())
      if (parameter.kind == ir::Parameter::Kind::State && parameter.role == StateRole::Gradient) {
        llvm::StringRef name = parameter.name;
        name.consume_back(kGradientSuffix);
        paths.push_back(prefix + name.str());
      }
    for (const auto &submodule : module.submodules())
      addGradientPaths(*submodule, prefix + submodule->name() + ".", paths);
  }

  ir::Graph &graph_;
  const DeviceKind device_;
  ir::GraphRewriter rewriter_;
  ir::Node *output_;
};

} // namespace

Result<AccumulatePass> AccumulatePass::create(PassOptions &options) {
  AccumulatePass pass;
  CGC_ASSIGN_OR_RETURN(const auto mode, options.takeOneOf("mode", {"first", "next", "mean"}));
  pass.mode = mode == "mean" ? Mode::Mean : mode == "next" ? Mode::Next : Mode::First;
  return pass;
}

Result<Changed> AccumulatePass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  Accumulation accumulation(graph, context.target);
  CGC_TRY(mode == Mode::Mean ? accumulation.mean() : accumulation.sum(mode == Mode::First));
  return Changed::Yes;
}

CGC_DEFINE_PASS(AccumulatePass)

} // namespace cgc::passes

// lower(): turns specialized graphs into a plan. A view's result shares its argument's memory;
// every other op adds records by its lowering.
#include "backend/backend.h"

#include "backend/bucket_builder.h"
#include "backend/index_bounds.h"
#include "backend/lowering.h"
#include "backend/pointwise.h"
#include "backend/row_statistics.h"
#include "backend/schedule_detached.h"
#include "backend/time_model.h"
#include "ir/decompose.h"
#include "ir/op_def.h"
#include "runtime/base/check.h"
#include "runtime/base/training_names.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/plan_file.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

namespace cgc::backend {
namespace {

/// Usage, listing every node that an earlier pass should have removed or typed, if the pipeline
/// left out a required pass.
Status checkForm(std::span<const EntryBucket> buckets) {
  ir::Diagnostics left;
  for (const EntryBucket &bucket : buckets) {
    for (const ir::Node &node : *bucket.graph)
      if (node.kind() == ir::NodeKind::CallModule)
        left.error(node, "a call of a submodule has no lowering: run the pass 'inline' first");
      else if (node.kind() == ir::NodeKind::CallFunction &&
               lowering(node.op()).kind == Lowering::Kind::Host)
        left.error(node, "a host op has no lowering: run the pass 'specialize' first");
      else if (node.isInPlace())
        left.error(node, "an in-place op has no lowering: run the pass 'canonicalize' first");
      else
        for (const ir::Value &result : node.results())
          if (!result.isTensor() && (node.kind() == ir::NodeKind::Placeholder || result.hasUsers()))
            left.error(node, "the type of %" + result.name() +
                                 " is not known: run the pass 'specialize' first");
  }
  return left.toStatus(Code::Usage);
}

/// Lowers the graph of one bucket. Stops at the first node that it cannot lower and reports that
/// node to `diagnostics`.
class BucketLowering {
public:
  BucketLowering(const ir::Graph &graph, BucketBuilder &builder, ir::Diagnostics &diagnostics)
      : graph_(graph), builder_(builder), diagnostics_(diagnostics) {}

  void run() {
    for (const ir::Node &node : graph_) {
      builder_.beginNode(node);
      if (Status status = lower(node); !status.isOk())
        return diagnostics_.error(node, status.message());
    }
  }

private:
  Status lower(const ir::Node &node) {
    switch (node.kind()) {
    case ir::NodeKind::Placeholder:
      return lowerPlaceholder(node);
    case ir::NodeKind::GetAttr:
      return lowerGetAttr(node);
    case ir::NodeKind::CallFunction:
      return lowerCall(node);
    case ir::NodeKind::Output:
      return lowerOutput();
    case ir::NodeKind::CallModule:
      break;
    }
    llvm_unreachable("checkForm() refuses module calls");
  }

  Status lowerPlaceholder(const ir::Node &node) {
    const ir::Value &value = *node.result();
    if (!value.tensor().isContiguous())
      return {Code::Unsupported,
              "input '" + value.name() + "' is strided: inputs have to be dense"};
    builder_.addInput(value);
    return Status::ok();
  }

  Status lowerGetAttr(const ir::Node &node) {
    const ir::Module *owner = graph_.owner();
    const ir::Parameter *parameter = owner ? owner->findParameter(node.target()) : nullptr;
    if (!parameter)
      return {Code::Unsupported, "there is no parameter '" + node.target() + "'"};
    const ir::Value &value = *node.result();
    if (!value.isTensor())
      return Status::ok(); // Unused: checkForm() refuses a used value without a type.
    if (parameter->kind == ir::Parameter::Kind::State) {
      if (!value.tensor().isContiguous())
        return {Code::Unsupported, "state '" + node.target() + "' is strided: states are dense"};
      if (pathOf(node.target()) == kNotesName)
        return {Code::Unsupported, "state '" + node.target() +
                                       "' has the name that checkpoints keep for their notes: "
                                       "rename it in the model"};
      builder_.addState(value, pathOf(node.target()), *parameter);
      return Status::ok();
    }
    if (!parameter->data)
      return {Code::Unsupported,
              "parameter '" + node.target() +
                  "' has no data: IR text holds none; compile the model's own file"};
    if (parameter->data->type().sizes != value.tensor().sizes ||
        parameter->data->type().dtype != value.tensor().dtype || !value.tensor().isContiguous())
      return {Code::Unsupported, "parameter '" + node.target() + "' is " +
                                     toString(parameter->data->type()) + ", its value " +
                                     toString(value.tensor())};
    builder_.addWeight(value, pathOf(node.target()), *parameter);
    return Status::ok();
  }

  /// The path from the root of a parameter of the graph's owner.
  std::string pathOf(const std::string &target) const {
    const std::string owner = graph_.owner()->path();
    return owner.empty() ? target : owner + "." + target;
  }

  Status lowerCall(const ir::Node &node) {
    CGC_TRY(placeResults(node));
    noteShiftedIndex(node, builder_);
    return Status::ok();
  }

  /// Adds the records of a call and places its results.
  Status placeResults(const ir::Node &node) {
    if (ir::hasTrait(node.op(), ir::kView)) {
      CGC_ASSIGN_OR_RETURN(bool placed, placeView(node));
      if (placed)
        return Status::ok();
    }
    boundIndices(node, builder_);
    if (launchPointwise(node, builder_))
      return Status::ok();
    const Lowering &row = lowering(node.op());
    switch (row.kind) {
    case Lowering::Kind::Special:
      return row.special(node, builder_);
    case Lowering::Kind::Defined:
      return launchOrLowerDefinition(node, row);
    case Lowering::Kind::Into:
    case Lowering::Kind::Copied:
      return lowerRow(node, row);
    case Lowering::Kind::View:
      return {Code::Unsupported, "the result cannot be a view of its argument"};
    case Lowering::Kind::Host:
      break;
    }
    llvm_unreachable("checkForm() refuses host ops");
  }

  Status launchOrLowerDefinition(const ir::Node &node, const Lowering &row) {
    if (row.launch) {
      const BucketBuilder::Mark mark = builder_.mark();
      CGC_ASSIGN_OR_RETURN(const bool isLaunched, row.launch(node, builder_));
      if (isLaunched)
        return Status::ok();
      builder_.undo(mark); // Such as copies of operands.
    }
    return lowerDefinition(node);
  }

  /// Lowers the ops that define `node`.
  Status lowerDefinition(const ir::Node &node) {
    CGC_ASSIGN_OR_RETURN(ir::Definition definition, ir::definitionOf(node));
    const ir::Graph &graph = *definitions_.emplace_back(std::move(definition.graph));
    for (auto [input, operand] : llvm::zip_equal(graph.inputs(), definition.operands))
      if (builder_.isPlaced(operand)) // Row statistics may have no place.
        builder_.setPlace(input, builder_.place(operand));
    // Row statistics that no reader needs are not computed, unless a kernel does it by the way.
    llvm::DenseSet<const ir::Value *> needed; // Looked up, never iterated.
    for (auto [output, result] : llvm::zip_equal(graph.outputs(), node.results())) {
      if (!output.isValue())
        continue;
      builder_.noteResult(output.value(), &result);
      if (!isDispensable(result, node, builder_))
        needed.insert(output.value());
    }
    llvm::SmallVector<const ir::Node *> calls;
    for (const ir::Node &call : llvm::reverse(graph))
      if (call.kind() == ir::NodeKind::CallFunction &&
          llvm::any_of(call.results(), [&](const ir::Value &v) { return needed.contains(&v); })) {
        call.forEachInput([&](ir::Value *value) { needed.insert(value); });
        calls.push_back(&call);
      }
    for (const ir::Node *call : llvm::reverse(calls))
      CGC_TRY(lowerCall(*call));
    for (auto [output, result] : llvm::zip_equal(graph.outputs(), node.results()))
      if (output.isValue() && builder_.isPlaced(output.value()))
        builder_.setPlace(&result, builder_.place(output.value()));
    return Status::ok();
  }

  /// Places the results in the memory of the argument that they view. Returns false if a result
  /// needs memory of its own.
  Result<bool> placeView(const ir::Node &node) {
    const Place base = builder_.place(ir::aliasedArg(node).value());
    CGC_ASSIGN_OR_RETURN(auto places, viewPlaces(node, base, builder_.target()));
    if (!places)
      return false;
    for (auto [value, place] : llvm::zip_equal(node.results(), *places))
      builder_.setPlace(&value, std::move(place));
    return true;
  }

  Status lowerRow(const ir::Node &node, const Lowering &row) {
    std::vector<AtenArg> args;
    for (const CallArg &arg : row.args) {
      const unsigned *position = std::get_if<unsigned>(&arg);
      args.push_back(position ? builder_.arg(node.args()[*position]) : std::get<AtenArg>(arg));
    }
    if (row.kind == Lowering::Kind::Into) {
      llvm::SmallVector<Place> results;
      for (const ir::Value &result : node.results())
        results.push_back(builder_.allocate(result));
      builder_.callInto(row.op, row.overload, std::move(args), results);
      return Status::ok();
    }
    std::vector<std::optional<Place>> outputs;
    for (const ir::Value &result : node.results())
      outputs.push_back(result.isTensor() ? std::optional(builder_.allocate(result))
                                          : std::nullopt);
    builder_.callThenCopy(row.op, row.overload, std::move(args), outputs);
    return Status::ok();
  }

  Status lowerOutput() {
    const std::vector<std::string> &names = graph_.outputNames();
    const llvm::ArrayRef<ir::Arg> outputs = graph_.outputs();
    for (auto [i, arg] : llvm::enumerate(outputs)) {
      if (!arg.isValue())
        return {Code::Unsupported, "output " + std::to_string(i) + " is not a tensor"};
      std::string name = outputs.size() == 1 ? "output" : "output" + std::to_string(i);
      if (i < names.size())
        name = names[i];
      if (!isPlanName(name)) {
        std::string shown;
        llvm::raw_string_ostream(shown).write_escaped(name);
        return {Code::Unsupported, "the output's key \"" + shown +
                                       "\" cannot be a name: it is empty, over 4096 bytes, or has "
                                       "control characters; rename it in the model"};
      }
      builder_.addOutput(std::move(name), builder_.place(arg.value()));
    }
    std::vector<BucketBuilder::StateWrite> writes;
    for (const auto &[path, value] : llvm::zip_equal(graph_.stateWrites(), graph_.stateValues()))
      writes.push_back(
          {pathOf(path), graph_.owner()->findParameter(path), builder_.place(value.value())});
    builder_.addStateWrites(writes);
    return Status::ok();
  }

  const ir::Graph &graph_;
  BucketBuilder &builder_;
  ir::Diagnostics &diagnostics_;
  std::vector<std::unique_ptr<ir::Graph>> definitions_; ///< Their values have places.
};

bool isCalled(const std::string &library, const PlanData &plan) {
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        if (const auto *call = std::get_if<LibraryCall>(&record.op);
            call && call->library == library)
          return true;
  return false;
}

/// For example "(embedding: f32, 1: i64)".
std::string describeOutputs(const Bucket &bucket) {
  std::string text;
  for (const IoTensor &output : bucket.outputs)
    text += (text.empty() ? "" : ", ") + output.name + ": " + std::string(dtypeName(output.dtype));
  return "(" + text + ")";
}

/// Checks that all buckets of an entry have the same outputs except for their sizes.
Status checkOutputs(std::span<const EntryBucket> buckets, const PlanData &plan,
                    ir::Diagnostics &diagnostics) {
  for (const Entry &entry : plan.entries) {
    const std::string expected = describeOutputs(entry.buckets.front());
    auto made = entry.buckets.begin();
    for (const EntryBucket &bucket : buckets) {
      if (bucket.entry != entry.name)
        continue;
      if (const std::string outputs = describeOutputs(*made++); outputs != expected)
        diagnostics.error(*bucket.graph->output(),
                          "for these input shapes the method returns " + outputs +
                              ", for those of another bucket " + expected +
                              "; buckets of one plan differ in sizes only: compile these shapes "
                              "to a plan of their own");
    }
  }
  return diagnostics.toStatus(Code::Unsupported);
}

} // namespace

Result<CompiledPlan> lower(std::span<const EntryBucket> buckets, LowerOptions options,
                           ir::Diagnostics &diagnostics) {
  CompiledPlan compiled;
  PlanData &plan = compiled.plan;
  plan.target = options.target;
  plan.producer = "cgc " CGC_VERSION;
  if (options.target == DeviceKind::Cuda)
    plan.gpu = options.gpu();

  CGC_TRY(checkForm(buckets));
  WeightTable weights;
  StateTable states;
  LocationTable locations;
  for (const EntryBucket &bucket : buckets) {
    BucketBuilder builder(options, weights, states, locations);
    BucketLowering(*bucket.graph, builder, diagnostics).run();
    CGC_TRY(diagnostics.toStatus(Code::Unsupported));
    auto entry =
        llvm::find_if(plan.entries, [&](const Entry &e) { return e.name == bucket.entry; });
    if (entry == plan.entries.end())
      entry = plan.entries.insert(entry, Entry{bucket.entry, {}});
    FinishedBucket finished = builder.finish(bucket.branches);
    Bucket &made = entry->buckets.emplace_back(std::move(finished.bucket));
    if (const uint32_t branches = largestBranch(made))
      compiled.branched.push_back({entry->name, entry->buckets.size() - 1, branches,
                                   made.arenaBytes, finished.serialArenaBytes});
    const int64_t multiprocessors = plan.gpu ? plan.gpu->multiprocessors : 0;
    scheduleDetached(made, [&](const LaunchRecord &record) {
      return estimateMicros(record, made, options.target, multiprocessors);
    });
    made.expectedMicros = estimateMicros(made, options.target, multiprocessors);
  }
  CGC_TRY(checkOutputs(buckets, plan, diagnostics));
  plan.states = states.take();
  plan.weights = weights.takeWeights();
  compiled.weights = weights.takeData();
  plan.locations = locations.take();
  for (const auto &library : options.opLibraries)
    if (isCalled(library->id().name, plan))
      plan.opLibraries.push_back(library->id());
  return compiled;
}

} // namespace cgc::backend

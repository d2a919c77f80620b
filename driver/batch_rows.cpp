// Batch rows: analyzes each entry at two batches that no model is made for, so that the batch does
// not pass for another size, and compares all buckets with these.
#include "driver/batch_rows.h"

#include "passes/batch_flow.h"
#include "passes/canonicalize/canonicalize.h"
#include "passes/pipeline.h"
#include "passes/specialize/specialize.h"
#include "runtime/base/printable.h"
#include "runtime/plan/names.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace cgc::driver {

namespace {

using passes::BatchGraph;

/// Primes that no size of a model is a multiple of: a multiple of one is a multiple of the batch.
/// They are far apart, so that sizes that windows or strides round differ.
constexpr int64_t kAnalyzedBatch = 1009, kComparedBatch = 10007;

/// Why rows are not known to be independent. Without an op, no single one is the cause.
struct Reason {
  std::string text;
  std::string op = {};
  ir::Loc loc = {};
};

Reason reasonOf(const ir::Node &node, std::string text) {
  if (node.kind() != ir::NodeKind::CallFunction)
    return {std::move(text)};
  return {std::move(text), ir::opName(node.op()).str(), node.loc()};
}

/// `text` as one line that a plan may hold.
std::string asReason(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return isPrintableUtf8(text) && text.size() <= kMaxNameBytes ? text
                                                               : "the model refuses other batches";
}

/// The sizes of the inputs without dimension 0, by which the buckets of an entry are grouped.
std::vector<std::vector<int64_t>> sizesOfRows(const BucketSpec &bucket) {
  std::vector<std::vector<int64_t>> sizes;
  for (const InputSpec &input : bucket.inputs)
    sizes.emplace_back(input.sizes.begin() + !input.sizes.empty(), input.sizes.end());
  return sizes;
}

/// Analyzes the buckets of one entry that differ in dimension 0 of inputs only.
class EntryAnalysis {
public:
  EntryAnalysis(const ir::Graph &method, DeviceKind target, std::vector<BucketSpec> buckets)
      : method_(method), target_(target), buckets_(std::move(buckets)) {}

  /// Returns why the rows are not independent; nothing if they are.
  std::optional<Reason> run() {
    if (auto reason = chooseInputs())
      return reason;
    for (const ir::Node &node : method_)
      if (node.is(ir::OpKind::CgcHostCall))
        return reasonOf(node, "the host's module may combine different rows");
    if (auto reason = useOfSize())
      return reason;
    const auto analyzed = specialized(kAnalyzedBatch), compared = specialized(kComparedBatch);
    for (const auto *graph : {&analyzed, &compared})
      if (!graph->isOk())
        return Reason{"the model does not run with every batch: " + graph->status().message()};
    if (auto reason =
            difference({analyzed->get(), kAnalyzedBatch}, {compared->get(), kComparedBatch}))
      return reason;
    for (const BucketSpec &bucket : buckets_) {
      const auto graph = specialized(batchOf(bucket));
      if (!graph.isOk()) // Passes before or after `specialize` matter.
        return Reason{"it is compiled by other passes: " + graph.status().message()};
      if (auto reason =
              difference({analyzed->get(), kAnalyzedBatch}, {graph->get(), batchOf(bucket)}))
        return reason;
    }
    return flow(**analyzed);
  }

  /// The batch dimensions of the inputs and outputs, as far as they are known.
  const std::vector<int32_t> &inputDims() const { return inputDims_; }
  const std::vector<int32_t> &outputDims() const { return outputDims_; }

private:
  /// Chooses the inputs with a batch: those whose dimension 0 is not 1 in all buckets, or all.
  std::optional<Reason> chooseInputs() {
    std::vector<int32_t> dims;
    bool anyVaries = false;
    for (size_t i = 0; i < buckets_[0].inputs.size(); ++i) {
      const bool isScalar = buckets_[0].inputs[i].sizes.empty();
      const bool varies = !isScalar && llvm::any_of(buckets_, [&](const BucketSpec &bucket) {
        return bucket.inputs[i].sizes[0] != 1;
      });
      anyVaries |= varies;
      dims.push_back(varies ? 0 : isScalar ? kNoBatchDim : 1);
    }
    for (int32_t &dim : dims)
      dim = dim == 1 ? (anyVaries ? kNoBatchDim : 0) : dim;
    const auto first = std::ranges::find(dims, 0);
    if (first == dims.end())
      return Reason{"no input has a dimension for a batch"};
    firstInput_ = first - dims.begin();
    for (const BucketSpec &bucket : buckets_)
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] == 0 && bucket.inputs[i].sizes[0] != batchOf(bucket))
          return Reason{fmt::format("dimension 0 is {} in '{}' and {} in '{}'", batchOf(bucket),
                                    bucket.inputs[firstInput_].name, bucket.inputs[i].sizes[0],
                                    bucket.inputs[i].name)};
    inputDims_ = std::move(dims);
    return std::nullopt;
  }

  int64_t batchOf(const BucketSpec &bucket) const { return bucket.inputs[firstInput_].sizes[0]; }

  /// Returns where the size of the batch decides what is computed; nothing if nowhere.
  std::optional<Reason> useOfSize() const {
    ir::Diagnostics diagnostics;
    passes::PassContext context{.target = target_, .diagnostics = &diagnostics};
    const auto graph = run("", kAnalyzedBatch, diagnostics);
    if (!graph.isOk())
      return Reason{graph.status().message()};
    auto use = passes::findBatchUse(**graph, context, kAnalyzedBatch);
    if (!use.isOk() || !*use) // specialized() finds the error.
      return std::nullopt;
    return Reason{std::move((*use)->reason), std::move((*use)->op), (*use)->loc};
  }

  /// The entry after `specialize` for a batch, or the first error.
  Result<std::unique_ptr<ir::Graph>> specialized(int64_t batch) const {
    ir::Diagnostics diagnostics;
    auto graph = run("specialize", batch, diagnostics);
    if (!graph.isOk() && diagnostics.hasErrors())
      return Status(Code::Unsupported, diagnostics.errors().front().message);
    return graph;
  }

  /// The entry after `passes` for a batch.
  Result<std::unique_ptr<ir::Graph>> run(const char *passes, int64_t batch,
                                         ir::Diagnostics &diagnostics) const {
    BucketSpec bucket = buckets_[0];
    for (size_t i = 0; i < inputDims_.size(); ++i)
      if (inputDims_[i] == 0)
        bucket.inputs[i].sizes[0] = batch;
    CGC_ASSIGN_OR_RETURN(const passes::Pipeline pipeline,
                         passes::PipelineBuilder().setPasses(passes).build());
    return pipeline.specialize(method_, method_.name(), typesOf(method_, bucket),
                               {.target = target_, .diagnostics = &diagnostics});
  }

  std::optional<Reason> difference(const BatchGraph &a, const BatchGraph &b) {
    if (auto found = passes::findBatchDifference(a, b))
      return reasonOf(*found->node, std::move(found->reason));
    return std::nullopt;
  }

  /// Computes the states of the outputs of a specialized graph, which it changes.
  std::optional<Reason> flow(ir::Graph &graph) {
    ir::Diagnostics diagnostics;
    passes::PassContext context{.target = target_, .diagnostics = &diagnostics};
    if (const auto changed = passes::CanonicalizePass().run(graph, context); !changed.isOk())
      return Reason{changed.status().message()};
    std::vector<std::optional<int64_t>> dims;
    for (int32_t dim : inputDims_)
      dims.push_back(dim == kNoBatchDim ? std::nullopt : std::optional<int64_t>(dim));
    if (graph.inputs().size() != dims.size())
      return Reason{"it has inputs that are no tensors"};
    const passes::BatchFlow flow(graph, dims, kAnalyzedBatch);

    std::optional<Reason> reason;
    for (auto [i, output] : llvm::enumerate(graph.outputs())) {
      const ir::Value &value = *output.value();
      const ir::BatchState state = flow.state(value);
      const bool isShared = state.kind == ir::BatchState::Shared;
      const bool hasRows = state.kind == ir::BatchState::Rows && state.inner == 1 &&
                           value.tensor().sizes[state.dim] == kAnalyzedBatch;
      outputDims_.push_back(hasRows ? int32_t(state.dim) : kNoBatchDim);
      if (reason || isShared || hasRows)
        continue;
      if (const ir::Node *spoiler = flow.spoiler(value))
        reason = reasonOf(*spoiler, "it combines different rows");
      else
        reason = Reason{fmt::format("output {} holds {}", i, ir::toString(state))};
    }
    return reason;
  }

  const ir::Graph &method_;
  DeviceKind target_;
  std::vector<BucketSpec> buckets_;
  size_t firstInput_ = 0;
  std::vector<int32_t> inputDims_, outputDims_;
};

/// The index of the source location in `plan`, which gets it if it is new.
LocationId locationOf(const ir::Loc &loc, PlanData &plan) {
  if (!loc.isKnown())
    return kNoLocation;
  const SourceLocation location{loc.file, loc.line, loc.module};
  const auto found = std::ranges::find(plan.locations, location);
  const auto index = uint32_t(found - plan.locations.begin());
  if (found == plan.locations.end())
    plan.locations.push_back(location);
  return LocationId{index};
}

/// Sets the batch dimensions of all buckets, where they have one size. An output that is not known
/// to have rows in all of `dims` has none.
void setDims(Entry &entry, const std::vector<int32_t> &inputDims,
             const std::vector<int32_t> &outputDims) {
  for (Bucket &bucket : entry.buckets) {
    for (size_t i = 0; i < inputDims.size(); ++i)
      bucket.inputs[i].batchDim = inputDims[i];
    for (size_t i = 0; i < outputDims.size(); ++i)
      bucket.outputs[i].batchDim = outputDims[i];
  }
}

/// Whether the dimensions fit the tensors of all buckets. They may not if rows are dependent.
bool fit(const Entry &entry, const std::vector<int32_t> &inputDims,
         const std::vector<int32_t> &outputDims) {
  return llvm::all_of(entry.buckets, [&](const Bucket &bucket) {
    std::optional<int64_t> batch;
    const auto hasBatch = [&](const IoTensor &tensor, int32_t dim) {
      if (dim == kNoBatchDim)
        return true;
      if (size_t(dim) >= tensor.sizes.size())
        return false;
      batch = batch.value_or(tensor.sizes[dim]);
      return *batch == tensor.sizes[dim];
    };
    const auto all = [&](const std::vector<IoTensor> &tensors, const std::vector<int32_t> &dims) {
      return dims.size() == tensors.size() &&
             llvm::all_of(llvm::zip_equal(tensors, dims), [&](const auto &at) {
               return hasBatch(std::get<0>(at), std::get<1>(at));
             });
    };
    return all(bucket.inputs, inputDims) && all(bucket.outputs, outputDims);
  });
}

} // namespace

void findBatchRows(const ir::Module &root, const std::vector<BucketSpec> &buckets, PlanData &plan) {
  for (Entry &entry : plan.entries) {
    std::map<std::vector<std::vector<int64_t>>, std::vector<BucketSpec>> groups;
    for (const BucketSpec &bucket : buckets)
      if (bucket.entry == entry.name)
        groups[sizesOfRows(bucket)].push_back(bucket);
    std::optional<Reason> reason;
    std::optional<std::pair<std::vector<int32_t>, std::vector<int32_t>>> dims;
    for (auto &[sizes, group] : groups) {
      EntryAnalysis analysis(*root.findGraph(entry.name), plan.target, std::move(group));
      auto found = analysis.run();
      const std::pair here(analysis.inputDims(), analysis.outputDims());
      if (!found && dims && *dims != here)
        found = Reason{"the batch is in other dimensions for other input shapes"};
      dims = here;
      if (found && !reason)
        reason = std::move(found);
    }
    const bool known = dims && fit(entry, dims->first, dims->second);
    if (!reason && !known)
      reason = Reason{"an output has another size than its rows"};
    if (known)
      setDims(entry, dims->first, dims->second);
    entry.rows.independent = !reason;
    if (reason) {
      entry.rows.op = reason->op;
      entry.rows.reason = asReason(std::move(reason->text));
      entry.rows.location = locationOf(reason->loc, plan);
    }
  }
}

} // namespace cgc::driver

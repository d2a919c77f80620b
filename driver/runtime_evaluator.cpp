// RuntimeEvaluator: compiles one node to a plan in memory and runs it.
#include "driver/runtime_evaluator.h"

#include "backend/backend.h"
#include "driver/constant_lookup.h"
#include "driver/double_arithmetic.h"
#include "runtime/base/check.h"
#include "runtime/exec/engine.h"

namespace cgc::driver {

namespace {

ir::TensorType on(DeviceKind device, ir::TensorType type) {
  type.device = device;
  return type;
}

/// A graph of just `node`, with a placeholder for each of its Value arguments.
std::unique_ptr<ir::Graph> isolate(const ir::Node &node, DeviceKind target,
                                   llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) {
  auto graph = std::make_unique<ir::Graph>("constant");
  std::vector<ir::Value *> placeholders;
  for (const auto &input : inputs)
    placeholders.push_back(graph
                               ->placeholder("in" + std::to_string(placeholders.size()),
                                             on(target, input->type()), node.loc())
                               ->result());
  std::vector<ir::Arg> args(node.args().begin(), node.args().end());
  size_t next = 0;
  for (ir::Arg &arg : args)
    arg.mapValues([&](ir::Value *) { return ir::Arg(placeholders[next++]); });
  CGC_CHECK(next == placeholders.size() && "one tensor for each Value argument");
  ir::Node *copy = graph->call(node.op(), std::move(args), node.numResults(), node.loc());
  copy->setTarget(node.target());
  std::vector<ir::Arg> results;
  for (unsigned i = 0; i < node.numResults(); ++i) {
    copy->result(i)->setType(on(target, node.result(i)->tensor()));
    results.emplace_back(copy->result(i));
  }
  graph->createOutput(std::move(results), node.loc());
  return graph;
}

Result<Plan> makePlan(const ir::Graph &graph, DeviceKind target) {
  const backend::EntryBucket bucket{"constant", &graph};
  ir::Diagnostics diagnostics;
  CGC_ASSIGN_OR_RETURN(backend::CompiledPlan compiled,
                       backend::lower({&bucket, 1}, target, diagnostics));
  std::vector<std::vector<std::byte>> weights;
  for (const auto &weight : compiled.weights)
    weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
  return Plan::fromMemory(std::move(compiled.plan), std::move(weights));
}

} // namespace

Result<std::vector<std::shared_ptr<const ir::TensorData>>>
RuntimeEvaluator::evaluate(const ir::Node &node,
                           llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) {
  if (auto rows = lookUpRows(node, inputs))
    return std::vector{std::move(rows)};
  if (target_ == DeviceKind::Cuda)
    if (auto computed = computeInDouble(node, inputs))
      return std::vector{std::move(computed)};
  const auto graph = isolate(node, target_, inputs);
  CGC_ASSIGN_OR_RETURN(const Plan plan, makePlan(*graph, target_));
  const ExecutorKind executor =
      target_ == DeviceKind::Cuda ? ExecutorKind::Reference : ExecutorKind::Stream;
  CGC_ASSIGN_OR_RETURN(const Engine engine,
                       Engine::create(plan, {.executor = executor,
                                             .providerPath = libraryFolder_,
                                             .referencePath = libraryFolder_}));
  CGC_ASSIGN_OR_RETURN(Context context, Context::create(engine));

  const Bucket &bucket = plan.data().entries[0].buckets[0];
  std::vector<TensorView> inputViews;
  for (size_t i = 0; i < inputs.size(); ++i)
    // The cast is safe: the runtime only reads inputs.
    inputViews.push_back({const_cast<std::byte *>(inputs[i]->bytes().data()),
                          inputs[i]->type().dtype,
                          DeviceKind::Cpu,
                          bucket.inputs[i].sizes,
                          {}});
  std::vector<std::vector<std::byte>> outputs;
  std::vector<TensorView> outputViews;
  for (const IoTensor &output : bucket.outputs) {
    outputs.emplace_back(*tensorBytes(output.dtype, output.sizes));
    outputViews.push_back({outputs.back().data(), output.dtype, DeviceKind::Cpu, output.sizes, {}});
  }
  CGC_TRY(context.run("constant", inputViews, outputViews));

  std::vector<std::shared_ptr<const ir::TensorData>> results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(ir::TensorData::copyOf(
        ir::TensorType::dense(bucket.outputs[i].dtype, bucket.outputs[i].sizes), outputs[i]));
  return results;
}

} // namespace cgc::driver

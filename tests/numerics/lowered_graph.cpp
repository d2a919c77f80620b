// LoweredGraph: parses, verifies, lowers, writes, loads and runs IR text.
#include "tests/numerics/lowered_graph.h"

#include "backend/backend.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <gtest/gtest.h>

#include <cstdlib>

#include <unistd.h>

namespace cgc::test {
namespace {

at::Tensor viewOf(const ir::TensorData &data) {
  const ir::TensorType &type = data.type();
  return at::from_blob(const_cast<std::byte *>(data.bytes().data()),
                       {type.sizes.data(), type.sizes.size()},
                       at::TensorOptions(torchType(type.dtype)));
}

void fillParameters(ir::Module &module, int64_t bound, at::Generator &random) {
  for (const ir::Parameter &parameter : module.parameters()) {
    auto tensor = std::make_shared<at::Tensor>(randomTensor(parameter.type, bound, random));
    llvm::ArrayRef<std::byte> bytes(static_cast<const std::byte *>(tensor->data_ptr()),
                                    parameter.type.numBytes());
    module.setParameterData(parameter.name,
                            std::make_shared<ir::TensorData>(parameter.type, bytes, tensor));
  }
  for (const auto &submodule : module.submodules())
    fillParameters(*submodule, bound, random);
}

TensorView view(const at::Tensor &tensor, DType dtype) {
  return {tensor.data_ptr(),
          dtype,
          DeviceKind::Cpu,
          {tensor.sizes().data(), tensor.sizes().size()},
          {}};
}

} // namespace

double cudaTolerance(at::ScalarType type) {
  switch (type) {
  case at::kBFloat16:
    return 0x1p-7;
  case at::kHalf:
    return 0x1p-9;
  case at::kFloat:
  case at::kDouble:
    return 1e-4;
  default:
    return 0;
  }
}

void inferTypes(ir::Graph &graph) {
  for (ir::Node &node : graph) {
    if (node.kind() != ir::NodeKind::CallFunction || node.result()->isTensor())
      continue;
    auto inferred = ir::inferResults(node.op(), node.args(), DeviceKind::Cpu);
    if (!inferred || inferred->size() != node.numResults()) {
      ADD_FAILURE() << toString(node) << ": " << inferred.status().message();
      continue;
    }
    for (unsigned i = 0; i < node.numResults(); ++i)
      node.result(i)->setType((*inferred)[i].type);
  }
}

at::ScalarType torchType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return at::kFloat;
  case DType::F16:
    return at::kHalf;
  case DType::BF16:
    return at::kBFloat16;
  case DType::F64:
    return at::kDouble;
  case DType::I64:
    return at::kLong;
  case DType::I32:
    return at::kInt;
  case DType::I16:
    return at::kShort;
  case DType::I8:
    return at::kChar;
  case DType::U8:
    return at::kByte;
  case DType::Bool:
    return at::kBool;
  }
  std::abort();
}

at::Tensor randomTensor(const ir::TensorType &type, int64_t bound, at::Generator &random) {
  at::IntArrayRef sizes(type.sizes.data(), type.sizes.size());
  if (isFloating(type.dtype))
    return at::randn(sizes, random).to(torchType(type.dtype));
  return at::randint(type.dtype == DType::Bool ? 2 : bound, sizes, random, at::kLong)
      .to(torchType(type.dtype));
}

LoweredGraph::LoweredGraph(const std::string &text, int64_t bound, DeviceKind target,
                           ExecutorKind executor)
    : bound_(bound), random_(at::detail::createCPUGenerator(7)) {
  ir::Diagnostics diagnostics;
  module_ = ir::parseModule(text, "graph", diagnostics);
  if (module_)
    for (const auto &graph : module_->graphs())
      inferTypes(*graph);
  if (!module_ || !ir::verify(*module_, diagnostics)) {
    ADD_FAILURE() << diagnostics.render();
    return;
  }
  fillParameters(*module_, bound, random_);
  std::vector<backend::EntryBucket> buckets;
  for (const auto &graph : module_->graphs())
    buckets.push_back({graph->name(), graph.get()});
  load(buckets, target, executor);
}

LoweredGraph::LoweredGraph(const ir::Graph &graph, DeviceKind target, ExecutorKind executor)
    : bound_(3), random_(at::detail::createCPUGenerator(7)) {
  load(backend::EntryBucket{graph.name(), &graph}, target, executor);
}

void LoweredGraph::load(llvm::ArrayRef<backend::EntryBucket> buckets, DeviceKind target,
                        ExecutorKind executor) {
  ir::Diagnostics diagnostics;
  auto compiled = backend::lower(buckets, target, diagnostics);
  if (!compiled) {
    ADD_FAILURE() << compiled.status().message() << diagnostics.render();
    return;
  }
  std::vector<std::span<const std::byte>> weights;
  for (const auto &weight : compiled->weights)
    weights.emplace_back(weight->bytes().data(), weight->bytes().size());
  file_ = std::filesystem::temp_directory_path() /
          ("cgc-lowered-" + std::to_string(getpid()) + "-" +
           std::to_string(reinterpret_cast<uintptr_t>(this)) + ".cgplan");
  Status written = writePlan(compiled->plan, weights, file_);
  auto plan = written.isOk() ? Plan::load(file_) : Result<Plan>(written);
  if (!plan) {
    ADD_FAILURE() << plan.status().message();
    return;
  }
  plan_ = std::make_unique<Plan>(*std::move(plan));
  auto engine = Engine::create(*plan_, {.executor = executor});
  if (!engine) {
    ADD_FAILURE() << engine.status().message();
    return;
  }
  engine_ = std::make_unique<Engine>(*std::move(engine));
}

LoweredGraph::~LoweredGraph() {
  std::error_code ignored;
  // scripts/fuzz.sh uses these plans as seeds.
  static int kept = 0;
  if (const char *folder = std::getenv("CGC_KEEP_PLANS"))
    std::filesystem::copy(file_, std::filesystem::path(folder) / std::to_string(kept++), ignored);
  std::filesystem::remove(file_, ignored);
}

at::Tensor LoweredGraph::parameter(const std::string &path) const {
  return viewOf(*module_->findParameter(path)->data);
}

std::vector<at::Tensor> LoweredGraph::randomInputs(const std::string &entry) {
  std::vector<at::Tensor> inputs;
  for (const IoTensor &input : plan().findEntry(entry)->buckets[0].inputs)
    inputs.push_back(
        randomTensor(ir::TensorType::dense(input.dtype, input.sizes), bound_, random_));
  return inputs;
}

Result<std::vector<at::Tensor>> LoweredGraph::run(const std::string &entry,
                                                  const std::vector<at::Tensor> &inputs,
                                                  std::optional<ExecutorKind> executor) {
  CGC_ASSIGN_OR_RETURN(Context context,
                       Context::create(*engine_, {.executor = executor, .poisonArena = true}));
  const Bucket &bucket = plan().findEntry(entry)->buckets[0];
  std::vector<TensorView> inputViews, outputViews;
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    inputViews.push_back(view(inputs[i], bucket.inputs[i].dtype));
  for (const IoTensor &output : bucket.outputs) {
    outputs.push_back(at::empty(output.sizes, torchType(output.dtype)));
    outputViews.push_back(view(outputs.back(), output.dtype));
  }
  // State of the first run must not leak into the second.
  for (int i = 0; i < 2; ++i)
    CGC_TRY(context.run(entry, inputViews, outputViews));
  return outputs;
}

} // namespace cgc::test

// A training step with dropout on the fake GPU: stream and graph give the same bits, each run drops
// other elements, and the backward pass drops those of the forward pass.
#include "backend/backend.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "tests/conformance/cuda_fixture.h"
#include "tests/test_device/test_device.h"

namespace cgc::test {
namespace {

constexpr int64_t kElements = 64;

/// Entry "step": y = dropout(w * x), and SGD on the sum of y.
constexpr const char *kDroppingStep = R"(module @m {
  state @w : f32[64]@cuda
  state @"optimizer:step" role="control" : i64[]@cuda
  state @"random:seed" role="control" : i64[]@cuda
  state @"random:offset" role="control" : i64[]@cuda
  param @lr : f32[]@cuda
  graph @step(%x: f32[64]@cuda) {
    %w = get_attr @w : f32[64]@cuda
    %lr = get_attr @lr : f32[]@cuda
    %step = get_attr @"optimizer:step" : i64[]@cuda
    %seed = get_attr @"random:seed" : i64[]@cuda
    %offset = get_attr @"random:offset" : i64[]@cuda
    %product = aten.mul(%w, %x) : f32[64]@cuda
    %y = cgc.dropout(%product, %seed, %offset) {p=0.5, stream=0} : f32[64]@cuda
    %gradient = cgc.dropout(%x, %seed, %offset) {p=0.5, stream=0} : f32[64]@cuda
    %nextStep = aten.add(%step, 1) : i64[]@cuda
    %nextW = cgc.sgd([%w], [%gradient], [], %lr, %nextStep) : f32[64]@cuda
    %nextOffset = aten.add(%offset, 1) : i64[]@cuda
    output %y, state @w = %nextW, state @"optimizer:step" = %nextStep, state @"random:offset" = %nextOffset
  }
})";

class DropoutStep : public CudaTest {
protected:
  DropoutStep() {
    provider_.ops["aten::add"] = [](const FakeCall &call, void *stream) {
      return doWork(stream, [from = call.arguments[0], to = call.outputs[0]] {
        *static_cast<int64_t *>(to) = *static_cast<int64_t *>(from) + 1;
      });
    };
  }

  void SetUp() override {
    ir::Diagnostics diagnostics;
    const auto module = ir::parseModule(kDroppingStep, "test", diagnostics);
    ASSERT_TRUE(module && ir::verify(*module, diagnostics)) << diagnostics.render();
    const auto set = [&](const std::string &name, const std::vector<float> &values) {
      module->setParameterData(
          name, ir::TensorData::copyOf(module->findParameter(name)->type, floatBytes(values)));
    };
    set("w", randomFloats(kElements, 1));
    set("lr", {0.5F});
    const backend::EntryBucket bucket{"step", module->graphs()[0].get()};
    auto compiled =
        backend::lower({&bucket, 1}, {DeviceKind::Cuda, backend::Arch::Sm80}, diagnostics);
    ASSERT_TRUE(compiled.isOk()) << compiled.status().message() << diagnostics.render();
    SamplePlan sample;
    sample.plan = std::move(compiled->plan);
    for (const auto &weight : compiled->weights)
      sample.weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
    load(sample);
  }

  static TensorView viewOf(std::vector<float> &values) {
    return {values.data(), DType::F32, DeviceKind::Cpu, kSizes, {}};
  }
  static std::vector<float> step(Context &context, std::vector<float> x) {
    std::vector<float> y(kElements);
    const TensorView in = viewOf(x), out = viewOf(y);
    const Status status = context.run("step", {&in, 1}, {&out, 1});
    EXPECT_TRUE(status.isOk()) << status.message();
    return y;
  }
  static std::vector<float> parameter(Context &context) {
    std::vector<float> w(kElements);
    const Status status = context.readState("w", viewOf(w));
    EXPECT_TRUE(status.isOk()) << status.message();
    return w;
  }

  inline static const std::vector<int64_t> kSizes = {kElements};
};

TEST_F(DropoutStep, StreamAndGraphAreBitEqual) {
  Context stream = context(ExecutorKind::Stream, /*poison=*/true),
          graph = context(ExecutorKind::Graph, /*poison=*/true);
  std::vector<bool> maskBefore;
  for (unsigned run = 0; run < 50; ++run) {
    const std::vector<float> x = randomFloats(kElements, 10 + run), before = parameter(graph),
                             y = step(graph, x);
    ASSERT_EQ(step(stream, x), y) << "run " << run;
    const std::vector<float> after = parameter(graph);
    ASSERT_EQ(parameter(stream), after) << "run " << run;
    std::vector<bool> mask;
    for (int64_t i = 0; i < kElements; ++i) {
      mask.push_back(y[i] != 0);
      ASSERT_EQ(after[i] != before[i], mask[i]) << "run " << run << ", element " << i;
    }
    ASSERT_NE(mask, maskBefore) << "run " << run;
    maskBefore = mask;
  }
}

} // namespace
} // namespace cgc::test

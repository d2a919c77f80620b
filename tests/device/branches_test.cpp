// Two towers and what joins them, from lowering to replays: captured as parallel branches or as one
// chain, with programmatic or plain edges, they give bit-equal results.
#include "backend/backend.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "runtime/plan/branches.h"
#include "tests/conformance/cuda_fixture.h"

#include <cmath>

namespace cgc::test {
namespace {

constexpr int64_t kTowerRows = 3;
constexpr int kDepth = 12;

/// Entry "main": y = tower a of x, plus tower b of x, normalized.
Result<SamplePlan> towers() {
  const std::string type = "f32[" + std::to_string(kTowerRows) + "," + std::to_string(kColumns) +
                           "]@cuda",
                    vector = "f32[" + std::to_string(kColumns) + "]@cuda",
                    shape = "{normalized_shape=[" + std::to_string(kColumns) + "]}";
  std::string text = "module @m {\nparam @gain : " + vector + "\nparam @shift : " + vector +
                     "\ngraph @main(%x: " + type + ") {\n%gain = get_attr @gain : " + vector +
                     "\n%shift = get_attr @shift : " + vector + "\n";
  for (const std::string tower : {"a", "b"})
    for (int i = 0; i < kDepth; ++i) {
      const std::string from = i == 0 ? "x" : tower + std::to_string(i - 1);
      text += "%" + tower + std::to_string(i) + " = ";
      if (i % 3 == 0)
        text += "aten.layer_norm(%" + from + ", %gain, %shift) " + shape;
      else
        text += (i % 3 == 1     ? "aten.gelu(%"
                 : tower == "a" ? "aten.neg(%"
                                : "aten.tanh(%") +
                from + ")";
      text += " : " + type + "\n";
    }
  const std::string last = std::to_string(kDepth - 1);
  text += "%sum = aten.add(%a" + last + ", %b" + last + ") : " + type +
          "\n%y = aten.layer_norm(%sum, %gain, %shift) " + shape + " : " + type +
          "\noutput %y\n}\n}\n";
  ir::Diagnostics diagnostics;
  const auto module = ir::parseModule(text, "test", diagnostics);
  if (!module || !ir::verify(*module, diagnostics))
    return Status(Code::Failed, diagnostics.render());
  unsigned seed = 1;
  for (const ir::Parameter &parameter : module->parameters())
    module->setParameterData(
        parameter.name,
        ir::TensorData::copyOf(parameter.type, floatBytes(randomFloats(kColumns, seed++))));
  const backend::EntryBucket bucket{"main", module->graphs()[0].get()};
  CGC_ASSIGN_OR_RETURN(
      backend::CompiledPlan compiled,
      backend::lower({&bucket, 1}, {DeviceKind::Cuda, backend::Arch::Sm80}, diagnostics));
  SamplePlan sample;
  sample.plan = std::move(compiled.plan);
  for (const auto &weight : compiled.weights)
    sample.weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
  return sample;
}

class ParallelTowers : public CudaTest {
protected:
  static std::vector<float> outputOf(Context &context, std::vector<float> x) {
    const std::vector<int64_t> sizes = {kTowerRows, kColumns};
    std::vector<float> y(x.size());
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
        out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const Status status = context.run("main", {&in, 1}, {&out, 1});
    EXPECT_TRUE(status.isOk()) << status.message();
    return y;
  }
};

TEST_F(ParallelTowers, AreBitEqualToOneChain) {
  const auto sample = towers();
  ASSERT_TRUE(sample.isOk()) << sample.status().message();
  const Bucket &bucket = sample->plan.entries[0].buckets[0];
  ASSERT_EQ(largestBranch(bucket), 2u);
  for (const LaunchRecord &record : bucket.records)
    ASSERT_TRUE(std::holds_alternative<KernelLaunch>(record.op)) << recordName(record);
  load(*sample);
  std::vector<Context> contexts;
  for (const bool parallel : {true, false})
    for (const bool programmatic : {true, false}) {
      Result<Context> made = Context::create(*engine_, {.executor = ExecutorKind::Graph,
                                                        .programmaticEdges = programmatic,
                                                        .parallelBranches = parallel,
                                                        .poisonArena = true});
      ASSERT_TRUE(made.isOk()) << made.status().message();
      EXPECT_EQ(made->stats("main", 0)->graphNodes, bucket.records.size());
      contexts.push_back(*std::move(made));
    }
  Context stream = context(ExecutorKind::Stream);
  for (unsigned run = 0; run < 50; ++run) {
    const std::vector<float> x = randomFloats(kTowerRows * kColumns, run);
    const std::vector<float> expected = outputOf(stream, x);
    for (const float value : expected)
      ASSERT_FALSE(std::isnan(value));
    for (size_t i = 0; i < contexts.size(); ++i)
      ASSERT_EQ(outputOf(contexts[i], x), expected) << "run " << run << ", context " << i;
  }
}

} // namespace
} // namespace cgc::test

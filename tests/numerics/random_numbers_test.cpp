// Random numbers of compiled plans: their distribution, their independence of runs, calls and
// elements, and what seed and offset decide. All seeds are fixed, so that a test gives one result.
#include "driver/compile.h"
#include "ir/text/text.h"
#include "runtime/base/training_names.h"
#include "runtime/exec/engine.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/optimizer_of.h"
#include "tests/paths.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

constexpr int64_t kCount = 1 << 16;

/// A compiled graph or training step with one input, f32[kCount], and its context.
class Drawing {
public:
  explicit Drawing(const std::string &text, std::optional<driver::TrainOptions> train = {},
                   std::optional<DType> precision = {}) {
    ir::Diagnostics diagnostics;
    auto root = ir::parseModule(text, "random.cgir", diagnostics);
    driver::CompileOptions options;
    options.inputs = {{"x", DType::F32, {kCount}}};
    options.target = DeviceKind::Cpu;
    options.libraryFolder = kLibraries;
    options.train = std::move(train);
    options.passes = driver::DefaultPasses{.precision = precision};
    auto compiled = root ? driver::compile(*root, options, diagnostics)
                         : Result<backend::CompiledPlan>(Status(Code::Failed, "no module"));
    if (!compiled.isOk()) {
      ADD_FAILURE() << compiled.status().message() << diagnostics.render();
      return;
    }
    std::vector<std::vector<std::byte>> weights;
    for (const auto &weight : compiled->weights)
      weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
    auto plan = Plan::fromMemory(std::move(compiled->plan), std::move(weights));
    if (!plan.isOk()) {
      ADD_FAILURE() << plan.status().message();
      return;
    }
    plan_ = std::make_unique<Plan>(*std::move(plan));
    auto engine = Engine::create(*plan_, {.executor = {}, .device = 0, .providerPath = kLibraries});
    if (!engine.isOk()) {
      ADD_FAILURE() << engine.status().message();
      return;
    }
    engine_ = std::make_unique<Engine>(*std::move(engine));
    auto context = Context::create(*engine_);
    EXPECT_TRUE(context.isOk()) << context.status().message();
    if (context.isOk())
      context_ = std::make_unique<Context>(*std::move(context));
  }

  bool isOk() const { return context_ != nullptr; }
  const PlanData &plan() const { return plan_->data(); }

  void set(const char *state, int64_t value) {
    write(state, at::full({}, value, at::kLong), DType::I64);
  }
  void write(const std::string &state, const at::Tensor &value, DType dtype) {
    const Status status = context_->writeState(state, view(value, dtype));
    EXPECT_TRUE(status.isOk()) << status.message();
  }
  int64_t offset() {
    const at::Tensor value = at::zeros({}, at::kLong);
    EXPECT_TRUE(context_->readState(kOffsetState, view(value, DType::I64)).isOk());
    return value.item<int64_t>();
  }

  /// The outputs of a run, in f64.
  std::vector<at::Tensor> run(const char *entry = "f", const at::Tensor &x = at::ones({kCount})) {
    const Bucket &bucket = plan().findEntry(entry)->buckets[0];
    const at::Tensor given = x.to(torchType(bucket.inputs[0].dtype));
    const TensorView input = view(given, bucket.inputs[0].dtype);
    std::vector<at::Tensor> outputs;
    std::vector<TensorView> views;
    for (const IoTensor &output : bucket.outputs) {
      outputs.push_back(at::empty(output.sizes, torchType(output.dtype)));
      views.push_back(view(outputs.back(), output.dtype));
    }
    const Status status = context_->run(entry, {&input, 1}, views);
    EXPECT_TRUE(status.isOk()) << status.message();
    for (at::Tensor &output : outputs)
      output = output.to(at::kDouble);
    return outputs;
  }

private:
  inline static const std::string kLibraries = buildDir() / "lib";
  static TensorView view(const at::Tensor &tensor, DType dtype) {
    return {tensor.data_ptr(),
            dtype,
            DeviceKind::Cpu,
            {tensor.sizes().data(), tensor.sizes().size()},
            {}};
  }

  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Context> context_;
};

const char *const kAll = R"(
graph @f(%x: dynamic) {
  %0 = aten.rand_like(%x) : dynamic
  %1 = aten.randn_like(%x) : dynamic
  %2 = aten.bernoulli(%x) {p=0.3} : dynamic
  %3 = aten.rand_like(%x) : dynamic
  output %0, %1, %2, %3
}
)";

/// `mean` is within 5 sigma of `expected`, for kCount numbers of the variance `variance`.
void expectMean(const at::Tensor &numbers, double expected, double variance) {
  EXPECT_NEAR(numbers.mean().item<double>(), expected,
              5 * std::sqrt(variance / double(numbers.numel())));
}

/// The numbers do not correlate: their product has the mean 0, within 5 sigma.
void expectIndependent(const at::Tensor &a, const at::Tensor &b) {
  const at::Tensor x = (a - a.mean()) / a.std(), y = (b - b.mean()) / b.std();
  EXPECT_LT(std::abs((x * y).mean().item<double>()), 5 / std::sqrt(double(x.numel())));
}

TEST(RandomNumbers, HaveTheirDistributions) {
  Drawing drawing(kAll);
  ASSERT_TRUE(drawing.isOk());
  for (const int64_t seed : {0, 1, 2}) {
    drawing.set(kSeedState, seed);
    const std::vector<at::Tensor> drawn = drawing.run();
    const at::Tensor &uniform = drawn[0], &normal = drawn[1], &bernoulli = drawn[2];
    EXPECT_TRUE(uniform.ge(0).all().item<bool>() && uniform.lt(1).all().item<bool>());
    expectMean(uniform, 0.5, 1.0 / 12);
    expectMean((uniform - 0.5).pow(2), 1.0 / 12, 1.0 / 180);
    // The moments of the normal distribution: 0, 1, 0, 3. The variances are those of the powers.
    EXPECT_TRUE(normal.isfinite().all().item<bool>());
    expectMean(normal, 0, 1);
    expectMean(normal.pow(2), 1, 2);
    expectMean(normal.pow(3), 0, 15);
    expectMean(normal.pow(4), 3, 96);
    // Every twentieth number lies beyond 1.96.
    expectMean(normal.abs().gt(1.959964).to(at::kDouble), 0.05, 0.05 * 0.95);
    EXPECT_TRUE(bernoulli.eq(0).logical_or(bernoulli.eq(1)).all().item<bool>());
    expectMean(bernoulli, 0.3, 0.3 * 0.7);
  }
}

TEST(RandomNumbers, TakeProbabilitiesFromATensor) {
  Drawing drawing(R"(
graph @f(%x: dynamic) {
  %0 = aten.bernoulli(%x) : dynamic
  output %0
}
)");
  ASSERT_TRUE(drawing.isOk());
  const at::Tensor half = at::full({kCount / 2}, 0.9), none = at::zeros({kCount / 4}),
                   all = at::ones({kCount / 4});
  const at::Tensor drawn = drawing.run("f", at::cat({half, none, all}))[0];
  expectMean(drawn.slice(0, 0, kCount / 2), 0.9, 0.9 * 0.1);
  EXPECT_TRUE(drawn.slice(0, kCount / 2, 3 * kCount / 4).eq(0).all().item<bool>());
  EXPECT_TRUE(drawn.slice(0, 3 * kCount / 4).eq(1).all().item<bool>());
}

TEST(RandomNumbers, AreIndependentOfRunsCallsAndElements) {
  Drawing drawing(kAll);
  ASSERT_TRUE(drawing.isOk());
  const std::vector<at::Tensor> first = drawing.run(), second = drawing.run();
  EXPECT_EQ(drawing.offset(), 2);
  for (size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE(i);
    expectIndependent(first[i], second[i]); // Consecutive offsets.
    for (size_t k = 0; k < i; ++k)          // Streams.
      expectIndependent(first[i], first[k]);
    for (const int64_t lag : {1, 2, 3, 4, 8})
      expectIndependent(first[i].slice(0, lag), first[i].slice(0, 0, -lag));
  }
}

TEST(RandomNumbers, AreDecidedByAllBitsOfSeedAndOffset) {
  Drawing drawing(kAll);
  ASSERT_TRUE(drawing.isOk());
  const int64_t two32 = int64_t(1) << 32;
  const auto draw = [&](int64_t seed, int64_t offset) {
    drawing.set(kSeedState, seed);
    drawing.set(kOffsetState, offset);
    return drawing.run();
  };
  const std::vector<at::Tensor> base = draw(7, 9), again = draw(7, 9);
  for (size_t i = 0; i < base.size(); ++i)
    EXPECT_TRUE(at::equal(base[i], again[i]));
  for (const auto &[seed, offset] : std::vector<std::pair<int64_t, int64_t>>{
           {8, 9}, {7, 10}, {9, 7}, {7 + two32, 9}, {7, 9 + two32}, {-7, 9}}) {
    SCOPED_TRACE(testing::Message() << seed << " " << offset);
    const std::vector<at::Tensor> other = draw(seed, offset);
    for (size_t i = 0; i < base.size(); ++i)
      expectIndependent(base[i], other[i]);
  }
  // The offset goes on past 2^32.
  (void)draw(7, two32 - 1);
  EXPECT_EQ(drawing.offset(), two32);
  const std::vector<at::Tensor> next = drawing.run(), same = draw(7, two32);
  EXPECT_TRUE(at::equal(next[0], same[0]));
}

TEST(RandomNumbers, In16BitsAreNever1) {
  for (const auto &[precision, steps] : {std::pair(DType::F16, 2048), {DType::BF16, 256}}) {
    Drawing drawing(kAll, {}, precision);
    ASSERT_TRUE(drawing.isOk());
    const std::vector<at::Tensor> drawn = drawing.run();
    // Of f32 numbers, some would round to 1.
    EXPECT_EQ(drawn[0].max().item<double>(), double(steps - 1) / steps);
    EXPECT_EQ(drawn[0].min().item<double>(), 0);
    // Rounding towards zero lowers the mean by half a step.
    expectMean(drawn[0], 0.5 - 0.5 / steps, 1.0 / 12);
    EXPECT_TRUE(drawn[1].isfinite().all().item<bool>());
    expectMean(drawn[1].pow(2), 1, 2);
    expectMean(drawn[2], 0.3, 0.3 * 0.7);
  }
}

TEST(RandomNumbers, WithoutReadersTakeNoStates) {
  Drawing drawing(R"(
graph @f(%x: dynamic) {
  %0 = aten.rand_like(%x) : dynamic
  %1 = aten.neg(%x) : dynamic
  output %1
}
)");
  ASSERT_TRUE(drawing.isOk());
  EXPECT_TRUE(drawing.plan().states.empty());
}

/// loss = sum(dropout(w) x + rand), whose gradient is x where dropout keeps w, doubled. The outputs
/// are the loss, dropout(w), the random numbers and, of the step, the gradient.
class TrainingNumbers : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(drawing_.isOk());
    drawing_.write("w", at::ones({kCount}), DType::F32);
  }

  Drawing drawing_{
      R"(
module @M {
  state @w : f32[65536]
  graph @forward(%x: dynamic) {
    %w = get_attr @w : f32[65536]
    %0 = aten.dropout(%w) {p=0.5, train=true} : dynamic
    %1 = aten.mul(%0, %x) : dynamic
    %2 = aten.rand_like(%x) : dynamic
    %3 = aten.add(%1, %2) : dynamic
    %4 = aten.sum(%3) : dynamic
    output %4, %0, %2
  }
}
)",
      driver::TrainOptions{.optimizer = optimizerOf("rule=sgd,lr=0,keep-gradients=true")}};
};

TEST_F(TrainingNumbers, DropoutKeepsItsShareAndTheBackwardPassItsMask) {
  const at::Tensor x = at::arange(1, kCount + 1).to(at::kFloat);
  const std::vector<at::Tensor> first = drawing_.run("step", x), second = drawing_.run("step", x);
  for (const auto &outputs : {first, second}) {
    ASSERT_EQ(outputs.size(), 4u);
    const at::Tensor kept = outputs[1].ne(0).to(at::kDouble);
    expectMean(kept, 0.5, 0.25);
    EXPECT_TRUE(at::equal(outputs[1], 2 * kept));
    EXPECT_TRUE(at::equal(outputs[3], 2 * kept * x.to(at::kDouble)));
    expectIndependent(outputs[1], outputs[2]); // rand has a stream of its own.
    expectIndependent(kept.slice(0, 1), kept.slice(0, 0, -1));
  }
  expectIndependent(first[1], second[1]);
  expectIndependent(first[2], second[2]);
}

TEST_F(TrainingNumbers, StayRandomInEvaluationButForDropout) {
  const std::vector<at::Tensor> first = drawing_.run("evaluate"), second = drawing_.run("evaluate");
  EXPECT_TRUE(first[1].eq(1).all().item<bool>());
  expectIndependent(first[2], second[2]);
  EXPECT_EQ(drawing_.offset(), 2);
}

} // namespace
} // namespace cgc::test

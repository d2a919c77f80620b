// Engine and Context for target cpu with a provider that needs no LibTorch: results, bucket
// selection, messages, misuse.
#include "runtime/base/libtorch.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/context_impl.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// A borrowed argument must not be a temporary.
template <class T>
concept MakesEngine = requires { Engine::create(std::declval<T>()); };
template <class T>
concept MakesContext = requires { Context::create(std::declval<T>()); };
static_assert(MakesEngine<const Plan &> && !MakesEngine<Plan> && !MakesEngine<const Plan>);
static_assert(MakesContext<const Engine &> && !MakesContext<Engine>);

Status negate(const FakeCall &f, void *) {
  const int64_t n = f.elements(f.call.outputs[0]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<float *>(f.outputs[0])[i] = -static_cast<const float *>(f.arguments[0])[i];
  return Status::ok();
}

/// Computes x + w, with w repeated.
Status addRows(const FakeCall &f, void *) {
  const int64_t n = f.elements(f.call.outputs[0]);
  const auto *x = static_cast<const float *>(f.arguments[0]);
  const auto *w = static_cast<const float *>(f.arguments[1]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<float *>(f.outputs[0])[i] = x[i] + w[i % 4];
  return Status::ok();
}

class CpuContext : public testing::Test {
protected:
  CpuContext() { provider_.ops = {{"aten::neg", negate}, {"aten::add", addRows}}; }

  /// Loads `sample` from a file, as a deployment does.
  void load(const SamplePlan &sample, ContextOptions options = {}, bool separateBuffers = false) {
    // Borrowers are destroyed before the objects that they borrow.
    context_.reset();
    engine_.reset();
    const Status written = writePlan(sample.plan, sample.weightSpans(), folder_ / "plan");
    ASSERT_TRUE(written.isOk()) << written.message();
    Result<Plan> plan = Plan::load(folder_ / "plan");
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    plan_ = std::make_unique<Plan>(*std::move(plan));
    Result<Engine> engine = Engine::create(*plan_, {.device = 0,
                                                    .providerPath = "",
                                                    .provider = &provider_,
                                                    .separateBuffers = separateBuffers});
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    engine_ = std::make_unique<Engine>(*std::move(engine));
    Result<Context> context = Context::create(*engine_, options);
    contextStatus_ = context.status();
    if (context.isOk())
      context_ = std::make_unique<Context>(*std::move(context));
  }

  /// Runs "main" on x of `rows` rows.
  Result<std::vector<float>> runMain(std::vector<float> x, int64_t rows) {
    const std::vector<int64_t> sizes = {rows, 4};
    std::vector<float> y(x.size());
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    CGC_TRY(context_->run("main", {&in, 1}, {&out, 1}));
    return y;
  }

  const TempFolder folder_;
  FakeProvider provider_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Context> context_;
  Status contextStatus_;
};

TEST_F(CpuContext, RunsEachBucket) {
  load(samplePlan());
  ASSERT_TRUE(context_) << contextStatus_.message();
  Result<std::vector<float>> one = runMain({10, 20, 30, 40}, 1);
  ASSERT_TRUE(one.isOk()) << one.status().message();
  EXPECT_THAT(*one, ElementsAre(-9, -18, -27, -36));
  Result<std::vector<float>> two = runMain({0, 0, 0, 0, 1, 1, 1, 1}, 2);
  ASSERT_TRUE(two.isOk()) << two.status().message();
  EXPECT_THAT(*two, ElementsAre(1, 2, 3, 4, 0, 1, 2, 3));
  EXPECT_EQ(provider_.initialized, 1);
  EXPECT_EQ(context_->stats("main", 0)->graphNodes, 0u);
  EXPECT_EQ(context_->stats("main", 2).status().code(), Code::Usage);
}

/// A session pads a batch of fewer rows than the bucket has, also after a run of all rows.
TEST_F(CpuContext, RowsOfAWholeRunAreNotLeftInLaterPadding) {
  std::vector<float> seen;
  provider_.ops["aten::neg"] = [&](const FakeCall &f, void *stream) {
    const auto *const x = static_cast<const float *>(f.arguments[0]);
    seen.assign(x, x + f.elements(f.call.outputs[0]));
    return negate(f, stream);
  };
  load(samplePlan());
  ASSERT_TRUE(context_) << contextStatus_.message();
  ASSERT_TRUE(runMain({1, 1, 1, 1, 2, 2, 2, 2}, 2).isOk());
  std::vector<float> x = {5, 6, 7, 8}, y(4);
  const std::vector<int64_t> sizes = {1, 4};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const BucketRun run{1, RowRange{0, 1, 1}};
  const Status status = implOf(*context_).run(0, {&run, 1}, {&in, 1}, {&out, 1}, nullptr);
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_THAT(seen, ElementsAre(5, 6, 7, 8, 0, 0, 0, 0));
  EXPECT_THAT(y, ElementsAre(-4, -4, -4, -4));
}

TEST_F(CpuContext, ProfilesEachRecord) {
  load(samplePlan());
  const size_t records = plan_->data().entries[0].buckets[1].records.size();
  const auto times = context_->profile("main", 1, 3);
  ASSERT_TRUE(times.isOk()) << times.status().message();
  ASSERT_EQ(times->size(), records);
  for (const auto &runs : *times)
    EXPECT_EQ(runs.size(), 3u);
  EXPECT_EQ(context_->profile("main", 2, 3).status().code(), Code::Usage);
  EXPECT_EQ(context_->profile("nothing", 0, 3).status().code(), Code::Usage);
}

TEST_F(CpuContext, RunsWithTheGivenThreadCount) {
  load(samplePlan(), {.threads = 3});
  ASSERT_TRUE(context_) << contextStatus_.message();
  ASSERT_TRUE(runMain({1, 2, 3, 4}, 1).isOk());
  EXPECT_THAT(provider_.threads, ElementsAre(3));
  const int before = provider_.runs;
  ASSERT_TRUE(context_->profile("main", 0, 2).isOk());
  EXPECT_GT(provider_.runs, before);
  EXPECT_THAT(provider_.threads, ElementsAre(3, 3));
}

TEST_F(CpuContext, UsesTheHostsThreadCountByDefault) {
  load(samplePlan());
  ASSERT_TRUE(runMain({1, 2, 3, 4}, 1).isOk());
  ASSERT_TRUE(context_->profile("main", 0, 2).isOk());
  EXPECT_THAT(provider_.threads, testing::IsEmpty());
}

TEST_F(CpuContext, RunsAnEntryWithoutInputs) {
  load(samplePlan());
  std::vector<uint8_t> bytes(4);
  const std::vector<int64_t> sizes = {4};
  const TensorView out{bytes.data(), DType::U8, DeviceKind::Cpu, sizes, {}};
  ASSERT_TRUE(context_->run("fill", {}, {&out, 1}).isOk());
  EXPECT_THAT(bytes, Each(7));
}

TEST_F(CpuContext, APlanWithoutAtenRecordsNeedsNoProvider) {
  SamplePlan sample = samplePlan();
  sample.plan.entries.erase(sample.plan.entries.begin());
  load(sample);
  EXPECT_EQ(provider_.initialized, 0);
}

TEST_F(CpuContext, PoisonRevealsReadsOfUnwrittenMemory) {
  // The record claims to write but does not. Without poison, an older result would remain.
  bool write = true;
  provider_.ops["aten::add"] = [&](const FakeCall &f, void *stream) {
    return write ? addRows(f, stream) : Status::ok();
  };
  load(samplePlan(), {.executor = ExecutorKind::Stream, .poisonArena = true});
  EXPECT_THAT(*runMain({0, 0, 0, 0}, 1), ElementsAre(1, 2, 3, 4));
  write = false;
  const Result<std::vector<float>> y = runMain({0, 0, 0, 0}, 1);
  ASSERT_TRUE(y.isOk());
  EXPECT_THAT(*y, Each(testing::IsNan()));
}

TEST_F(CpuContext, SeparateBuffersGiveTheSameResultsAndArePoisonedToo) {
  // The distance from add's argument to its result, which is 4096 bytes in a shared arena.
  SamplePlan sample = samplePlan();
  for (Bucket &bucket : sample.plan.entries[0].buckets) {
    bucket.tensors[3].slot.offset = 4096;
    bucket.arenaBytes = 8192;
  }
  ptrdiff_t distance = 0;
  provider_.ops["aten::add"] = [&](const FakeCall &f, void *stream) {
    distance = static_cast<const std::byte *>(static_cast<const void *>(f.outputs[0])) -
               static_cast<const std::byte *>(f.arguments[0]);
    return addRows(f, stream);
  };
  for (const bool separate : {false, true}) {
    load(sample, {.executor = ExecutorKind::Stream, .poisonArena = true}, separate);
    ASSERT_TRUE(context_) << contextStatus_.message();
    EXPECT_THAT(*runMain({10, 20, 30, 40}, 1), ElementsAre(-9, -18, -27, -36));
    EXPECT_THAT(*runMain({0, 0, 0, 0, 1, 1, 1, 1}, 2), ElementsAre(1, 2, 3, 4, 0, 1, 2, 3));
    EXPECT_EQ(distance != 4096, separate);
  }
}

TEST_F(CpuContext, TensorsThatOverlapShareASeparateBuffer) {
  SamplePlan sample = samplePlan();
  for (Bucket &bucket : sample.plan.entries[0].buckets) {
    bucket.tensors[3].slot.offset = 4096;
    bucket.arenaBytes = 8192;
    // Both are in the first of these, which ends behind the second.
    bucket.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::U8, {8192}));
    bucket.tensors.push_back(dense(BufferKind::Arena, 0, 64, DType::U8, {16}));
  }
  ptrdiff_t distance = 0;
  provider_.ops["aten::add"] = [&](const FakeCall &f, void *stream) {
    distance = static_cast<const char *>(f.outputs[0]) - static_cast<const char *>(f.arguments[0]);
    return addRows(f, stream);
  };
  load(sample, {}, true);
  ASSERT_TRUE(context_) << contextStatus_.message();
  EXPECT_THAT(*runMain({10, 20, 30, 40}, 1), ElementsAre(-9, -18, -27, -36));
  EXPECT_EQ(distance, 4096);
}

TEST_F(CpuContext, PoisonCoversOutputsToo) {
  provider_.ops["aten::add"] = [](const FakeCall &, void *) { return Status::ok(); };
  SamplePlan sample = samplePlan();
  for (Bucket &bucket : sample.plan.entries[0].buckets) {
    bucket.records.pop_back();
    std::get<AtenCall>(bucket.records[1].op).outputs = {id(4)};
  }
  load(sample, {.executor = ExecutorKind::Stream, .poisonArena = true});
  const Result<std::vector<float>> y = runMain({0, 0, 0, 0}, 1);
  ASSERT_TRUE(y.isOk());
  EXPECT_THAT(*y, Each(testing::IsNan()));
}

TEST_F(CpuContext, AContextCanBeMoved) {
  load(samplePlan());
  Context moved = std::move(*context_);
  *context_ = std::move(moved);
  EXPECT_THAT(*runMain({0, 0, 0, 0}, 1), ElementsAre(1, 2, 3, 4));
}

struct Misuse {
  const char *name;
  std::string entry;
  std::vector<int64_t> inSizes, outSizes;
  std::vector<const char *> messages;
  DType dtype = DType::F32;
  size_t inputs = 1, outputs = 1;
  std::vector<int64_t> inStrides = {};
  bool data = true;
  DeviceKind device = DeviceKind::Cpu;
  DType outDtype = DType::F32;
};

class CpuContextMisuse : public CpuContext, public testing::WithParamInterface<Misuse> {};

TEST_P(CpuContextMisuse, SaysWhatDoesNotFit) {
  load(samplePlan());
  const Misuse &m = GetParam();
  std::vector<float> memory(64);
  const std::vector<TensorView> in(
      m.inputs, {m.data ? memory.data() : nullptr, m.dtype, m.device, m.inSizes, m.inStrides});
  const std::vector<TensorView> out(m.outputs,
                                    {memory.data(), m.outDtype, DeviceKind::Cpu, m.outSizes, {}});
  const Status status = context_->run(m.entry, in, out);
  EXPECT_EQ(status.code(), Code::Usage);
  for (const char *message : m.messages)
    EXPECT_THAT(status.message(), HasSubstr(message));
  EXPECT_EQ(provider_.runs, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, CpuContextMisuse,
    testing::Values(
        Misuse{"UnknownEntry", "nosuch", {1, 4}, {1, 4}, {"no entry 'nosuch'", "main, fill"}},
        Misuse{"BatchThatWasNotCompiled",
               "main",
               {3, 4},
               {3, 4},
               {"was not compiled for x=f32[3,4]", "x=f32[1,4]", "x=f32[2,4]"}},
        Misuse{"Rank", "main", {4}, {4}, {"was not compiled for x=f32[4]"}},
        Misuse{"Dtype",
               "main",
               {1, 4},
               {1, 4},
               {"input 'x' of entry 'main' is f32, and f16"},
               DType::F16},
        Misuse{"InputCount", "main", {1, 4}, {1, 4}, {"takes 1 inputs (x), and 2"}, DType::F32, 2},
        Misuse{"OutputCount", "main", {1, 4}, {1, 4}, {"1 outputs, and 0"}, DType::F32, 1, 0},
        Misuse{"OutputDtype",
               "main",
               {1, 4},
               {1, 4},
               {"output 'y' is f32[1,4], and f16[1,4]"},
               DType::F32,
               1,
               1,
               {},
               true,
               DeviceKind::Cpu,
               DType::F16},
        Misuse{"OutputShape", "main", {1, 4}, {2, 4}, {"output 'y' is f32[1,4], and f32[2,4]"}},
        Misuse{
            "Strided", "main", {2, 4}, {2, 4}, {"input 'x' is strided"}, DType::F32, 1, 1, {1, 2}},
        Misuse{"NoData",
               "main",
               {1, 4},
               {1, 4},
               {"input 'x' has no data"},
               DType::F32,
               1,
               1,
               {},
               false},
        Misuse{"OnGpu",
               "main",
               {1, 4},
               {1, 4},
               {"input 'x' lies on a GPU"},
               DType::F32,
               1,
               1,
               {},
               true,
               DeviceKind::Cuda}),
    [](const auto &info) { return info.param.name; });

/// The status of a run on `ids`, for an input of this type whose values have these bounds.
template <class T>
Status runWithIds(FakeProvider &provider, DType dtype, std::vector<T> ids,
                  std::vector<IndexBound> bounds) {
  SamplePlan sample = samplePlan();
  sample.plan.entries.erase(sample.plan.entries.begin());
  sample.plan.entries[0].buckets[0].inputs = {{.name = "text",
                                               .dtype = dtype,
                                               .sizes = {int64_t(ids.size())},
                                               .indexBounds = std::move(bounds)}};
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  EngineOptions options;
  options.provider = &provider;
  const Result<Engine> engine = Engine::create(*plan, options);
  Result<Context> context = Context::create(*engine);
  std::vector<uint8_t> bytes(4);
  const std::vector<int64_t> in = {int64_t(ids.size())}, out = {4};
  const TensorView input{ids.data(), dtype, DeviceKind::Cpu, in, {}},
      output{bytes.data(), DType::U8, DeviceKind::Cpu, out, {}};
  return context->run("fill", {&input, 1}, {&output, 1});
}

/// As above, with all values below 100.
template <class T> Status runWithIds(FakeProvider &provider, DType dtype, std::vector<T> ids) {
  const auto count = int64_t(ids.size());
  return runWithIds(provider, dtype, std::move(ids),
                    {{.end = 100, .sizes = {count}, .strides = {1}}});
}

/// The code of a run in a fork of this process.
Code runInFork(Context &context, std::string &message) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<uint8_t> bytes(4);
    const std::vector<int64_t> four = {4};
    const TensorView output{bytes.data(), DType::U8, DeviceKind::Cpu, four, {}};
    const Status status = context.run("fill", {}, {&output, 1});
    (void)!write(ends[1], status.message().data(), status.message().size());
    _exit(int(status.code()));
  }
  close(ends[1]);
  char text[1000];
  message.assign(text, std::max<ssize_t>(read(ends[0], text, sizeof(text)), 0));
  close(ends[0]);
  int exit = -1;
  EXPECT_EQ(waitpid(child, &exit, 0), child);
  EXPECT_TRUE(WIFEXITED(exit));
  return Code(WEXITSTATUS(exit));
}

TEST_F(CpuContext, AForkAfterARunIsRefused) {
  const Result<Plan> plan = Plan::fromMemory(samplePlan().plan, samplePlan().weights);
  EngineOptions options;
  options.provider = &provider_;
  const Result<Engine> engine = Engine::create(*plan, options);
  Result<Context> context = Context::create(*engine),
                  oneThread = Context::create(*engine, {.threads = 1});
  ASSERT_TRUE(oneThread.isOk()) << oneThread.status().message();
  std::vector<uint8_t> bytes(4);
  const std::vector<int64_t> four = {4};
  const TensorView output{bytes.data(), DType::U8, DeviceKind::Cpu, four, {}};
  ASSERT_TRUE(context->run("fill", {}, {&output, 1}).isOk());
  std::string message;
  EXPECT_EQ(runInFork(*context, message), Code::Usage);
  EXPECT_THAT(message,
              AllOf(HasSubstr("process " + std::to_string(getpid())), HasSubstr("threads = 1")));
  EXPECT_EQ(runInFork(*oneThread, message), Code::Ok) << message;
  EXPECT_TRUE(context->run("fill", {}, {&output, 1}).isOk());
}

TEST_F(CpuContext, EachIndexHasTheBoundOfItsOwnEmbedding) {
  // Rows of three: the first element indexes 100 rows, the last one 10, the middle one none.
  const std::vector<IndexBound> bounds = {
      {.end = 100, .offset = 0, .sizes = {2}, .strides = {3}},
      {.end = 10, .offset = 2, .sizes = {2, 1}, .strides = {3, 1}},
      {.end = 1, .offset = 5, .sizes = {0}, .strides = {1}}};
  const auto run = [&](std::vector<int64_t> ids) {
    return runWithIds<int64_t>(provider_, DType::I64, std::move(ids), bounds);
  };
  EXPECT_TRUE(run({99, -1, 9, 99, 1000, 9}).isOk());
  EXPECT_THAT(run({0, 0, 0, 100, 0, 0}).message(),
              AllOf(HasSubstr("element 3 is 100"), HasSubstr("from 0 to 99")));
  EXPECT_THAT(run({0, 0, 0, 0, 0, 10}).message(),
              AllOf(HasSubstr("element 5 is 10"), HasSubstr("from 0 to 9")));
  EXPECT_THAT(run({0, 0, -1, 0, 0, 0}).message(), HasSubstr("element 2 is -1"));
}

/// A run takes columns 3 and 4 of the caller's [2,7] for a bucket of [2,4].
TEST(CheckIndices, OfAnInnerBatchAreThoseOfTheRowsThatARunTakes) {
  const IoTensor input{.name = "ids",
                       .dtype = DType::I64,
                       .sizes = {2, 4},
                       .indexBounds = {{.end = 10, .sizes = {2, 4}, .strides = {4, 1}}},
                       .batchDim = 1};
  const std::vector<int64_t> sizes = {2, 7};
  for (size_t element = 0; element < 14; ++element) {
    std::vector<int64_t> ids(14);
    ids[element] = 10;
    const TensorView view{ids.data(), DType::I64, DeviceKind::Cpu, sizes, {}};
    const size_t column = element % 7;
    EXPECT_EQ(checkIndices({&input, 1}, {&view, 1}, RowRange{3, 2, 7}).isOk(),
              column < 3 || column > 4)
        << element;
  }
}

TEST_F(CpuContext, NegativeAndReplacedIndicesAreTakenWhereTheOpTakesThem) {
  const auto run = [&](std::vector<int64_t> ids, const IndexBound &bound) {
    return runWithIds<int64_t>(provider_, DType::I64, std::move(ids), {bound});
  };
  const IndexBound wraps = {.end = 5, .offset = 0, .sizes = {3}, .strides = {1}, .least = -5};
  EXPECT_TRUE(run({-5, 4, -1}, wraps).isOk());
  EXPECT_THAT(run({0, 0, -6}, wraps).message(),
              AllOf(HasSubstr("element 2 is -6"), HasSubstr("an index from -5 to 4")));
  EXPECT_THAT(run({0, 5, 0}, wraps).message(), HasSubstr("element 1 is 5"));
  const IndexBound shifted = {.end = 6, .offset = 0, .sizes = {3}, .strides = {1}, .least = 1};
  EXPECT_TRUE(run({1, 5, 3}, shifted).isOk());
  EXPECT_THAT(run({1, 0, 3}, shifted).message(),
              AllOf(HasSubstr("element 1 is 0"), HasSubstr("an index from 1 to 5")));
  const IndexBound exempt = {.end = 5, .offset = 0, .sizes = {3}, .strides = {1}, .exempt = -100};
  EXPECT_TRUE(run({-100, 4, 0}, exempt).isOk());
  const Status refused = run({-100, 99, 0}, exempt);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("input 'text': element 1 is 99"), HasSubstr("from 0 to 4, or -100")));
  EXPECT_THAT(run({0, 0, -1}, exempt).message(), HasSubstr("element 2 is -1"));
}

TEST_F(CpuContext, IndicesOutsideTheirEmbeddingAreRefused) {
  EXPECT_TRUE(runWithIds<int64_t>(provider_, DType::I64, {0, 99}).isOk());
  EXPECT_TRUE(runWithIds<uint8_t>(provider_, DType::U8, {0, 99}).isOk());
  const std::vector<std::pair<Status, const char *>> refusals = {
      {runWithIds<int64_t>(provider_, DType::I64, {0, 100}), "element 1 is 100"},
      {runWithIds<int64_t>(provider_, DType::I64, {-1, 0}), "element 0 is -1"},
      {runWithIds<int64_t>(provider_, DType::I64, {int64_t(1) << 32}), "element 0 is 4294967296"},
      {runWithIds<int32_t>(provider_, DType::I32, {0, 0, 100}), "element 2 is 100"},
      {runWithIds<int16_t>(provider_, DType::I16, {-5}), "element 0 is -5"},
      {runWithIds<int8_t>(provider_, DType::I8, {127}), "element 0 is 127"},
      {runWithIds<uint8_t>(provider_, DType::U8, {255}), "element 0 is 255"}};
  for (const auto &[status, message] : refusals) {
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("input 'text': "), HasSubstr(message), HasSubstr("from 0 to 99")));
  }
}

TEST_F(CpuContext, SelectBucketDependsOnInputsOnly) {
  load(samplePlan());
  const std::vector<int64_t> sizes = {2, 4};
  const TensorView in{nullptr, DType::F32, DeviceKind::Cpu, sizes, {}};
  const Result<size_t> bucket = context_->selectBucket("main", {&in, 1});
  ASSERT_TRUE(bucket.isOk());
  EXPECT_EQ(*bucket, 1u);
}

TEST_F(CpuContext, AFailingRecordNamesItsModelLine) {
  provider_.ops["aten::add"] = [](const FakeCall &, void *) {
    return Status(Code::Failed, "boom");
  };
  load(samplePlan());
  const Status status = runMain({0, 0, 0, 0}, 1).status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("entry 'main'"), HasSubstr("aten::add.Tensor (model.py:13)"),
                    HasSubstr("boom")));
}

TEST_F(CpuContext, AnOpThatCannotBeBoundIsNamedAtCreation) {
  SamplePlan sample = samplePlan();
  std::get<AtenCall>(sample.plan.entries[0].buckets[1].records[0].op).op = "aten::exotic";
  load(sample);
  EXPECT_FALSE(context_);
  EXPECT_EQ(contextStatus_.code(), Code::Unsupported);
  EXPECT_THAT(contextStatus_.message(),
              AllOf(HasSubstr("entry 'main', bucket 1"),
                    HasSubstr("aten::exotic.out (model.py:12, visual.ln)")));
}

TEST_F(CpuContext, TheProviderIsFoundForWhicheverRecordNeedsIt) {
  SamplePlan sample = samplePlan();
  std::swap(sample.plan.entries[0], sample.plan.entries[1]); // "fill" has no ATen call.
  load(sample);
  ASSERT_TRUE(context_) << contextStatus_.message();
  EXPECT_TRUE(runMain({1, 2, 3, 4}, 1));
}

TEST_F(CpuContext, ASecondThreadGetsAnError) {
  std::promise<void> entered, release;
  provider_.ops["aten::neg"] = [&](const FakeCall &f, void *stream) {
    entered.set_value();
    release.get_future().wait();
    return negate(f, stream);
  };
  load(samplePlan());
  std::future<Result<std::vector<float>>> first =
      std::async(std::launch::async, [&] { return runMain({0, 0, 0, 0}, 1); });
  entered.get_future().wait();
  const Status status = runMain({0, 0, 0, 0}, 1).status();
  release.set_value();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("another thread is running this context"));
  EXPECT_TRUE(first.get().isOk());
}

TEST_F(CpuContext, ContextsRunSideBySide) {
  load(samplePlan());
  std::vector<std::future<bool>> threads;
  for (int t = 0; t < 4; ++t)
    threads.push_back(std::async(std::launch::async, [&, t] {
      Result<Context> context = Context::create(*engine_);
      const std::vector<int64_t> sizes = {1, 4};
      for (int i = 0; i < 200 && context.isOk(); ++i) {
        std::vector<float> x(4, t + i), y(4);
        const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
        const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
        if (!context->run("main", {&in, 1}, {&out, 1}).isOk() || y[0] != 1 - x[0])
          return false;
      }
      return context.isOk();
    }));
  for (auto &thread : threads)
    EXPECT_TRUE(thread.get());
}

TEST_F(CpuContext, AMissingProviderLibrarySaysWhereItWasLookedFor) {
  const SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  EngineOptions options;
  options.providerPath = folder_.path();
  Status status = Engine::create(*plan, options).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(folder_ / "libcgc_aten.so"), HasSubstr("install it there")));
  writeFile(folder_ / "libcgc_aten.so", "not a library");
  status = Engine::create(*plan, options).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cannot load"), HasSubstr("LD_LIBRARY_PATH"),
                                      HasSubstr("CGC_LIBTORCH")));
}

TEST_F(CpuContext, TheProviderIsThatOfThePresentLibTorch) {
  if (!loadedPath("libc10.so").empty())
    GTEST_SKIP() << "the process has loaded LibTorch";
  const SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  for (const char *release : {"", "-2.15", "-9.10"})
    writeFile(folder_ / ("libcgc_aten" + std::string(release) + ".so"), "not a library");
  const char *const before = std::getenv(kLibTorchVariable);
  const std::string restored = before ? before : "";
  ASSERT_EQ(setenv(kLibTorchVariable, folder_.path().c_str(), 1), 0);
  EngineOptions options;
  options.providerPath = folder_.path();
  const auto refusal = [&](const std::string &file, const std::string &text) {
    writeFile(folder_ / file, text);
    const Status status = Engine::create(*plan, options).status();
    EXPECT_EQ(status.code(), Code::Device);
    return status.message();
  };
  const std::string release = "version.py", build = "build-version";
  const auto isFound = HasSubstr("lib/libc10.so"); // Which is missing here.
  EXPECT_THAT(refusal(release, "from typing import Optional\n__version__ = '2.16.0+cpu'\n"),
              AllOf(HasSubstr("of release 2.16"), HasSubstr("2.11.0, 2.15, 9.10 alone")));
  EXPECT_THAT(refusal(release, "__version__ = '2.15.1'\n"), isFound);
  std::filesystem::remove(folder_ / "libcgc_aten-2.15.so");
  EXPECT_THAT(refusal(release, "__version__ = '2.15.1'\n"), HasSubstr("2.11.0, 9.10 alone"));
  std::filesystem::remove(folder_ / release);
  EXPECT_THAT(refusal(build, "9.1.0a0+git\n"), HasSubstr("of release 9.1,"));
  for (const char *version : {"9.10.0a0+git\n", "2.11.4\n", "unknown\n"})
    EXPECT_THAT(refusal(build, version), isFound);
  if (before)
    setenv(kLibTorchVariable, restored.c_str(), 1);
  else
    unsetenv(kLibTorchVariable);
}

TEST_F(CpuContext, AFailingProviderFailsTheEngine) {
  const SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  provider_.initializeStatus = {Code::Device, "no luck"};
  EngineOptions options;
  options.provider = &provider_;
  EXPECT_THAT(Engine::create(*plan, options).status().message(), HasSubstr("no luck"));
}

TEST_F(CpuContext, AnArenaThatDoesNotFitComesWithTheMemoryBreakdown) {
  SamplePlan sample = samplePlan();
  sample.plan.entries[0].buckets[0].arenaBytes = uint64_t(1) << 47;
  load(sample);
  EXPECT_EQ(contextStatus_.code(), Code::OutOfMemory);
  EXPECT_THAT(contextStatus_.message(),
              AllOf(HasSubstr("140.7 TB more are needed, and the host has"),
                    HasSubstr("140.7 TB for the arena"), HasSubstr("for weights")));
}

TEST_F(CpuContext, InputsThatDoNotFitComeWithTheMemoryBreakdown) {
  SamplePlan sample = samplePlan();
  sample.plan.entries[1].buckets[0].inputs = {
      {.name = "all", .dtype = DType::U8, .sizes = {int64_t(1) << 47}}};
  load(sample);
  EXPECT_EQ(contextStatus_.code(), Code::OutOfMemory);
  EXPECT_THAT(contextStatus_.message(), HasSubstr("140.7 TB for inputs and outputs"));
}

TEST_F(CpuContext, AMemoryLimitHoldsForWeightsAndAllContexts) {
  const SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  // Weights of 16 and 3 bytes, the second after padding. An arena of 512 bytes, and 100 bytes for
  // all inputs and outputs.
  constexpr uint64_t kWeights = 256 + 3, kContext = 512 + 100;
  const auto engine = [&](uint64_t limit) {
    EngineOptions options;
    options.provider = &provider_;
    options.memoryLimit = limit;
    return Engine::create(*plan, options);
  };
  EXPECT_EQ(engine(kWeights - 1).status().code(), Code::OutOfMemory);
  const Result<Engine> small = engine(kWeights + 2 * kContext - 1);
  ASSERT_TRUE(small.isOk()) << small.status().message();
  {
    const Result<Context> first = Context::create(*small);
    ASSERT_TRUE(first.isOk()) << first.status().message();
    const Status second = Context::create(*small).status();
    EXPECT_EQ(second.code(), Code::OutOfMemory);
    EXPECT_THAT(second.message(),
                AllOf(HasSubstr("612 bytes more are needed, and of the memory limit of 1.48 kB 871 "
                                "bytes are taken"),
                      HasSubstr("512 bytes for the arena and 100 bytes for inputs")));
  }
  EXPECT_TRUE(Context::create(*small).isOk()); // The first context has released its memory.
}

TEST_F(CpuContext, WithSeparateBuffersEachBucketsArenaCounts) {
  const SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  // As above, with an arena of 512 bytes for each of two buckets.
  constexpr uint64_t kBytes = 256 + 3 + 2 * 512 + 100;
  for (const uint64_t limit : {kBytes - 1, kBytes}) {
    EngineOptions options;
    options.provider = &provider_;
    options.separateBuffers = true;
    options.memoryLimit = limit;
    const Result<Engine> engine = Engine::create(*plan, options);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    EXPECT_EQ(Context::create(*engine).isOk(), limit == kBytes);
  }
}

TEST(CudaEngine, SaysWhatIsMissing) {
  const SamplePlan sample = cudaSamplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  EngineOptions options;
  options.device = 1000;
  options.hostFunctions = {{"visual.ln.forward", [](auto, auto, void *) { return Status::ok(); }}};
  const Status status = Engine::create(*plan, options).status();
  if (status.code() == Code::Usage)
    EXPECT_THAT(status.message(), HasSubstr("there is no GPU 1000"));
  else
    EXPECT_THAT(status.message(), AllOf(HasSubstr("target cuda"), HasSubstr("--target cpu")));
}

} // namespace
} // namespace cgc::test

// Concurrency: contexts of a cpu plan run at once on several threads, in any process, and leave the
// host's LibTorch settings unchanged.
#include "runtime/exec/engine.h"
#include "runtime/plan/op_provider.h"
#include "tests/numerics/default_precision.h"
#include "tests/paths.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

namespace cgc::test {
namespace {

using testing::HasSubstr;

constexpr int kThreads = 4, kRuns = 50, kProcesses = 60;
constexpr int64_t kImage = 3 * 16 * 16, kFeatures = 8 * 14 * 14, kOut = 10;

/// A convolution and a linear layer, each run by LibTorch. Weights and inputs are small integers: a
/// sum of products stays below 2^24, so that it is exact in any order of its terms.
SamplePlan gemms() {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cpu;
  plan.producer = "test";
  const std::vector<std::vector<int64_t>> weights = {{8, 3, 3, 3}, {8}, {kOut, kFeatures}, {kOut}};
  for (size_t i = 0; i < weights.size(); ++i) {
    plan.weights.push_back(
        {.name = "w" + std::to_string(i), .dtype = DType::F32, .sizes = weights[i]});
    std::vector<float> values(*tensorBytes(DType::F32, weights[i]) / sizeof(float));
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = float((k * 37 + i) % 11) - 5;
    sample.weights.push_back(floatBytes(values));
  }
  Bucket bucket;
  bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = {1, 3, 16, 16}}};
  bucket.outputs = {{.name = "y", .dtype = DType::F32, .sizes = {1, kOut}}};
  bucket.arenaBytes = kFeatures * sizeof(float);
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, {1, 3, 16, 16}),
                    dense(BufferKind::Arena, 0, 0, DType::F32, {1, 8, 14, 14}),
                    dense(BufferKind::Arena, 0, 0, DType::F32, {1, kFeatures}),
                    dense(BufferKind::Output, 0, 0, DType::F32, {1, kOut})};
  for (uint32_t i = 0; i < weights.size(); ++i)
    bucket.tensors.push_back(dense(BufferKind::Weight, i, 0, DType::F32, weights[i]));
  using Ints = std::vector<int64_t>;
  bucket.records = {
      {AtenCall{"aten::conv2d",
                "",
                {id(0), id(4), id(5), Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, int64_t{1}},
                {id(1)},
                false}},
      {AtenCall{"aten::linear", "", {id(2), id(6), id(7)}, {id(3)}, false}},
  };
  plan.entries = {{.name = "main", .buckets = {std::move(bucket)}}};
  return sample;
}

class ConcurrentContexts : public testing::Test {
protected:
  void SetUp() override {
    const SamplePlan sample = gemms();
    const Status written = writePlan(sample.plan, sample.weightSpans(), folder_ / "plan");
    ASSERT_TRUE(written.isOk()) << written.message();
    Result<Plan> plan = Plan::load(folder_ / "plan");
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    plan_ = std::make_unique<Plan>(*std::move(plan));
    Result<Engine> engine = Engine::create(*plan_, {.providerPath = buildDir() / "lib"});
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    engine_ = std::make_unique<Engine>(*std::move(engine));
  }

  /// Returns the outputs of a context's last run, after `runs` runs on one input.
  Result<std::vector<float>> run(ContextOptions options, int runs) const {
    CGC_ASSIGN_OR_RETURN(Context context, Context::create(*engine_, options));
    std::vector<float> x(kImage), y(kOut);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i % 7) - 3;
    const std::vector<int64_t> xSizes = {1, 3, 16, 16}, ySizes = {1, kOut};
    const TensorView input{x.data(), DType::F32, DeviceKind::Cpu, xSizes, {}};
    const TensorView output{y.data(), DType::F32, DeviceKind::Cpu, ySizes, {}};
    for (int i = 0; i < runs; ++i)
      CGC_TRY(context.run("main", {&input, 1}, {&output, 1}));
    return y;
  }

  /// Runs kThreads threads with a context each. Returns the first error, or an error if their
  /// outputs differ.
  Status runOnThreads() const {
    std::vector<std::future<Result<std::vector<float>>>> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.push_back(
          std::async(std::launch::async, [this] { return run({.threads = 1}, kRuns); }));
    std::vector<Result<std::vector<float>>> results;
    for (auto &thread : threads)
      results.push_back(thread.get());
    for (const auto &result : results) {
      CGC_TRY(result.status());
      if (*result != *results[0])
        return {Code::Mismatch, "two threads have other results"};
    }
    return Status::ok();
  }

  TempFolder folder_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ConcurrentContexts, RunInSixtyProcesses) {
  int failed = 0;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const Status status = runOnThreads();
      if (!status.isOk())
        fprintf(stderr, "process %d: %s\n", i, status.message().c_str());
      _exit(status.isOk() ? 0 : 1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    failed += !(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  }
  EXPECT_EQ(failed, 0) << "of " << kProcesses << " processes";
}

TEST_F(ConcurrentContexts, ChangeNoSettingOfTheHost) {
  const DefaultFloat32Precision defaultPrecision;
  at::Context &host = at::globalContext();
  host.setAllowTF32CuBLAS(true);
  host.setAllowTF32CuDNN(true);
  const auto isHosts = [&] {
    using at::Float32Backend, at::Float32Op, at::Float32Precision;
    return host.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL) ==
               Float32Precision::TF32 &&
           host.float32Precision(Float32Backend::CUDA, Float32Op::CONV) == Float32Precision::TF32 &&
           host.float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH;
  };
  ASSERT_TRUE(isHosts());
  std::atomic<bool> over = false;
  std::future<bool> watch = std::async(std::launch::async, [&] {
    bool same = true;
    while (!over)
      same = same && isHosts();
    return same;
  });
  const Status status = runOnThreads();
  over = true;
  EXPECT_TRUE(watch.get()) << "a setting was changed for a while";
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_TRUE(host.allowTF32CuBLAS());
  EXPECT_TRUE(host.allowTF32CuDNN());
}

TEST_F(ConcurrentContexts, ResultsAgreeForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const Result<std::vector<float>> hosts = run({}, 1);
  ASSERT_TRUE(hosts.isOk()) << hosts.status().message();
  for (const int threads : {1, 3}) {
    const Result<std::vector<float>> some = run({.threads = threads}, 1);
    ASSERT_TRUE(some.isOk()) << some.status().message();
    EXPECT_EQ(*some, *hosts);
    EXPECT_EQ(at::get_num_threads(), before);
  }
}

TEST_F(ConcurrentContexts, RefuseANumberOfThreadsThatIsNone) {
  for (const int threads : {-1, kMaxIntraOpThreads + 1}) {
    const Result<Context> context = Context::create(*engine_, {.threads = threads});
    ASSERT_EQ(context.status().code(), Code::Usage);
    EXPECT_THAT(context.status().message(), HasSubstr(std::to_string(threads) + " threads"));
  }
}

TEST(ProviderThreads, AreThoseOfTheCallAlone) {
  void *library = dlopen((buildDir() / "lib/libcgc_aten.so").c_str(), RTLD_NOW);
  ASSERT_TRUE(library) << dlerror();
  const auto factory = reinterpret_cast<OpProviderFactory>(dlsym(library, kOpProviderSymbol));
  ASSERT_TRUE(factory) << dlerror();
  const std::unique_ptr<OpProvider> provider(factory(kOpProviderAbi));
  ASSERT_TRUE(provider);
  ASSERT_TRUE(provider->initialize(DeviceKind::Cpu, 0).isOk());
  // On a thread that has not used LibTorch, and on one that has.
  // OpenMP's number and MKL's, which is inside LibTorch.
  using MklThreads = int();
  auto *const mklThreads =
      reinterpret_cast<MklThreads *>(dlsym(RTLD_DEFAULT, "MKL_Get_Max_Threads"));
  const auto threads = [mklThreads] {
    const int openMp = at::get_num_threads();
    EXPECT_TRUE(!mklThreads || mklThreads() == openMp) << mklThreads();
    return openMp;
  };
  const int before = threads();
  const auto inside = [&] {
    std::vector<int> seen;
    const Status status = provider->withThreads(before + 2, [&] {
      seen = {threads(), std::async(std::launch::async, threads).get()};
      return Status::ok();
    });
    EXPECT_TRUE(status.isOk()) << status.message();
    seen.push_back(threads());
    return seen;
  };
  EXPECT_EQ(inside(), (std::vector<int>{before + 2, before, before}));
  EXPECT_EQ(std::async(std::launch::async, inside).get(),
            (std::vector<int>{before + 2, before, before}));
  // An error of the body is returned, and the setting is restored.
  EXPECT_EQ(provider->withThreads(before + 2, [] { return Status(Code::Failed, "x"); }).message(),
            "x");
  EXPECT_EQ(threads(), before);
}

} // namespace
} // namespace cgc::test

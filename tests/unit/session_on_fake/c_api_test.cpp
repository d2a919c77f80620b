// The options of the C API that need GPUs, on the fake GPU.
#include "runtime/c_api/handles.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <cuda_runtime_api.h>

#include <functional>

namespace cgc::test {
namespace {

using testing::HasSubstr;

/// y = x of f32[N,4], through the arena, with N in 1, 4. Its records need no provider, which the C
/// API cannot be given.
SamplePlan copyPlan() {
  SamplePlan sample;
  sample.plan.target = DeviceKind::Cuda;
  sample.plan.producer = "test";
  sample.plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {4}}};
  sample.weights = {floatBytes({1, 2, 3, 4})};
  Entry rows{.name = "rows", .buckets = {}, .rows = {.independent = true}};
  for (const int64_t n : {1, 4}) {
    Bucket bucket;
    const std::vector<int64_t> sizes = {n, 4};
    bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = sizes, .batchDim = 0}};
    bucket.outputs = {{.name = "y", .dtype = DType::F32, .sizes = sizes, .batchDim = 0}};
    bucket.arenaBytes = 256;
    bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Arena, 0, 0, DType::F32, sizes),
                      dense(BufferKind::Output, 0, 0, DType::F32, sizes)};
    bucket.records = {{Memcpy{id(0), id(1)}}, {Memcpy{id(1), id(2)}}};
    rows.buckets.push_back(bucket);
  }
  sample.plan.entries = {rows};
  return sample;
}

class CApiOnGpu : public testing::Test {
protected:
  CApiOnGpu() { fake_cuda::reset({.devices = 2}); }
  ~CApiOnGpu() override {
    cgc_session_destroy(session_);
    fake_cuda::reset();
  }

  /// Creates the session with these options in place of the last one.
  void create(const std::function<void(cgc_session_options &)> &change = [](auto &) {}) {
    cgc_session_destroy(session_);
    session_ = nullptr;
    cgc_session_options options = CGC_INIT(cgc_session_options);
    change(options);
    cgc_error *error = nullptr;
    ASSERT_EQ(cgc_session_create(&plan_, &options, &session_, &error), CGC_OK)
        << cgc_error_message(error);
  }
  /// Creates no session: `code`, with a message that contains `text`.
  void refuse(cgc_code code, const std::string &text,
              const std::function<void(cgc_session_options &)> &change) {
    cgc_session_options options = CGC_INIT(cgc_session_options);
    change(options);
    cgc_session *session = nullptr;
    expect(code, text, [&](cgc_error **error) {
      return cgc_session_create(&plan_, &options, &session, error);
    });
    EXPECT_EQ(session, nullptr);
  }
  static void expect(cgc_code code, const std::string &text,
                     const std::function<cgc_code(cgc_error **)> &call) {
    cgc_error *error = nullptr;
    EXPECT_EQ(call(&error), code) << cgc_error_message(error);
    EXPECT_THAT(cgc_error_message(error), HasSubstr(text));
    cgc_error_destroy(error);
  }

  /// Tensors of `rows` rows in the memory of a GPU, which is host memory on the fake one.
  struct Tensors {
    explicit Tensors(int64_t rows, int device = 0) : sizes{rows, 4} {
      (void)cudaSetDevice(device);
      for (float **data : {&x, &y})
        EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(data), bytes()), cudaSuccess);
      (void)cudaSetDevice(0);
      for (int64_t i = 0; i < 4 * rows; ++i)
        x[i] = float(i), y[i] = -1;
    }
    Tensors(const Tensors &) = delete;
    ~Tensors() {
      (void)cudaFree(x);
      (void)cudaFree(y);
    }
    size_t bytes() const { return size_t(sizes[0]) * 4 * sizeof(float); }
    bool isRight() const { return std::equal(x, x + 4 * sizes[0], y); }
    int64_t sizes[2];
    float *x = nullptr, *y = nullptr;
  };
  cgc_code run(const Tensors &tensors, cudaStream_t stream = nullptr, cgc_error **error = nullptr) {
    const cgc_tensor in = {tensors.x, tensors.sizes, 2, CGC_F32, CGC_GPU},
                     out = {tensors.y, tensors.sizes, 2, CGC_F32, CGC_GPU};
    return cgc_session_run(session_, "rows", &in, 1, &out, 1, stream, error);
  }
  cgc_session_stats stats() const {
    cgc_session_stats stats = CGC_INIT(cgc_session_stats);
    EXPECT_EQ(cgc_session_get_stats(session_, &stats, nullptr), CGC_OK);
    return stats;
  }
  cgc_memory_report memory() const {
    cgc_memory_report report = CGC_INIT(cgc_memory_report);
    EXPECT_EQ(cgc_session_get_memory(session_, &report, nullptr), CGC_OK);
    return report;
  }
  static size_t callsOf(const std::string &part) {
    return size_t(std::ranges::count_if(fake_cuda::calls(), [&](const fake_cuda::Call &call) {
      return call.function.find(part) != std::string_view::npos;
    }));
  }

  const SamplePlan sample_ = copyPlan();
  cgc_plan plan_{toPlan(sample_)};
  cgc_session *session_ = nullptr;
};

TEST_F(CApiOnGpu, DevicesAndContexts) {
  create();
  const cgc_memory_report one = memory();
  EXPECT_GT(fake_cuda::allocatedBytes(0), 0u);
  EXPECT_EQ(fake_cuda::allocatedBytes(1), 0u);
  const int32_t second = 1, both[] = {1, 0}, none = 2;
  create([&](auto &o) { o.devices = &second, o.device_count = 1; });
  EXPECT_EQ(fake_cuda::allocatedBytes(0), 0u);
  const Tensors there(3, 1);
  EXPECT_EQ(run(there), CGC_OK);
  EXPECT_TRUE(there.isRight());
  create([&](auto &o) { o.devices = both, o.device_count = 2, o.contexts = 3; });
  EXPECT_EQ(memory().weights, 2 * one.weights);
  EXPECT_EQ(memory().arenas, 6 * one.arenas);
  EXPECT_EQ(memory().io, 6 * one.io);
  refuse(CGC_USAGE, "no GPU 2", [&](auto &o) { o.devices = &none, o.device_count = 1; });
  refuse(CGC_USAGE, "devices is null", [&](auto &o) { o.device_count = 1; });
  refuse(CGC_USAGE, "threads are for a plan with target cpu", [](auto &o) { o.threads = 2; });
}

TEST_F(CApiOnGpu, ExecutorAndTimeOfCapture) {
  const Tensors tensors(4);
  create();
  EXPECT_EQ(stats().captures, 2u);
  EXPECT_EQ(run(tensors), CGC_OK);
  EXPECT_EQ(stats().replays, 1u);
  create([](auto &o) { o.executor = CGC_STREAM; });
  EXPECT_EQ(stats().captures, 0u);
  EXPECT_EQ(run(tensors), CGC_OK);
  EXPECT_EQ(stats().replays, 0u);
  create([](auto &o) { o.capture_on_first_use = 1; });
  EXPECT_EQ(stats().captures, 0u);
  EXPECT_EQ(cgc_session_prepare(session_, "rows", 4, nullptr), CGC_OK);
  EXPECT_EQ(stats().captures, 1u);
  EXPECT_EQ(run(tensors), CGC_OK);
  EXPECT_EQ(stats().captures, 1u);
}

TEST_F(CApiOnGpu, AddressSets) {
  const Tensors a(4), b(4);
  const auto copies = [&](int32_t sets) {
    create([&](auto &o) { o.address_sets = sets; });
    EXPECT_EQ(run(a), CGC_OK);
    EXPECT_EQ(run(b), CGC_OK);
    fake_cuda::clearCalls();
    EXPECT_EQ(run(a), CGC_OK);
    return std::pair(callsOf("cudaMemcpyAsync"), callsOf("SetParams"));
  };
  EXPECT_EQ(copies(-1), std::pair(size_t(2), size_t(0))); // Not in place.
  EXPECT_EQ(copies(1), std::pair(size_t(0), size_t(2)));  // b had taken the executable.
  EXPECT_EQ(copies(2), std::pair(size_t(0), size_t(0)));
  EXPECT_EQ(copies(0), std::pair(size_t(0), size_t(0))); // The default is 4.
  EXPECT_TRUE(a.isRight());
}

TEST_F(CApiOnGpu, CapturedContexts) {
  const Tensors tensors(4);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto capture = [&](cgc_error **error) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    const cgc_code code = run(tensors, stream, error);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    return code;
  };
  create();
  expect(CGC_USAGE, "no context for graphs of the caller", capture);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  create([](auto &o) { o.captured_contexts = 1; });
  EXPECT_EQ(capture(nullptr), CGC_OK);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_TRUE(tensors.isRight());
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CApiOnGpu, PoolsAndLimits) {
  cgc_memory_pool *pool = nullptr;
  ASSERT_EQ(cgc_memory_pool_create(CGC_GPU, 1, 0, &pool, nullptr), CGC_OK);
  refuse(CGC_USAGE, "of another device than the engine", [&](auto &o) { o.pool = pool; });
  const int32_t second = 1;
  create([&](auto &o) { o.pool = pool, o.devices = &second, o.device_count = 1; });
  cgc_pool_report report = CGC_INIT(cgc_pool_report);
  EXPECT_EQ(cgc_memory_pool_get_report(pool, &report, nullptr), CGC_OK);
  EXPECT_EQ(report.weights, memory().weights);
  EXPECT_GE(report.arenas, memory().arenas);
  EXPECT_GE(report.peak, memory().peak);
  cgc_memory_pool_destroy(pool);
  expect(CGC_USAGE, "no GPU 2",
         [&](cgc_error **error) { return cgc_memory_pool_create(CGC_GPU, 2, 0, &pool, error); });
  refuse(CGC_OUT_OF_MEMORY, "of the memory limit of 20 bytes",
         [](auto &o) { o.memory_limit = 20; });
}

TEST_F(CApiOnGpu, TheOptionsOfACommunicatorArriveInTheirUnits) {
  const cgc_communicator_id id = {};
  const auto refused = [&](const std::string &text, auto change) {
    expect(CGC_USAGE, text, [&](cgc_error **error) {
      cgc_communicator_options options = CGC_INIT(cgc_communicator_options);
      change(options);
      cgc_communicator *communicator = nullptr;
      return cgc_communicator_create(&id, &options, &communicator, error);
    });
  };
  constexpr int64_t kYear = int64_t(1000) * 60 * 60 * 24 * 365;
  refused("not " + std::to_string(kYear + 1) + " ms", [](auto &o) { o.timeout_ms = kYear + 1; });
  refused("not -1 ms", [](auto &o) { o.timeout_ms = -1; });
  refused("at least 1 rank, not -3", [](auto &o) { o.ranks = -3; });
  refused("rank 1 is not one of the 1 ranks", [](auto &o) { o.rank = 1; });
  refused("not -2", [](auto &o) { o.device = -2; });
}

TEST_F(CApiOnGpu, ReservationsNameTheirGpu) {
  const int32_t both[] = {0, 1};
  create([&](auto &o) { o.devices = both, o.device_count = 2, o.timeout_ms = 1; });
  cgc_reservation *reserved = nullptr;
  for (const int32_t device : {1, 0}) {
    ASSERT_EQ(cgc_session_reserve(session_, "rows", 3, device, &reserved, nullptr), CGC_OK);
    EXPECT_EQ(cgc_reservation_device(reserved), device);
    cgc_tensor in = {}, out = {};
    EXPECT_EQ(cgc_reservation_tensor(reserved, CGC_INPUT, 0, &in, nullptr), CGC_OK);
    EXPECT_EQ(cgc_reservation_tensor(reserved, CGC_OUTPUT, 0, &out, nullptr), CGC_OK);
    EXPECT_EQ(in.memory, CGC_GPU);
    auto *const x = static_cast<float *>(in.data);
    for (int i = 0; i < 12; ++i)
      x[i] = float(device + i);
    EXPECT_EQ(cgc_reservation_run(reserved, nullptr, nullptr), CGC_OK);
    EXPECT_TRUE(std::equal(x, x + 12, static_cast<float *>(out.data)));
    // Its GPU has no other context.
    const Tensors there(4, device);
    expect(CGC_BUSY, "", [&](cgc_error **error) { return run(there, nullptr, error); });
    cgc_reservation_destroy(reserved);
    EXPECT_EQ(run(there), CGC_OK);
  }
  expect(CGC_USAGE, "no contexts on GPU 7", [&](cgc_error **error) {
    return cgc_session_reserve(session_, "rows", 3, 7, &reserved, error);
  });
}

/// A run on a stream waits for nothing, and comes after what the stream has to do before.
TEST_F(CApiOnGpu, ReservationsRunOnTheStreamOfTheCaller) {
  create();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  cgc_reservation *reserved = nullptr;
  ASSERT_EQ(cgc_session_reserve(session_, "rows", 4, 0, &reserved, nullptr), CGC_OK);
  cgc_tensor in = {}, out = {};
  EXPECT_EQ(cgc_reservation_tensor(reserved, CGC_INPUT, 0, &in, nullptr), CGC_OK);
  EXPECT_EQ(cgc_reservation_tensor(reserved, CGC_OUTPUT, 0, &out, nullptr), CGC_OK);
  const Tensors tensors(4);
  EXPECT_EQ(cudaMemcpyAsync(in.data, tensors.x, tensors.bytes(), cudaMemcpyDeviceToDevice, stream),
            cudaSuccess);
  fake_cuda::clearCalls();
  EXPECT_EQ(cgc_reservation_run(reserved, stream, nullptr), CGC_OK);
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_TRUE(std::equal(tensors.x, tensors.x + 16, static_cast<float *>(out.data)));
  cgc_reservation_destroy(reserved);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CApiOnGpu, BatchesAndMessages) {
  std::vector<std::string> messages;
  create([&](auto &o) {
    o.max_batch = 5;
    o.log_user = &messages;
    o.log = [](void *user, cgc_log_level, const char *message) {
      static_cast<std::vector<std::string> *>(user)->emplace_back(message);
    };
  });
  const Tensors five(5), six(6);
  EXPECT_EQ(run(five), CGC_OK); // Split.
  EXPECT_TRUE(five.isRight());
  EXPECT_EQ(stats().splits, 1u);
  expect(CGC_USAGE, "above the session's limit of 5",
         [&](cgc_error **error) { return run(six, nullptr, error); });
  EXPECT_THAT(messages, testing::Contains(HasSubstr("above the session's limit of 5")));
}

} // namespace
} // namespace cgc::test

// serve_cpp PLAN ENTRY [THREADS [SECONDS]]: serves random batches of an entry from several threads.
#include "runtime/session/session.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

constexpr int64_t kMaxBatch = 200;

/// Zeros for a list of tensors, as views of any batch up to kMaxBatch.
struct Tensors {
  explicit Tensors(const std::vector<cgc::IoTensor> &types) : bytes(types.size()) {
    for (size_t i = 0; i < types.size(); ++i) {
      sizes.push_back(types[i].sizes);
      batchDims.push_back(types[i].batchDim);
      setBatch(i, kMaxBatch);
      bytes[i].resize(*cgc::tensorBytes(types[i].dtype, sizes[i]));
      views.push_back({bytes[i].data(), types[i].dtype, cgc::DeviceKind::Cpu, sizes[i], {}});
    }
  }
  void setBatch(size_t i, int64_t batch) {
    if (batchDims[i] != cgc::kNoBatchDim)
      sizes[i][batchDims[i]] = batch;
  }
  const std::vector<cgc::TensorView> &withBatch(int64_t batch) {
    for (size_t i = 0; i < views.size(); ++i) {
      setBatch(i, batch);
      views[i].sizes = sizes[i];
    }
    return views;
  }
  std::vector<std::vector<char>> bytes;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<int32_t> batchDims;
  std::vector<cgc::TensorView> views;
};

int main(int argc, char **argv) {
  if (argc < 3)
    return std::fprintf(stderr, "usage: serve_cpp PLAN ENTRY [THREADS [SECONDS]]\n"), 2;
  const std::string entry = argv[2];
  const int threads = argc > 3 ? std::atoi(argv[3]) : 4,
            seconds = argc > 4 ? std::atoi(argv[4]) : 5;
  auto session = cgc::Session::load(argv[1], {.contexts = 2});
  if (!session)
    return std::fprintf(stderr, "serve_cpp: %s\n", session.status().message().c_str()), 1;
  const std::shared_ptr<const cgc::Plan> plan = session->plan();
  const cgc::Entry *const found = plan->data().findEntry(entry);
  if (!found)
    return std::fprintf(stderr, "serve_cpp: the plan has no entry '%s'\n", argv[2]), 2;

  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::vector<std::thread> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      Tensors inputs(found->buckets[0].inputs), outputs(found->buckets[0].outputs);
      std::mt19937 random(thread);
      std::uniform_int_distribution<int64_t> batches(1, kMaxBatch);
      while (std::chrono::steady_clock::now() < end) {
        const int64_t n = batches(random);
        if (const cgc::Status status =
                session->run(entry, inputs.withBatch(n), outputs.withBatch(n));
            !status.isOk())
          std::fprintf(stderr, "serve_cpp: %s\n", status.message().c_str());
      }
    });
  for (std::thread &worker : workers)
    worker.join();
  const cgc::SessionStats stats = session->stats();
  std::printf("%llu requests, %llu rows, %llu failures\n", (unsigned long long)stats.requests,
              (unsigned long long)stats.rows, (unsigned long long)stats.failures);
  return stats.failures ? 1 : 0;
}

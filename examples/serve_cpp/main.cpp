// serve_cpp PLAN ENTRY [THREADS [SECONDS]]: serves random batches of a tower from several threads.
#include "runtime/session/session.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

constexpr int64_t kMaxBatch = 200;

/// Memory for kMaxBatch rows of a tensor, at first zeros.
struct Rows {
  explicit Rows(const cgc::IoTensor &tensor) : dtype(tensor.dtype), sizes(tensor.sizes) {
    sizes[0] = kMaxBatch;
    bytes.resize(*cgc::tensorBytes(dtype, sizes));
  }
  cgc::TensorView first(int64_t batch) {
    sizes[0] = batch;
    return {bytes.data(), dtype, cgc::DeviceKind::Cpu, sizes, {}};
  }
  cgc::DType dtype;
  std::vector<int64_t> sizes;
  std::vector<char> bytes;
};

int main(int argc, char **argv) {
  if (argc < 3)
    return std::fprintf(stderr, "usage: serve_cpp PLAN ENTRY [THREADS [SECONDS]]\n"), 2;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 4;
  const std::chrono::seconds time(argc > 4 ? std::atoi(argv[4]) : 5);
  auto session = cgc::Session::load(argv[1], {.contexts = 2});
  if (!session)
    return std::fprintf(stderr, "serve_cpp: %s\n", session.status().message().c_str()), 1;
  const cgc::Entry *const entry = session->plan()->data().findEntry(argv[2]);
  if (!entry || entry->buckets[0].inputs.size() != 1 || entry->buckets[0].outputs.size() != 1)
    return std::fprintf(stderr, "serve_cpp: the plan has no tower '%s'\n", argv[2]), 2;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&, i, end = std::chrono::steady_clock::now() + time] {
      Rows input(entry->buckets[0].inputs[0]), output(entry->buckets[0].outputs[0]);
      std::mt19937 random(i);
      while (std::chrono::steady_clock::now() < end) {
        const int64_t batch = 1 + int64_t(random() % kMaxBatch);
        const cgc::TensorView in = input.first(batch), out = output.first(batch);
        if (const cgc::Status status = session->run(argv[2], {&in, 1}, {&out, 1}); !status.isOk())
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

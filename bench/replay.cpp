// Times the runs of one bucket of a CUDA plan: latency (submit to result visible) and back-to-back,
// inputs and outputs on the device. Prints one JSON object. bench/peers.py measures LibTorch the
// same way.
#include "runtime/exec/engine.h"

#include <CLI/CLI.hpp>
#include <cuda_runtime_api.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUps = 20;
constexpr int kSamples = 50;       // of each figure; the median is reported
constexpr int kRunsPerSample = 40; // back-to-back runs between two synchronisations

double millisSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

[[noreturn]] void fail(const cgc::Status &status) {
  std::fprintf(stderr, "cgc_bench_replay: %s\n", status.message().c_str());
  std::exit(1);
}

void check(cudaError_t error) {
  if (error != cudaSuccess)
    fail(cgc::Status(cgc::Code::Device, cudaGetErrorString(error)));
}

/// Device buffers for the inputs (small random numbers that are valid in every dtype) or outputs of
/// a bucket.
struct DeviceTensors {
  explicit DeviceTensors(const std::vector<cgc::IoTensor> &tensors) {
    std::mt19937 random(0);
    for (const cgc::IoTensor &tensor : tensors) {
      uint64_t bytes = *cgc::tensorBytes(tensor.dtype, tensor.sizes);
      std::vector<uint8_t> host(bytes);
      // 16-bit floats by their bits: magnitudes of 2^-5 to 2^-1 and either sign. Ids: below 256.
      for (uint64_t i = 0; i < bytes; i += cgc::dtypeSize(tensor.dtype))
        switch (tensor.dtype) {
        case cgc::DType::F32: {
          float value = std::normal_distribution<float>()(random);
          std::memcpy(&host[i], &value, 4);
          break;
        }
        case cgc::DType::F16: {
          uint16_t value =
              static_cast<uint16_t>(0x2800 + (random() & 0x0fff) + (random() & 0x8000));
          std::memcpy(&host[i], &value, 2);
          break;
        }
        case cgc::DType::BF16: {
          uint16_t value =
              static_cast<uint16_t>(0x3d00 + (random() & 0x01ff) + (random() & 0x8000));
          std::memcpy(&host[i], &value, 2);
          break;
        }
        default:
          host[i] = static_cast<uint8_t>(random());
          break;
        }
      void *device = nullptr;
      check(cudaMalloc(&device, std::max<uint64_t>(bytes, 1)));
      check(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
      views.push_back({device, tensor.dtype, cgc::DeviceKind::Cuda, tensor.sizes, {}});
    }
  }
  std::vector<cgc::TensorView> views;
};

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Times the runs of one bucket of a CUDA plan.");
  std::string planPath, entryName, executor = "graph";
  size_t bucketIndex = 0;
  app.add_option("plan", planPath)->required();
  app.add_option("--entry", entryName)->required();
  app.add_option("--bucket", bucketIndex, "index of the bucket");
  bool plainEdges = false;
  app.add_flag("--no-pdl", plainEdges);
  app.add_option("--executor", executor)->check(CLI::IsMember({"graph", "stream"}));
  CLI11_PARSE(app, argc, argv);

  auto plan = cgc::Plan::load(planPath);
  if (!plan)
    fail(plan.status());
  const cgc::Entry *entry = plan->data().findEntry(entryName);
  if (!entry || bucketIndex >= entry->buckets.size())
    fail(cgc::Status(cgc::Code::Usage, "no such entry or bucket: " + entryName));
  const cgc::Bucket &bucket = entry->buckets[bucketIndex];

  auto loadStart = Clock::now();
  auto engine = cgc::Engine::create(*plan);
  if (!engine)
    fail(engine.status());
  cgc::ContextOptions options;
  options.executor = executor == "graph" ? cgc::ExecutorKind::Graph : cgc::ExecutorKind::Stream;
  options.programmaticEdges = !plainEdges;
  auto context = cgc::Context::create(*engine, options);
  if (!context)
    fail(context.status());
  double loadMillis = millisSince(loadStart);

  DeviceTensors inputs(bucket.inputs), outputs(bucket.outputs);
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto runOnce = [&] {
    if (cgc::Status status = context->run(entryName, inputs.views, outputs.views, stream);
        !status.isOk())
      fail(status);
  };

  for (int i = 0; i < kWarmUps; ++i)
    runOnce();
  check(cudaStreamSynchronize(stream));

  std::vector<double> latency, backToBack;
  for (int i = 0; i < kSamples; ++i) {
    auto start = Clock::now();
    runOnce();
    check(cudaStreamSynchronize(stream));
    latency.push_back(millisSince(start));
  }
  for (int i = 0; i < kSamples; ++i) {
    auto start = Clock::now();
    for (int j = 0; j < kRunsPerSample; ++j)
      runOnce();
    check(cudaStreamSynchronize(stream));
    backToBack.push_back(millisSince(start) / kRunsPerSample);
  }

  cgc::BucketStats stats = *context->stats(entryName, bucketIndex);
  nlohmann::json result = {{"system", "cgc " + executor},
                           {"entry", entryName},
                           {"input", bucket.inputs[0].sizes},
                           {"dtype", cgc::dtypeName(bucket.outputs[0].dtype)},
                           {"samples", kSamples},
                           {"latency_ms", median(latency)},
                           {"back_to_back_ms", median(backToBack)},
                           {"load_and_capture_all_ms", loadMillis},
                           {"capture_ms", stats.captureMillis},
                           {"graph_nodes", stats.graphNodes},
                           {"records", bucket.records.size()}};
  std::puts(result.dump().c_str());
  return 0;
}

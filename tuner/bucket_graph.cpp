// BucketGraphs: allocates memory, captures graphs, and times replays between two events.
#include "tuner/bucket_graph.h"

#include "runtime/plan/branches.h"
#include "runtime/plan/plan_memory.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace cgc::tuner {
namespace {

constexpr double kSampleMicros = 5000;
constexpr int kMostRuns = 50;

/// Magnitudes from one half to two with random signs, because a GPU that multiplies zeros runs
/// faster. Zeros, which are valid indices, for dtypes other than f32, f16 and bf16.
std::vector<std::byte> randomBytes(DType dtype, uint64_t bytes) {
  std::vector<std::byte> values(bytes);
  if (dtype != DType::F32 && dtype != DType::F16 && dtype != DType::BF16)
    return values;
  const int mantissaBits = dtype == DType::F32 ? 23 : dtype == DType::F16 ? 10 : 7;
  const int exponentBits = dtype == DType::F16 ? 5 : 8;
  const uint32_t half =
      (1u << (exponentBits - 1)) - 2; // The biased exponent of 0.5; that of 1 is one more.
  std::minstd_rand random;
  const size_t size = dtypeSize(dtype);
  for (uint64_t at = 0; at < bytes; at += size) {
    const uint32_t r = random(), mantissa = random() & ((1u << mantissaBits) - 1);
    const uint32_t bits =
        (r & 1) << (mantissaBits + exponentBits) | (half + (r >> 1 & 1)) << mantissaBits | mantissa;
    std::memcpy(&values[at], &bits, size); // Copies the low bytes: little-endian.
  }
  return values;
}

Result<CudaEvent> createTimer() {
  cudaEvent_t event = nullptr;
  CGC_TRY(CGC_CUDA(cudaEventCreate(&event), "cannot create an event"));
  return CudaEvent(event);
}

} // namespace

Result<PlanStates> PlanStates::create(const Plan &plan) {
  PlanStates states;
  const std::vector<State> &all = plan.data().states;
  const std::vector<uint64_t> offsets = stateOffsets(plan.data());
  const uint64_t bytes = offsets.back();
  CGC_ASSIGN_OR_RETURN(states.values_, Buffer::allocate(DeviceKind::Cuda, bytes));
  CGC_ASSIGN_OR_RETURN(states.first_, Buffer::allocate(DeviceKind::Cuda, bytes));
  CGC_TRY(CGC_CUDA(cudaMemset(states.first_.data(), 0, bytes), "cannot clear the states"));
  for (size_t i = 0; i < all.size(); ++i) {
    states.addresses_.push_back(states.values_.data() + offsets[i]);
    if (all[i].initial == kBeginsAsZeros)
      continue;
    const auto first = plan.weightBytes(all[i].initial);
    CGC_TRY(CGC_CUDA(cudaMemcpy(states.first_.data() + offsets[i], first.data(), first.size(),
                                cudaMemcpyHostToDevice),
                     "cannot copy a state to the GPU"));
  }
  CGC_TRY(states.reset(nullptr));
  CGC_TRY(CGC_CUDA(cudaDeviceSynchronize(), "cannot set the states"));
  return states;
}

Status PlanStates::reset(cudaStream_t stream) const {
  return CGC_CUDA(cudaMemcpyAsync(values_.data(), first_.data(), first_.size(),
                                  cudaMemcpyDeviceToDevice, stream),
                  "cannot set the states");
}

Result<BucketGraphs> BucketGraphs::create(const Engine::Impl &engine, const CublasLt *cublasLt,
                                          const PlanStates &states, const Bucket &bucket) {
  BucketGraphs graphs(engine, cublasLt, states, bucket);
  CGC_ASSIGN_OR_RETURN(graphs.stream_, createStream());
  CGC_ASSIGN_OR_RETURN(graphs.branches_,
                       BranchStreams::create(largestBranch(bucket), detachedRecords(bucket)));
  CGC_ASSIGN_OR_RETURN(graphs.start_, createTimer());
  CGC_ASSIGN_OR_RETURN(graphs.end_, createTimer());
  CGC_ASSIGN_OR_RETURN(graphs.arena_, Buffer::allocate(DeviceKind::Cuda, bucket.arenaBytes));
  graphs.memory_.device = DeviceKind::Cuda;
  graphs.memory_.weights = &engine.weights;
  graphs.memory_.states = &states.addresses();
  graphs.memory_.arena = {{0, graphs.arena_.data()}};
  for (const IoTensor &input : bucket.inputs) {
    const auto values = randomBytes(input.dtype, *tensorBytes(input.dtype, input.sizes));
    CGC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::allocate(DeviceKind::Cuda, values.size()));
    CGC_TRY(
        CGC_CUDA(cudaMemcpy(buffer.data(), values.data(), values.size(), cudaMemcpyHostToDevice),
                 "cannot copy an input to the GPU"));
    graphs.memory_.inputs.push_back(std::move(buffer));
  }
  for (const IoTensor &output : bucket.outputs) {
    CGC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::allocate(DeviceKind::Cuda,
                                                         *tensorBytes(output.dtype, output.sizes)));
    graphs.memory_.outputs.push_back(std::move(buffer));
  }
  return graphs;
}

Result<std::unique_ptr<CapturedBucket>>
BucketGraphs::capture(const std::vector<LaunchRecord> &records, bool inBranches) {
  bucket_.records = records;
  std::vector<std::string> notes;
  CGC_ASSIGN_OR_RETURN(auto bound,
                       bindRecords(engine_.plan.data(), bucket_, memory_,
                                   {engine_.provider, cublasLt_, engine_.opLibraries}, notes));
  if (!inBranches)
    removeBranches(bound);
  makeProgrammaticEdges(bound);
  const auto enqueueRun = [&] { return branches_.enqueue(bound, engine_.provider, stream_.get()); };
  CGC_TRY(GraphExecutor::warmUp(enqueueRun, stream_.get()));
  CGC_ASSIGN_OR_RETURN(
      GraphExecutor graph,
      GraphExecutor::capture(enqueueRun, engine_.provider, stream_.get(), branches_.streams()));
  return std::make_unique<CapturedBucket>(std::move(bound), std::move(graph));
}

Result<double> BucketGraphs::timeRuns(CapturedBucket &captured, int runs) {
  CGC_TRY(states_.reset(stream_.get()));
  // An untimed run first: an idle GPU would wait for the host between the events.
  CGC_TRY(captured.graph.run(stream_.get()));
  CGC_TRY(CGC_CUDA(cudaEventRecord(start_.get(), stream_.get()), "cannot record an event"));
  for (int i = 0; i < runs; ++i)
    CGC_TRY(captured.graph.run(stream_.get()));
  CGC_TRY(CGC_CUDA(cudaEventRecord(end_.get(), stream_.get()), "cannot record an event"));
  CGC_TRY(CGC_CUDA(cudaStreamSynchronize(stream_.get()), "the timed run failed"));
  float millis = 0;
  CGC_TRY(CGC_CUDA(cudaEventElapsedTime(&millis, start_.get(), end_.get()),
                   "cannot read the time between two events"));
  return double(millis) * 1e3 / runs;
}

Result<double> BucketGraphs::time(CapturedBucket &captured) {
  CGC_ASSIGN_OR_RETURN(const double once, timeRuns(captured, 1));
  const double runs = kSampleMicros / std::max(once, 1.0);
  return timeRuns(captured, int(std::clamp<double>(runs, 1, kMostRuns)));
}

void *BucketGraphs::address(TensorId id) const {
  return addressOf(bucket_.tensors[uint32_t(id)].slot, memory_);
}

} // namespace cgc::tuner

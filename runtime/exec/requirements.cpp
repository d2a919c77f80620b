// requirementsOf: collects a plan's requirements in one pass over its records.
#include "runtime/exec/requirements.h"

#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/collective_call.h"
#include "runtime/plan/gemm_call.h"

#include <algorithm>

namespace cgc {
namespace {

/// The ATen ops of one entry, by name.
std::map<std::string, Requirements::LibTorchOp> libTorchOps(const Entry &entry) {
  std::map<std::string, Requirements::LibTorchOp> ops;
  for (const Bucket &bucket : entry.buckets) {
    std::map<std::string, size_t> counts;
    for (const LaunchRecord &record : bucket.records)
      if (std::holds_alternative<AtenCall>(record.op)) {
        const std::string name = recordName(record);
        ++counts[name];
        ops.try_emplace(name, Requirements::LibTorchOp{0, record.location});
      }
    for (const auto &[name, count] : counts)
      ops[name].records = std::max(ops[name].records, count);
  }
  return ops;
}

} // namespace

namespace {

/// The ranks of a collective whose sizes depend on them; 0 for other records.
int64_t ranksOf(const LaunchRecord &record) {
  const auto *call = std::get_if<LibraryCall>(&record.op);
  return call && isCollective(*call) ? call->ints[1] : 0;
}

} // namespace

int64_t ranksOf(const Bucket &bucket) {
  int64_t ranks = 0;
  for (const LaunchRecord &record : bucket.records)
    ranks = std::max(ranks, ranksOf(record));
  return ranks;
}

bool fitsRanks(const Bucket &bucket, int64_t ranks) {
  return std::ranges::all_of(bucket.records, [&](const LaunchRecord &record) {
    return ranksOf(record) == 0 || ranksOf(record) == ranks;
  });
}

Requirements requirementsOf(const PlanData &plan) {
  Requirements needs;
  needs.gpu = plan.target == DeviceKind::Cuda;
  for (const Entry &entry : plan.entries) {
    if (auto ops = libTorchOps(entry); !ops.empty())
      needs.libTorch.push_back({entry.name, std::move(ops)});
    for (const Bucket &bucket : entry.buckets) {
      needs.ranks = std::max(needs.ranks, ranksOf(bucket));
      for (const LaunchRecord &record : bucket.records) {
        if (const auto *call = std::get_if<LibraryCall>(&record.op)) {
          needs.cublasLt |= isGemm(*call);
          needs.nccl |= isCollective(*call);
        }
        if (const auto *call = std::get_if<HostCall>(&record.op))
          needs.hostFunctions.try_emplace(hostFunctionName(*call), record.location);
        if (const auto *launch = std::get_if<KernelLaunch>(&record.op))
          if (const Kernel *kernel = findKernel(launch->kernel))
            needs.kernelTraits |= kernel->traits;
      }
    }
  }
  return needs;
}

} // namespace cgc

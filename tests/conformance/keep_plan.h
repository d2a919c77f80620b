// Plans of single launches as seeds of the fuzz target `plan` (docs/fuzzing.md).
#pragma once

#include "runtime/base/fnv1a.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/plan_file.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace cgc::test {

/// Writes a plan with the kernel launch of `sample` alone, whose dense results are the plan's
/// outputs, to the folder that the environment variable CGC_KEEP_PLANS names. Keeps the smallest
/// plan of each kernel and choice of optional operands. Does nothing without the variable, or if a
/// result is not dense.
inline void keepPlan(SamplePlan sample) {
  const char *folder = std::getenv("CGC_KEEP_PLANS");
  if (!folder)
    return;
  Bucket &bucket = sample.plan.entries[0].buckets[0];
  const auto isLaunch = [](const LaunchRecord &record) {
    return std::holds_alternative<KernelLaunch>(record.op);
  };
  const auto record = std::ranges::find_if(bucket.records, isLaunch);
  const auto &launch = std::get<KernelLaunch>(record->op);
  std::string present;
  for (const auto *operands : {&launch.reads, &launch.writes})
    for (const TensorId operand : *operands)
      present += operand == kNoTensor ? '0' : '1';
  const std::string name = launch.kernel + "-" + std::to_string(fnv1a(present));

  bucket.outputs.clear();
  std::vector<LaunchRecord> before;
  for (const TensorId write : launch.writes) {
    if (write == kNoTensor)
      continue;
    TensorRef &result = bucket.tensors[uint32_t(write)];
    if (!isDense(result.sizes, result.strides))
      return;
    const auto index = uint32_t(bucket.outputs.size());
    result.slot = {BufferKind::Output, index, 0};
    bucket.outputs.push_back({"y" + std::to_string(index), result.dtype, result.sizes});
    if (!findKernel(launch.kernel)->writesAll())
      before.push_back({Memset{write, 0}});
  }
  if (std::holds_alternative<Memcpy>(std::prev(record)->op)) // The operand that is overwritten.
    before.push_back(*std::prev(record));
  before.push_back(*record);
  bucket.records = std::move(before);
  // The last two tensors are the whole arena and its copy.
  bucket.tensors.resize(bucket.tensors.size() - 2);
  bucket.arenaBytes = 0;

  uint64_t bytes = 0;
  for (const Weight &weight : sample.plan.weights)
    bytes += *tensorBytes(weight.dtype, weight.sizes);
  for (const auto *list : {&bucket.inputs, &bucket.outputs})
    for (const IoTensor &io : *list)
      bytes += *tensorBytes(io.dtype, io.sizes);
  static std::map<std::string, uint64_t> kept;
  if (const auto it = kept.find(name); it != kept.end() && it->second <= bytes)
    return;
  kept[name] = bytes;
  const Status status =
      writePlan(sample.plan, sample.weightSpans(), std::filesystem::path(folder) / name);
  EXPECT_TRUE(status.isOk()) << status.message();
}

} // namespace cgc::test

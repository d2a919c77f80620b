// Fuzz target: plan files. A plan is loaded, validated, bound and run: its ATen records by
// LibTorch, its kernels by their references. A run must access only its own memory, and its outputs
// must not depend on the memory's previous content.
#include "runtime/base/checked.h"
#include "runtime/exec/engine.h"
#include "runtime/exec/provider.h"
#include "runtime/exec/requirements.h"
#include "runtime/kernels/kernel_table.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/plan_bytes.h"
#include "tests/fuzz/require.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>

namespace cgc::fuzz {
namespace {

/// The memory limit of a plan in bytes, small enough for many runs a second.
constexpr uint64_t kMemoryLimit = 4 << 20;

/// The provider of the release build, loaded once.
OpProvider &libtorch() {
  static OpProvider *const provider = [] {
    Result<std::unique_ptr<OpProvider>> loaded = loadProvider(CGC_PROVIDER);
    CGC_REQUIRE(loaded.isOk(), loaded.status().message());
    return (*std::move(loaded)).release();
  }();
  return *provider;
}

/// Varied bytes for an input. Integers are within the bound that the plan gives.
std::vector<std::byte> inputBytes(const IoTensor &io) {
  std::vector<std::byte> bytes(*tensorBytes(io.dtype, io.sizes));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(i * 37 + i / 251);
  const size_t width = dtypeSize(io.dtype);
  if (isFloating(io.dtype))
    return bytes;
  const IndexRange range = indexRange(io).value_or(IndexRange{0, io.dtype == DType::Bool ? 2 : 1});
  const auto least = std::clamp<int64_t>(range.least, 0, 100);
  const uint64_t count = std::clamp<int64_t>(range.end - least, 1, 100);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = i % width == 0 ? std::byte(least + uint8_t(bytes[i]) % count) : std::byte{};
  return bytes;
}

using Outputs = std::vector<std::vector<std::byte>>;

TensorView viewOf(const IoTensor &io, std::vector<std::byte> &bytes) {
  return {bytes.data(), io.dtype, DeviceKind::Cpu, io.sizes, {}};
}

/// A host function: reads every byte of its inputs, and each byte of its outputs depends on all of
/// them.
Status readAndWrite(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                    void *) {
  std::byte all{};
  for (const TensorView &view : inputs) {
    const auto *bytes = static_cast<const std::byte *>(view.data);
    for (uint64_t i = 0; i < *tensorBytes(view.dtype, view.sizes); ++i)
      all ^= bytes[i];
  }
  for (const TensorView &view : outputs) {
    const int value = view.dtype == DType::Bool ? int(all) & 1 : int(all); // A bool is 0 or 1.
    std::memset(view.data, value, *tensorBytes(view.dtype, view.sizes));
  }
  return Status::ok();
}

/// The outputs of every bucket, empty for a bucket whose run fails; an error if the plan cannot be
/// bound.
Result<std::vector<Outputs>> runAll(const Plan &plan, bool poison, bool separateBuffers) {
  EngineOptions options;
  options.provider = &libtorch();
  options.referencePath = CGC_REFERENCES;
  if (plan.data().target == DeviceKind::Cuda)
    options.executor = ExecutorKind::Reference;
  options.memoryLimit = kMemoryLimit;
  options.separateBuffers = separateBuffers;
  for (const auto &[name, location] : requirementsOf(plan.data()).hostFunctions)
    options.hostFunctions.push_back({name, readAndWrite});
  const Result<Engine> engine = Engine::create(plan, options);
  if (!engine.isOk())
    return engine.status();
  Result<Context> context = Context::create(*engine, {.poisonArena = poison});
  if (!context.isOk())
    return context.status();
  std::vector<Outputs> all;
  for (const Entry &entry : plan.data().entries)
    for (const Bucket &bucket : entry.buckets) {
      Outputs inputs, outputs;
      std::vector<TensorView> inputViews, outputViews;
      for (const IoTensor &io : bucket.inputs)
        inputViews.push_back(viewOf(io, inputs.emplace_back(inputBytes(io))));
      for (const IoTensor &io : bucket.outputs)
        outputViews.push_back(viewOf(io, outputs.emplace_back(*tensorBytes(io.dtype, io.sizes))));
      const Status ran = context->run(entry.name, inputViews, outputViews);
      if (ran.code() == Code::OutOfMemory)
        return ran;
      if (!ran.isOk())
        outputs.clear();
      all.push_back(std::move(outputs));
    }
  return all;
}

/// "bucket 0 output 1, 3 of 64 bytes from byte 16 on": the first output that differs.
std::string differenceOf(const std::vector<Outputs> &a, const std::vector<Outputs> &b) {
  for (size_t bucket = 0; bucket < a.size(); ++bucket)
    for (size_t i = 0; i < std::min(a[bucket].size(), b[bucket].size()); ++i) {
      const auto &x = a[bucket][i], &y = b[bucket][i];
      size_t first = x.size(), count = 0;
      for (size_t at = 0; at < x.size(); ++at)
        if (x[at] != y[at]) {
          first = std::min(first, at);
          ++count;
        }
      if (count > 0)
        return "bucket " + std::to_string(bucket) + " output " + std::to_string(i) + ", " +
               std::to_string(count) + " of " + std::to_string(x.size()) + " bytes from byte " +
               std::to_string(first) + " on";
    }
  return "one run failed";
}

/// The value of each Memset that fills an output, by output, in a bucket whose last record is a
/// kernel that writes only some rows of it. The other records fill its results.
std::map<uint32_t, uint8_t> fillsOf(const Bucket &bucket) {
  std::map<uint32_t, uint8_t> fills;
  const auto *launch =
      bucket.records.empty() ? nullptr : std::get_if<KernelLaunch>(&bucket.records.back().op);
  const Kernel *kernel = launch ? findKernel(launch->kernel) : nullptr;
  if (!kernel || kernel->writesAll())
    return {};
  for (const LaunchRecord &record : std::span(bucket.records).first(bucket.records.size() - 1)) {
    const auto *fill = std::get_if<Memset>(&record.op);
    if (!fill || std::ranges::find(launch->writes, fill->destination) == launch->writes.end())
      return {};
    const TensorRef &filled = bucket.tensors[uint32_t(fill->destination)];
    const auto &[kind, index, offset] = filled.slot;
    if (kind != BufferKind::Output || offset != 0 || filled.sizes != bucket.outputs[index].sizes ||
        filled.sizes.empty() || !fills.emplace(index, fill->value).second)
      return {};
  }
  return fills;
}

/// The plan with the complement of each value of fillsOf(); none if there is no value.
std::optional<Plan> withOtherFills(const Plan &plan) {
  PlanData data = plan.data();
  bool differs = false;
  for (Entry &entry : data.entries)
    for (Bucket &bucket : entry.buckets)
      if (!fillsOf(bucket).empty())
        for (LaunchRecord &record : bucket.records)
          if (auto *fill = std::get_if<Memset>(&record.op)) {
            fill->value = uint8_t(~fill->value);
            differs = true;
          }
  if (!differs)
    return std::nullopt;
  std::vector<std::vector<std::byte>> weights;
  for (size_t i = 0; i < data.weights.size(); ++i)
    weights.emplace_back(plan.weightBytes(i).begin(), plan.weightBytes(i).end());
  Result<Plan> other = Plan::fromMemory(std::move(data), std::move(weights));
  CGC_REQUIRE(other.isOk(), other.status().message());
  return *std::move(other);
}

/// Makes those rows of the outputs that hold the fills of `plan` in `outputs`, and their complement
/// in `again`, the same.
void acceptKeptRows(const Plan &plan, const std::vector<Outputs> &outputs,
                    std::vector<Outputs> &again) {
  size_t bucketIndex = 0;
  for (const Entry &entry : plan.data().entries)
    for (const Bucket &bucket : entry.buckets) {
      const Outputs &before = outputs[bucketIndex];
      Outputs &after = again[bucketIndex++];
      if (before.empty() || after.empty())
        continue;
      for (const auto &[index, value] : fillsOf(bucket)) {
        const IoTensor &io = bucket.outputs[index];
        const size_t row = io.sizes.back() * dtypeSize(io.dtype);
        for (size_t at = 0; row > 0 && at < before[index].size(); at += row) {
          const auto holds = [&](const std::vector<std::byte> &bytes, uint8_t of) {
            return std::ranges::count(std::span(bytes).subspan(at, row), std::byte(of)) ==
                   std::ptrdiff_t(row);
          };
          if (holds(before[index], value) && holds(after[index], uint8_t(~value)))
            std::copy_n(before[index].begin() + at, row, after[index].begin() + at);
        }
      }
    }
}

/// The launches that have run, by kernel.
std::map<std::string, uint64_t> &launches() {
  static auto *const counts = new std::map<std::string, uint64_t>; // Never destroyed.
  return *counts;
}

/// Writes "KERNEL N" for each kernel of this runtime to the file that CGC_FUZZ_LAUNCHES names.
void writeLaunches() {
  const char *path = std::getenv("CGC_FUZZ_LAUNCHES");
  if (!path)
    return;
  std::ofstream file(path);
  for (const Kernel &kernel : kernels())
    file << kernel.name << ' ' << launches()[std::string(kernel.name)] << '\n';
}

/// Runs the plan twice, in memory with different content, also in rows that a kernel keeps.
void run(const Plan &plan) {
  const bool separateBuffers = plan.data().producer.size() % 2;
  const auto outputs = runAll(plan, /*poison=*/false, separateBuffers);
  const std::optional<Plan> otherFills = withOtherFills(plan);
  auto again = runAll(otherFills ? *otherFills : plan, /*poison=*/true, separateBuffers);
  if (outputs.status().code() == Code::OutOfMemory || again.status().code() == Code::OutOfMemory)
    return; // The state of the machine decides.
  CGC_REQUIRE(outputs.status().message() == again.status().message(),
              "only one of two runs can be bound");
  if (!outputs.isOk())
    return;
  if (otherFills)
    acceptKeptRows(plan, *outputs, *again);
  CGC_REQUIRE(*outputs == *again, "the outputs depend on the memory's previous content: " +
                                      differenceOf(*outputs, *again));
  size_t bucketIndex = 0;
  for (const Entry &entry : plan.data().entries)
    for (const Bucket &bucket : entry.buckets)
      if (!(*outputs)[bucketIndex++].empty())
        for (const LaunchRecord &record : bucket.records)
          if (const auto *launch = std::get_if<KernelLaunch>(&record.op))
            ++launches()[launch->kernel];
}

/// An upper bound on the steps of a kernel's reference: for each element of a result those over the
/// longest dimension in a GEMM and in attention, one for each element of an operand in the others.
uint64_t workOf(const Bucket &bucket, const KernelLaunch &launch) {
  const bool isProduct =
      launch.kernel.starts_with("gemm") || launch.kernel.starts_with("attention");
  uint64_t elements = 0, longest = 1;
  for (const std::vector<TensorId> *operands : {&launch.reads, &launch.writes})
    for (const TensorId id : *operands) {
      if (id == kNoTensor)
        continue;
      const TensorRef &tensor = bucket.tensors[uint32_t(id)];
      const auto bytes = tensorBytes(tensor.dtype, tensor.sizes);
      const uint64_t own = bytes ? *bytes / dtypeSize(tensor.dtype) : UINT64_MAX;
      elements =
          isProduct ? std::max(elements, own) : checkedAdd(elements, own).value_or(UINT64_MAX);
      for (const int64_t size : tensor.sizes)
        longest = std::max(longest, uint64_t(size));
    }
  return isProduct ? checkedMul(elements, longest).value_or(UINT64_MAX) : elements;
}

/// Whether the references take well under a second for all kernels of the plan together.
bool isQuick(const PlanData &plan) {
  constexpr uint64_t kMostWork = 1 << 26;
  uint64_t left = kMostWork;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        if (const auto *launch = std::get_if<KernelLaunch>(&record.op)) {
          const uint64_t work = workOf(bucket, *launch);
          if (work > left)
            return false;
          left -= work;
        }
  return true;
}

/// Calls the checks of the kernels, also of those whose plan cannot be bound.
void checkLaunches(const PlanData &plan) {
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records) {
        const auto *launch = std::get_if<KernelLaunch>(&record.op);
        const Kernel *kernel = launch ? findKernel(launch->kernel) : nullptr;
        if (!kernel || !kernel->takesCountsOf(*launch))
          continue;
        const auto views = [&](const std::vector<TensorId> &ids) {
          std::vector<OperandView> views;
          for (const TensorId id : ids) {
            OperandView &view = views.emplace_back();
            if (id == kNoTensor)
              continue;
            const TensorRef &t = bucket.tensors[uint32_t(id)];
            view = {t.dtype, t.sizes, {}, alignmentOf(kBufferAlignment | t.slot.offset)};
            if (!isDense(t.sizes, t.strides))
              view.strides = t.strides;
          }
          return views;
        };
        const auto reads = views(launch->reads), writes = views(launch->writes);
        (void)kernel
            ->check({launch->grid, launch->block, launch->sharedBytes, reads, writes, launch->ints,
                     launch->floats})
            .isOk();
      }
}

} // namespace
} // namespace cgc::fuzz

/// Loads LibTorch before the first input, so that its time and memory are not attributed to one.
extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  cgc::fuzz::libtorch();
  std::atexit(cgc::fuzz::writeLaunches);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace cgc;
  if (size == 0)
    return 0;
  const auto present = fuzz::inPresentVersion({data, size});
  const fuzz::MemoryFile file(present ? present->data() : data, present ? present->size() : size);
  const Result<Plan> plan = Plan::load(file.path());
  if (!plan.isOk()) {
    CGC_REQUIRE(plan.status().code() == Code::InvalidFile ||
                    plan.status().code() == Code::OutOfMemory,
                plan.status().message());
    return 0;
  }
  const std::string listing = toText(plan->data());
  if (std::getenv("CGC_FUZZ_LIST"))
    std::fputs(listing.c_str(), stderr);
  fuzz::checkLaunches(plan->data());
  if (plan->data().target == DeviceKind::Cpu || fuzz::isQuick(plan->data()))
    fuzz::run(*plan);
  return 0;
}

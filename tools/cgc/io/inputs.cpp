// Inputs: chooses buckets and makes input tensors.
#include "tools/cgc/io/inputs.h"

#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/index_checks.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/list_option.h"
#include "tools/cgc/io/npy.h"
#include "tools/cgc/report/plan_summary.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cgc::tool {

namespace {

std::string describe(DType dtype, const std::vector<int64_t> &sizes) {
  return formatShape(dtypeName(dtype), sizes);
}

std::string describeBuckets(const Entry &entry) {
  std::vector<std::string> texts;
  for (const Bucket &bucket : entry.buckets)
    texts.push_back(describeIo(bucket.inputs));
  return fmt::format("{}", fmt::join(texts, " | "));
}

/// Usage unless each input has a source and each source belongs to an input.
Status checkNames(const Entry &entry, const std::vector<InputSource> &sources) {
  const std::vector<IoTensor> &inputs = entry.buckets[0].inputs;
  for (const InputSource &source : sources)
    if (!findByName(inputs, source.name))
      return Status(Code::Usage, fmt::format("entry '{}' has no input '{}'; it takes {}",
                                             entry.name, source.name, describeBuckets(entry)));
  for (const IoTensor &input : inputs)
    if (!findByName(sources, input.name))
      return Status(Code::Usage,
                    fmt::format("entry '{0}' needs input '{1}'; add --input {1}=@FILE.npy "
                                "or --input {1}=random:0",
                                entry.name, input.name));
  return Status::ok();
}

/// Converts to the dtype of `input`. Usage if a finite number would become an infinity.
Result<HostTensor> roundToHalf(const IoTensor &input, const HostTensor &tensor) {
  HostTensor rounded = convertFloats(tensor, input.dtype);
  const std::vector<double> before = toDoubles(tensor), after = toDoubles(rounded);
  for (size_t i = 0; i < before.size(); ++i)
    if (std::isfinite(before[i]) && !std::isfinite(after[i]))
      return Status(Code::Usage,
                    fmt::format("input '{}': element {} is {:g}, beyond the range of {}; scale "
                                "the input or compile the model with --precision fp32",
                                input.name, i, before[i], dtypeName(input.dtype)));
  return rounded;
}

Result<HostTensor> readInput(const IoTensor &input, const InputSource &source) {
  CGC_ASSIGN_OR_RETURN(HostTensor tensor, readNpy(source.file));
  tensor.name = input.name;
  const bool isHalf = input.dtype == DType::F16 || input.dtype == DType::BF16;
  if (isHalf && tensor.dtype == DType::F32)
    return roundToHalf(input, tensor);
  if (tensor.dtype != input.dtype)
    return Status(Code::Usage,
                  fmt::format("input '{}': '{}' holds {}, the plan takes {}{}", input.name,
                              source.file, describe(tensor.dtype, tensor.sizes),
                              dtypeName(input.dtype), isHalf ? " (given as float32)" : ""));
  return tensor;
}

bool fits(const Bucket &bucket, const std::vector<HostTensor> &given,
          std::optional<int64_t> batch) {
  return std::ranges::all_of(bucket.inputs, [&](const IoTensor &input) {
    const HostTensor *tensor = findByName(given, input.name);
    return (!tensor || tensor->sizes == input.sizes) &&
           (!batch || (!input.sizes.empty() && input.sizes[0] == *batch));
  });
}

Result<size_t> chooseBucket(const Entry &entry, const std::vector<HostTensor> &given,
                            std::optional<int64_t> batch) {
  for (size_t i = 0; i < entry.buckets.size(); ++i)
    if (fits(entry.buckets[i], given, batch))
      return i;
  std::string asked = batch ? fmt::format("batch {}", *batch) : "";
  for (const HostTensor &tensor : given)
    asked += fmt::format("{}{}={}", asked.empty() ? "" : " ", tensor.name,
                         describe(tensor.dtype, tensor.sizes));
  return Status(Code::Usage,
                fmt::format("entry '{}' has no bucket for {}; it takes {}; compile the "
                            "model for other shapes with --input and --batch",
                            entry.name, asked, describeBuckets(entry)));
}

/// The rows of `given` if they have the shapes of `bucket` in all but the batch.
std::optional<int64_t> rowsFor(const Bucket &bucket, const std::vector<HostTensor> &given) {
  std::optional<int64_t> rows;
  for (const HostTensor &tensor : given) {
    const IoTensor &input = *findByName(bucket.inputs, tensor.name);
    std::vector<int64_t> sizes = tensor.sizes;
    if (input.batchDim != kNoBatchDim && sizes.size() == input.sizes.size()) {
      int64_t &batch = sizes[static_cast<size_t>(input.batchDim)];
      if (batch < 1 || batch != rows.value_or(batch))
        return std::nullopt;
      rows = std::exchange(batch, input.sizes[static_cast<size_t>(input.batchDim)]);
    }
    if (sizes != input.sizes)
      return std::nullopt;
  }
  return rows;
}

/// The bucket of a batch that no bucket has (BoundInputs::rows); none if it cannot be padded.
std::optional<BoundInputs> chooseForRows(const Entry &entry, const std::vector<HostTensor> &given) {
  std::optional<BoundInputs> chosen;
  const auto batch = [&](size_t bucket) { return *batchOf(entry.buckets[bucket]); };
  for (size_t i = 0; i < entry.buckets.size() && entry.rows.independent; ++i) {
    const std::optional<int64_t> rows = rowsFor(entry.buckets[i], given);
    if (!rows)
      continue;
    const bool isEnough = batch(i) >= *rows;
    if (!chosen || (batch(chosen->bucket) < *rows ? batch(i) > batch(chosen->bucket)
                                                  : isEnough && batch(i) < batch(chosen->bucket)))
      chosen = BoundInputs{i, {}, rows};
  }
  return chosen;
}

} // namespace

Result<BoundInputs> bindInputs(const Entry &entry, const std::vector<InputSource> &sources,
                               std::optional<int64_t> batch) {
  CGC_TRY(checkNames(entry, sources));
  std::vector<HostTensor> given;
  for (const InputSource &source : sources) {
    if (source.file.empty())
      continue;
    CGC_ASSIGN_OR_RETURN(HostTensor tensor,
                         readInput(*findByName(entry.buckets[0].inputs, source.name), source));
    given.push_back(std::move(tensor));
  }
  BoundInputs bound;
  const Result<size_t> exact = chooseBucket(entry, given, batch);
  if (exact.isOk())
    bound.bucket = *exact;
  else if (const auto padded = batch ? std::nullopt : chooseForRows(entry, given))
    bound = *padded;
  else
    return exact.status();
  for (IoTensor input : entry.buckets[bound.bucket].inputs) {
    if (bound.rows && input.batchDim != kNoBatchDim)
      input.sizes[static_cast<size_t>(input.batchDim)] = *bound.rows;
    if (const HostTensor *tensor = findByName(given, input.name)) {
      bound.tensors.push_back(*tensor);
    } else {
      bound.tensors.push_back(randomInput(input, findByName(sources, input.name)->seed));
    }
  }
  CGC_TRY(checkIndices(entry.buckets[bound.bucket], viewsOf(bound.tensors), bound.rows));
  return bound;
}

void addBucketOptions(CLI::App &command, BucketChoice &choice, std::string_view does) {
  addListOption(command, "--entry", choice.entries,
                fmt::format("{} just these entries [all]", does))
      ->type_name("NAME,...");
  addListOption(command, "--batch", choice.batches,
                fmt::format("{} just the buckets with these values of dimension 0 [all]", does))
      ->type_name("N,...");
}

Result<std::vector<PlanBucket>> planBuckets(const PlanData &plan, const BucketChoice &choice) {
  const auto &[entries, batches] = choice;
  for (const std::string &entry : entries)
    CGC_TRY(findEntry(plan, entry).status());
  std::vector<PlanBucket> chosen;
  for (const Entry &candidate : plan.entries) {
    if (!entries.empty() && std::ranges::count(entries, candidate.name) == 0)
      continue;
    for (int64_t batch : batches)
      CGC_TRY(chooseBucket(candidate, {}, batch).status());
    for (size_t i = 0; i < candidate.buckets.size(); ++i)
      if (batches.empty() || std::ranges::any_of(batches, [&](int64_t batch) {
            return fits(candidate.buckets[i], {}, batch);
          }))
        chosen.push_back({&candidate, i});
  }
  return chosen;
}

Result<const Entry *> chooseEntry(const PlanData &plan, const std::string &name) {
  if (!name.empty())
    return findEntry(plan, name);
  if (plan.entries.size() == 1)
    return &plan.entries[0];
  std::vector<std::string> names;
  for (const Entry &entry : plan.entries)
    names.push_back(entry.name);
  return Status(
      Code::Usage,
      fmt::format("the plan has several entries; choose one with --entry: {}", joinNames(names)));
}

} // namespace cgc::tool

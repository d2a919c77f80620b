// RequestMix: parses --mix, and derives the shapes of each kind of request from the plan's buckets.
#include "tools/cgc/load/request_mix.h"

#include "runtime/session/session.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cgc::tool {
namespace {

std::vector<IoTensor> withBatch(std::vector<IoTensor> tensors, int64_t batch) {
  for (IoTensor &tensor : tensors)
    if (tensor.batchDim != kNoBatchDim)
      tensor.sizes[tensor.batchDim] = batch;
  return tensors;
}

RequestKind kindOf(const PlanBucket &bucket, double weight) {
  return {bucket.entry->name, bucket.bucket().inputs, bucket.bucket().outputs,
          batchOf(bucket.bucket()).value_or(1), weight};
}

Result<RequestKind> kindOf(const PlanData &plan, const Entry &entry, const MixPart &part) {
  const Bucket &first = entry.buckets[0];
  if (entry.rows.independent && batchOf(first))
    return RequestKind{entry.name, withBatch(first.inputs, part.batch),
                       withBatch(first.outputs, part.batch), part.batch, part.weight};
  // The rows depend on each other, so that only a bucket of exactly this batch runs it.
  auto buckets = planBuckets(plan, {{entry.name}, {part.batch}});
  if (!buckets.isOk())
    return buckets.status().withContext(fmt::format("--mix {}:{}", part.batch, part.weight));
  RequestKind kind = kindOf(buckets->front(), part.weight);
  kind.rows = part.batch;
  return kind;
}

} // namespace

Result<std::vector<MixPart>> parseMix(const std::string &text) {
  std::vector<MixPart> mix;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ',');
  for (const llvm::StringRef part : parts) {
    const auto [batch, weight] = part.split(':');
    MixPart parsed;
    if (batch.getAsInteger(10, parsed.batch) || parsed.batch < 1 || parsed.batch > kMaxBatch ||
        weight.getAsDouble(parsed.weight) || !std::isfinite(parsed.weight) || parsed.weight <= 0)
      return Status(Code::Usage, fmt::format("expected BATCH:WEIGHT with commas between them, such "
                                             "as 1:70,4:20,64:10, got '{}'",
                                             text));
    if (std::ranges::count(mix, parsed.batch, &MixPart::batch) > 0)
      return Status(Code::Usage,
                    fmt::format("batch {} is given twice; give it once", parsed.batch));
    mix.push_back(parsed);
  }
  return mix;
}

Result<std::vector<RequestKind>> requestKinds(const PlanData &plan, const BucketChoice &choice,
                                              const std::vector<MixPart> &mix) {
  CGC_ASSIGN_OR_RETURN(const std::vector<PlanBucket> buckets, planBuckets(plan, choice));
  std::vector<RequestKind> kinds;
  if (mix.empty()) {
    for (const PlanBucket &bucket : buckets)
      kinds.push_back(kindOf(bucket, 1));
    return kinds;
  }
  const Entry *entry = nullptr;
  for (const PlanBucket &bucket : buckets) {
    if (bucket.entry == entry)
      continue;
    entry = bucket.entry;
    for (const MixPart &part : mix) {
      CGC_ASSIGN_OR_RETURN(RequestKind kind, kindOf(plan, *entry, part));
      kinds.push_back(std::move(kind));
    }
  }
  return kinds;
}

KindPicker::KindPicker(const std::vector<RequestKind> &kinds, uint64_t seed) : random_(seed) {
  // Scaled by a power of two, which is exact, so that no sum overflows.
  double end = 0, largest = 0;
  for (const RequestKind &kind : kinds)
    largest = std::max(largest, kind.weight);
  for (const RequestKind &kind : kinds)
    ends_.push_back(end += std::scalbn(kind.weight, -std::ilogb(largest)));
}

double KindPicker::uniform() {
  return double(random_() >> 11) * 0x1p-53;
}

size_t KindPicker::next() {
  const double at = uniform() * ends_.back();
  const auto found = std::ranges::upper_bound(ends_, at);
  return std::min<size_t>(found - ends_.begin(), ends_.size() - 1);
}

} // namespace cgc::tool

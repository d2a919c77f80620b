// RequestTable: groups of buckets, and the checks of a request.
#include "runtime/session/request.h"

#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/index_checks.h"
#include "runtime/exec/requirements.h"

#include <algorithm>
#include <functional>
#include <set>

namespace cgc {
namespace {

/// The batch of a bucket, or, if it is not known, the first dimension of its first input that has
/// one; nothing if none has.
std::optional<int64_t> leadingRows(const Bucket &bucket) {
  if (const std::optional<int64_t> batch = batchOf(bucket))
    return batch;
  for (const IoTensor &input : bucket.inputs)
    if (!input.sizes.empty())
      return input.sizes[0];
  return std::nullopt;
}

/// Whether the sizes of two inputs are equal, but for the batch.
bool equalRows(const IoTensor &a, std::span<const int64_t> sizes) {
  if (a.sizes.size() != sizes.size())
    return false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (int32_t(d) != a.batchDim && a.sizes[d] != sizes[d])
      return false;
  return true;
}

bool equalRows(const Bucket &a, const Bucket &b) {
  return std::ranges::equal(a.inputs, b.inputs, [](const IoTensor &x, const IoTensor &y) {
    return equalRows(x, y.sizes);
  });
}

/// Why the rows of an entry may not be padded or split, for messages.
std::string reasonText(const PlanData &plan, const BatchRows &rows) {
  if (rows.reason.empty())
    return "";
  std::string text = "; no other batch fits, because the rows depend on each other";
  if (!rows.op.empty())
    text += ": " + rows.op;
  if (rows.location != kNoLocation) {
    const SourceLocation &at = plan.locations[size_t(rows.location)];
    text += " (" + at.file + ":" + std::to_string(at.line) + ")";
  }
  return text;
}

/// The command that adds a bucket for `inputs` to the plan, for messages. It has the options that
/// the plan records.
std::string addCommand(const PlanData &plan, const Entry &entry,
                       std::span<const TensorView> inputs) {
  std::string text = "cgc compile MODEL.pt --add-to PLAN --entry " + entry.name + " --target " +
                     std::string(deviceName(plan.target));
  if (plan.precision)
    text += " --precision " + precisionOption(plan);
  std::set<std::string> modules;
  for (const auto &[name, location] : requirementsOf(plan).hostFunctions)
    modules.insert(name.substr(0, name.rfind('.')));
  for (const std::string &module : modules)
    text += " --host-module " + module;
  for (const OpLibraryId &library : plan.opLibraries)
    text += " --op-library " + library.name;
  for (size_t i = 0; i < inputs.size(); ++i)
    text += " --input '" + entry.buckets[0].inputs[i].name + "=" +
            shapeText(inputs[i].dtype, inputs[i].sizes) + "'";
  return text;
}

} // namespace

void Request::runs(std::vector<BucketRun> &runs) const {
  if (split)
    split->split(rows, runs);
  else
    runs.assign(1, BucketRun{bucket});
}

RequestTable::RequestTable(const PlanData &plan, int64_t maxBatch, bool hasFallback)
    : plan_(plan), maxBatch_(maxBatch), hasFallback_(hasFallback) {
  for (const Entry &entry : plan.entries) {
    std::vector<Group> &groups = groups_.emplace_back();
    if (!entry.rows.independent)
      continue;
    std::vector<bool> grouped(entry.buckets.size());
    for (size_t i = 0; i < entry.buckets.size(); ++i) {
      if (grouped[i] || batchOf(entry.buckets[i]).value_or(0) == 0)
        continue;
      std::vector<BatchBucket> members;
      const Bucket *largest = &entry.buckets[i];
      for (size_t j = i; j < entry.buckets.size(); ++j) {
        const Bucket &bucket = entry.buckets[j];
        const int64_t batch = batchOf(bucket).value_or(0);
        if (batch == 0 || !equalRows(entry.buckets[i], bucket))
          continue;
        grouped[j] = true;
        members.push_back({j, batch, bucket.expectedMicros});
        if (batch > batchOf(*largest))
          largest = &bucket;
      }
      groups.push_back({largest, BatchSplit(std::move(members), maxBatch)});
    }
  }
}

Status RequestTable::checkBatch(int64_t rows) const {
  if (rows < 1)
    return {Code::Usage, "the batch is empty"};
  if (rows > maxBatch_)
    return {Code::Usage, "a batch of " + std::to_string(rows) +
                             " rows is above the session's limit of " + std::to_string(maxBatch_) +
                             "; give it in parts, or create the session with a larger limit"};
  return Status::ok();
}

Result<RequestTable::Match> RequestTable::match(const Entry &entry,
                                                std::span<const TensorView> inputs) const {
  for (const Group &group : groups_[&entry - plan_.entries.data()]) {
    const std::vector<IoTensor> &tensors = group.largest->inputs;
    bool fits = true;
    for (size_t i = 0; fits && i < inputs.size(); ++i)
      fits = equalRows(tensors[i], inputs[i].sizes);
    if (!fits)
      continue;
    Match match{&group, 0};
    const IoTensor *first = nullptr;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (tensors[i].batchDim == kNoBatchDim)
        continue;
      const int64_t rows = inputs[i].sizes[tensors[i].batchDim];
      if (first && rows != match.rows)
        return Status(Code::Usage, "input '" + first->name + "' has a batch of " +
                                       std::to_string(match.rows) + " and input '" +
                                       tensors[i].name + "' one of " + std::to_string(rows));
      first = first ? first : &tensors[i];
      match.rows = rows;
    }
    return match;
  }
  return Match{};
}

Status RequestTable::checkForFallback(const Entry &entry, std::span<const TensorView> inputs,
                                      std::span<const TensorView> outputs,
                                      DeviceKind device) const {
  const auto check = [&](std::vector<IoTensor> tensors, std::span<const TensorView> views,
                         std::string_view kind) -> Status {
    for (size_t i = 0; i < std::min(tensors.size(), views.size()); ++i) {
      tensors[i].sizes.assign(views[i].sizes.begin(), views[i].sizes.end());
      const std::optional<uint64_t> bytes = tensorBytes(views[i].dtype, views[i].sizes);
      if (!bytes)
        return {Code::Usage, std::string(kind) + " '" + tensors[i].name +
                                 "' has a negative size, or is larger than any memory"};
      // An index outside of its table would stop a GPU.
      const int64_t elements = int64_t(*bytes / dtypeSize(views[i].dtype));
      std::vector<IndexBound> &bounds = tensors[i].indexBounds;
      const std::optional<IndexRange> range = indexRange(tensors[i]);
      for (IndexBound &bound : bounds) {
        bound.least = range->least;
        bound.end = range->end;
        bound.offset = 0;
        bound.sizes = {elements};
        bound.strides = {1};
      }
    }
    CGC_TRY(checkViews(tensors, views, device, kind));
    return checkIndices(tensors, views);
  };
  CGC_TRY(check(entry.buckets[0].inputs, inputs, "input"));
  CGC_TRY(check(entry.buckets[0].outputs, outputs, "output"));
  return checkOverlaps(inputs, outputs);
}

Result<Request> RequestTable::find(std::string_view name, std::span<const TensorView> inputs,
                                   std::span<const TensorView> outputs, DeviceKind device) const {
  CGC_ASSIGN_OR_RETURN(const Entry *entry, findEntry(plan_, name));
  CGC_TRY(checkInputTypes(*entry, inputs));
  Request request{.entry = size_t(entry - plan_.entries.data())};
  const Result<Match> matched = match(*entry, inputs);
  if (!matched.isOk() && !hasFallback_)
    return matched.status();
  const Match found = matched.isOk() ? *matched : Match{};
  const Bucket *bucket = nullptr;
  std::optional<int64_t> rows;
  const std::optional<size_t> exact = found.group ? std::nullopt : findBucket(*entry, inputs);
  if (hasFallback_ && (found.group ? found.rows > maxBatch_ : !exact)) {
    CGC_TRY(checkForFallback(*entry, inputs, outputs, device));
    request.isFallback = true;
    return request;
  }
  if (found.group) {
    CGC_TRY(checkBatch(found.rows));
    request.split = &found.group->split;
    request.rows = found.rows;
    bucket = found.group->largest;
    rows = found.rows;
  } else if (exact) {
    request.bucket = *exact;
    bucket = &entry->buckets[*exact];
  } else {
    const Status none = noBucket(*entry, inputs);
    return Status(Code::Usage,
                  none.message() + reasonText(plan_, entry->rows) +
                      "\nThis adds the sizes to the plan: " + addCommand(plan_, *entry, inputs) +
                      "\nAdd -O, --arch, --passes, --pass-plugin and --entry-group as the plan was "
                      "compiled, which it does not record" +
                      (plan_.precision ? ", and give --input the model's own dtypes" : ""));
  }
  CGC_TRY(checkViews(bucket->inputs, inputs, device, "input", rows));
  CGC_TRY(checkViews(bucket->outputs, outputs, device, "output", rows));
  CGC_TRY(checkOverlaps(inputs, outputs));
  CGC_TRY(checkIndices(*bucket, inputs, rows));
  return request;
}

Result<std::vector<size_t>> RequestTable::bucketsFor(std::string_view name, int64_t batch) const {
  CGC_ASSIGN_OR_RETURN(const Entry *entry, findEntry(plan_, name));
  const std::vector<Group> &groups = groups_[entry - plan_.entries.data()];
  std::vector<size_t> buckets;
  if (groups.empty())
    for (size_t i = 0; i < entry->buckets.size(); ++i)
      buckets.push_back(i);
  std::vector<BucketRun> runs;
  for (const Group &group : groups) {
    CGC_TRY(checkBatch(batch));
    group.split.split(batch, runs);
    for (const BucketRun &run : runs)
      if (std::ranges::find(buckets, run.bucket) == buckets.end())
        buckets.push_back(run.bucket);
  }
  return buckets;
}

Result<Request> RequestTable::findBucketFor(std::string_view name, int64_t batch) const {
  CGC_ASSIGN_OR_RETURN(const Entry *entry, findEntry(plan_, name));
  Request request{.entry = size_t(entry - plan_.entries.data())};
  const std::vector<Group> &groups = groups_[request.entry];
  std::vector<size_t> fitting;
  for (const Group &group : groups)
    if (const BatchBucket *bucket = batch >= 1 ? group.split.smallest(batch) : nullptr)
      fitting.push_back(bucket->bucket);
  if (groups.empty())
    for (size_t i = 0; i < entry->buckets.size(); ++i)
      if (leadingRows(entry->buckets[i]).value_or(batch) == batch)
        fitting.push_back(i);
  const std::string rows = std::to_string(batch) + " rows";
  if (fitting.empty())
    return Status(Code::Usage, "entry '" + entry->name + "' has no single bucket for " + rows +
                                   "; reserve fewer, or run the session itself, which splits them");
  if (fitting.size() > 1)
    return Status(Code::Usage,
                  "entry '" + entry->name + "' has " + std::to_string(fitting.size()) +
                      " buckets for " + rows +
                      " that differ in other sizes; run the session itself, with tensors");
  request.bucket = fitting[0];
  request.rows = batchOf(entry->buckets[fitting[0]]) ? batch : 0;
  return request;
}

int64_t RequestTable::batch(size_t entry, size_t bucket) const {
  return batchOf(plan_.entries[entry].buckets[bucket]).value_or(0);
}

Status checkOverlaps(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto end = [](const TensorView &view) {
    return static_cast<const std::byte *>(view.data) + *tensorBytes(view.dtype, view.sizes);
  };
  const auto overlap = [&](const TensorView &a, const TensorView &b) {
    const std::less<const void *> before;
    return a.device == b.device && before(a.data, end(b)) && before(b.data, end(a)) &&
           end(a) != a.data && end(b) != b.data;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < inputs.size(); ++j)
      if (overlap(outputs[i], inputs[j]))
        return {Code::Usage, "output " + std::to_string(i) + " overlaps input " +
                                 std::to_string(j) + " in memory; give it memory of its own"};
    for (size_t j = 0; j < i; ++j)
      if (overlap(outputs[i], outputs[j]))
        return {Code::Usage, "output " + std::to_string(i) + " overlaps output " +
                                 std::to_string(j) + " in memory; give it memory of its own"};
  }
  return Status::ok();
}

} // namespace cgc

// Checks of a plan that is to replace the one that a session serves.
#include "runtime/exec/bind.h"
#include "runtime/session/session_impl.h"

namespace cgc {
namespace {

std::string typeOf(const IoTensor &tensor) {
  return std::string(dtypeName(tensor.dtype)) + " of " + std::to_string(tensor.sizes.size()) +
         " dimensions";
}

Status checkEqualTensors(const std::vector<IoTensor> &present, const std::vector<IoTensor> &next,
                         const std::string &kind) {
  if (present.size() != next.size())
    return {Code::Usage, "it has " + std::to_string(next.size()) + " " + kind + "s instead of " +
                             std::to_string(present.size())};
  for (size_t i = 0; i < present.size(); ++i) {
    if (present[i].name != next[i].name)
      return {Code::Usage, kind + " " + std::to_string(i) + " is '" + next[i].name +
                               "' instead of '" + present[i].name + "'"};
    if (typeOf(present[i]) != typeOf(next[i]))
      return {Code::Usage, kind + " '" + next[i].name + "' is " + typeOf(next[i]) + " instead of " +
                               typeOf(present[i])};
  }
  return Status::ok();
}

Status another(const std::string &difference) {
  return {Code::Usage,
          "the plan is of another model or was compiled with other options: " + difference};
}

/// The first difference of two buckets, for messages; empty if they are equal.
std::string bucketDifference(const PlanData &plan, const Bucket &present, const Bucket &next) {
  if (present.inputs != next.inputs)
    return "its inputs differ";
  if (present.outputs != next.outputs)
    return "its outputs differ";
  if (present.records.size() != next.records.size())
    return "it has " + std::to_string(next.records.size()) + " records instead of " +
           std::to_string(present.records.size());
  for (size_t i = 0; i < present.records.size(); ++i)
    if (present.records[i] != next.records[i])
      return "record " + std::to_string(i) + " (" +
             recordText(plan, recordName(next.records[i]), next.records[i].location) + ") differs";
  if (present.tensors != next.tensors || present.arenaBytes != next.arenaBytes)
    return "its memory plan differs";
  return "";
}

} // namespace

Status checkEqualEntries(const PlanData &present, const PlanData &next) {
  if (present.target != next.target)
    return {Code::Usage, "the plan has another target than the one that the session serves"};
  for (const Entry &entry : present.entries) {
    const Entry *const found = next.findEntry(entry.name);
    if (!found)
      return {Code::Usage, "the plan has no entry '" + entry.name + "', which the session serves"};
    for (const auto &[list, kind] :
         {std::pair(&Bucket::inputs, "input"), std::pair(&Bucket::outputs, "output")})
      CGC_TRY(checkEqualTensors(entry.buckets[0].*list, found->buckets[0].*list, kind)
                  .withContext("the plan's entry '" + entry.name +
                               "' differs from the one that the session serves"));
  }
  return Status::ok();
}

Status checkEqualStructure(const PlanData &present, const PlanData &next) {
  if (present.target != next.target)
    return another("its target differs");
  if (present.precision != next.precision || present.tf32 != next.tf32)
    return another("its precision differs");
  if (present.opLibraries != next.opLibraries)
    return another("its op libraries differ");
  if (present.entries.size() != next.entries.size())
    return another("it has " + std::to_string(next.entries.size()) + " entries instead of " +
                   std::to_string(present.entries.size()));
  for (size_t i = 0; i < present.weights.size() && i < next.weights.size(); ++i) {
    const Weight &a = present.weights[i], &b = next.weights[i];
    if (a.name != b.name || a.dtype != b.dtype || a.sizes != b.sizes)
      return another("weight '" + a.name + "' differs in name, dtype or sizes from '" + b.name +
                     "'");
  }
  if (present.weights.size() != next.weights.size())
    return another("it has " + std::to_string(next.weights.size()) + " weights instead of " +
                   std::to_string(present.weights.size()));
  for (size_t e = 0; e < present.entries.size(); ++e) {
    const Entry &a = present.entries[e], &b = next.entries[e];
    if (a.name != b.name)
      return another("entry '" + b.name + "' is in the place of '" + a.name + "'");
    if (a.buckets.size() != b.buckets.size())
      return another("entry '" + a.name + "' has " + std::to_string(b.buckets.size()) +
                     " buckets instead of " + std::to_string(a.buckets.size()));
    for (size_t i = 0; i < a.buckets.size(); ++i)
      if (const std::string difference = bucketDifference(next, a.buckets[i], b.buckets[i]);
          !difference.empty())
        return another("entry '" + a.name + "', bucket " + std::to_string(i) + ": " + difference);
  }
  return Status::ok();
}

} // namespace cgc

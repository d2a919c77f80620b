// The C API: plans.
#include "runtime/c_api/handles.h"
#include "runtime/exec/requirements.h"

using namespace cgc;
using namespace cgc::c_api;

namespace {

/// An entry; null if there is none of this index.
const Entry *entryOf(const cgc_plan *plan, size_t entry) {
  return plan && entry < plan->plan->data().entries.size() ? &plan->plan->data().entries[entry]
                                                           : nullptr;
}

const std::vector<IoTensor> &tensorsOf(const Bucket &bucket, cgc_io io) {
  return io == CGC_INPUT ? bucket.inputs : bucket.outputs;
}

} // namespace

cgc_code cgc_plan_load(const char *path, cgc_plan **plan, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(path, "path"));
    CGC_TRY(require(plan, "plan"));
    CGC_ASSIGN_OR_RETURN(Plan loaded, Plan::load(path));
    *plan = new cgc_plan{std::make_shared<const Plan>(std::move(loaded))};
    return Status::ok();
  });
}

void cgc_plan_destroy(cgc_plan *plan) {
  delete plan;
}

size_t cgc_plan_entry_count(const cgc_plan *plan) {
  return plan ? plan->plan->data().entries.size() : 0;
}

const char *cgc_plan_entry_name(const cgc_plan *plan, size_t entry) {
  const Entry *const found = entryOf(plan, entry);
  return found ? found->name.c_str() : nullptr;
}

size_t cgc_plan_bucket_count(const cgc_plan *plan, size_t entry) {
  const Entry *const found = entryOf(plan, entry);
  return found ? found->buckets.size() : 0;
}

int cgc_plan_takes_any_batch(const cgc_plan *plan, size_t entry) {
  const Entry *const found = entryOf(plan, entry);
  return found && found->rows.independent;
}

int cgc_plan_needs_libtorch(const cgc_plan *plan) {
  if (!plan)
    return 0;
  const Result<bool> needs = noThrow(
      [&]() -> Result<bool> { return !requirementsOf(plan->plan->data()).libTorch.empty(); });
  return !needs.isOk() || *needs; // Without host memory, nothing is certain.
}

int cgc_plan_is_for_gpu(const cgc_plan *plan) {
  return plan && plan->plan->data().target == DeviceKind::Cuda;
}

size_t cgc_plan_tensor_count(const cgc_plan *plan, size_t entry, cgc_io io) {
  const Entry *const found = entryOf(plan, entry);
  return found ? tensorsOf(found->buckets[0], io).size() : 0;
}

cgc_code cgc_plan_tensor(const cgc_plan *plan, size_t entry, size_t bucket, cgc_io io, size_t index,
                         cgc_tensor_info *info, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(plan, "plan"));
    CGC_TRY(checkIo(io));
    const Entry *const found = entryOf(plan, entry);
    if (!found)
      return {Code::Usage, "the plan has no entry of index " + std::to_string(entry)};
    if (bucket >= found->buckets.size())
      return {Code::Usage,
              "entry '" + found->name + "' has no bucket of index " + std::to_string(bucket)};
    const std::vector<IoTensor> &tensors = tensorsOf(found->buckets[bucket], io);
    if (index >= tensors.size())
      return {Code::Usage, "entry '" + found->name + "' has no " +
                               (io == CGC_INPUT ? "input" : "output") + " of index " +
                               std::to_string(index)};
    const IoTensor &tensor = tensors[index];
    return toCaller({0, tensor.name.c_str(), cgc_dtype(tensor.dtype), int32_t(tensor.sizes.size()),
                     tensor.sizes.data(), tensor.batchDim},
                    info, "cgc_tensor_info");
  });
}

size_t cgc_plan_state_count(const cgc_plan *plan) {
  return plan ? plan->plan->data().states.size() : 0;
}

cgc_code cgc_plan_state(const cgc_plan *plan, size_t index, cgc_state_info *info,
                        cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(plan, "plan"));
    if (index >= plan->plan->data().states.size())
      return {Code::Usage, "the plan has no state of index " + std::to_string(index)};
    const State &state = plan->plan->data().states[index];
    // The names of roles are literals. NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage)
    return toCaller({0, state.name.c_str(), stateRoleName(state.role).data(),
                     cgc_dtype(state.dtype), int32_t(state.sizes.size()), state.sizes.data()},
                    info, "cgc_state_info");
  });
}

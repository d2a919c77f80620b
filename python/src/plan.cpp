// Plan: a loaded plan file and the description of its entries and states.
#include "plan.h"

#include "raise.h"

namespace nb = nanobind;

namespace cgc_python {
namespace {

nb::tuple sizesOf(int32_t rank, const int64_t *sizes) {
  nb::list list;
  for (int32_t d = 0; d < rank; ++d)
    list.append(sizes[d]);
  return nb::tuple(list);
}

/// Describes the inputs or outputs of a bucket.
nb::tuple tensorsOf(const cgc_plan *plan, size_t entry, size_t bucket, cgc_io io) {
  nb::list tensors;
  for (size_t i = 0; i < cgc_plan_tensor_count(plan, entry, io); ++i) {
    cgc_tensor_info info = CGC_INIT(cgc_tensor_info);
    cgc_error *error = nullptr;
    check(cgc_plan_tensor(plan, entry, bucket, io, i, &info, &error), error);
    tensors.append(nb::make_tuple(info.name, cgc_dtype_name(info.dtype),
                                  sizesOf(info.rank, info.sizes), info.batch_dim));
  }
  return nb::tuple(tensors);
}

} // namespace

Plan::Plan(const char *path) {
  cgc_plan *plan = nullptr;
  checkWithoutGil([&](cgc_error **error) { return cgc_plan_load(path, &plan, error); });
  plan_.reset(plan);
}

nb::tuple Plan::entries() const {
  nb::list entries;
  for (size_t entry = 0; entry < cgc_plan_entry_count(get()); ++entry) {
    nb::list buckets;
    for (size_t bucket = 0; bucket < cgc_plan_bucket_count(get(), entry); ++bucket)
      buckets.append(nb::make_tuple(tensorsOf(get(), entry, bucket, CGC_INPUT),
                                    tensorsOf(get(), entry, bucket, CGC_OUTPUT)));
    entries.append(nb::make_tuple(cgc_plan_entry_name(get(), entry),
                                  bool(cgc_plan_takes_any_batch(get(), entry)),
                                  nb::tuple(buckets)));
  }
  return nb::tuple(entries);
}

nb::tuple Plan::states() const {
  nb::list states;
  for (size_t i = 0; i < cgc_plan_state_count(get()); ++i) {
    cgc_state_info info = CGC_INIT(cgc_state_info);
    cgc_error *error = nullptr;
    check(cgc_plan_state(get(), i, &info, &error), error);
    states.append(nb::make_tuple(info.name, info.role, cgc_dtype_name(info.dtype),
                                 sizesOf(info.rank, info.sizes)));
  }
  return nb::tuple(states);
}

} // namespace cgc_python

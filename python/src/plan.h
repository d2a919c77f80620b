// Plan: a loaded plan file and the description of its entries and states.
#pragma once

#include <cgc.h>
#include <nanobind/nanobind.h>

#include <memory>

namespace cgc_python {

/// Owns a cgc_plan.
class Plan final {
public:
  /// Maps and verifies the plan file at `path`, without the GIL.
  explicit Plan(const char *path);

  const cgc_plan *get() const { return plan_.get(); }
  /// A tuple for each entry: (name, takes any batch, buckets). A bucket is (inputs, outputs), and
  /// each of those a tuple of (name, dtype, sizes, batch dimension or -1).
  nanobind::tuple entries() const;
  /// A tuple of (name, role, dtype, sizes) for each state of a training plan.
  nanobind::tuple states() const;
  bool needsLibTorch() const { return cgc_plan_needs_libtorch(plan_.get()); }

private:
  struct Destroy {
    void operator()(cgc_plan *plan) const { cgc_plan_destroy(plan); }
  };
  std::unique_ptr<cgc_plan, Destroy> plan_;
};

} // namespace cgc_python

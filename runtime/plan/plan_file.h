// Plan files: writing, and reading with full verification. docs/plan-format.md is the
// specification.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cgc {

/// Writes `plan` with one span of bytes for each weight. Validates first; atomic; same input, same
/// bytes.
CGC_API Status writePlan(const PlanData &plan, std::span<const std::span<const std::byte>> weights,
                         const std::string &path);

/// A plan file, mapped. Immutable; may be shared by any number of engines and threads.
class CGC_API Plan final {
public:
  enum class Verify {
    Metadata, ///< Header and metadata; weights are not read. For looking at a plan.
    Full,     ///< Also every byte of every weight.
  };
  /// Touches no GPU and executes nothing from the file. InvalidFile if anything is wrong with it.
  static Result<Plan> load(const std::string &path, Verify verify = Verify::Full);

  /// A plan that was never in a file, with the bytes of each weight: for running what was just
  /// compiled.
  static Result<Plan> fromMemory(PlanData plan, std::vector<std::vector<std::byte>> weights);

  const PlanData &data() const { return data_; }
  std::span<const std::byte> weightBytes(size_t weight) const;
  uint64_t fileBytes() const;

private:
  Plan(std::optional<MappedFile> file, PlanData data,
       std::vector<std::vector<std::byte>> memory = {})
      : file_(std::move(file)), data_(std::move(data)), memory_(std::move(memory)) {}
  std::optional<MappedFile> file_;
  PlanData data_;
  std::vector<std::vector<std::byte>> memory_; ///< The weights of a plan without a file.
};

/// Checks the invariants of plan.h. Errors name entry, bucket and record.
CGC_API Status validate(const PlanData &plan);

/// Whether a plan may call an entry, input or output so: 1 to 4096 bytes of UTF-8 without control
/// characters.
CGC_API bool isPlanName(std::string_view name);

/// One record of such a listing, with its tensors shown as `tensorText` says.
CGC_API std::string recordText(const LaunchRecord &record,
                               const std::function<std::string(TensorId)> &tensorText);

/// A stable listing of a plan for people: entries, buckets, tensors, records.
CGC_API std::string toText(const PlanData &plan);

} // namespace cgc

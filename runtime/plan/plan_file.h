// Plan files: writing them, and reading them with full verification. docs/plan-format.md is the
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

/// Validates `plan` and writes it to `path` atomically, with one span of bytes for each weight.
/// Deterministic: the same input gives the same bytes. InvalidFile if the plan is invalid,
/// Unsupported if its metadata is too large, Failed if the file cannot be written.
CGC_API Status writePlan(const PlanData &plan, std::span<const std::span<const std::byte>> weights,
                         const std::string &path);

/// A plan and the bytes of its weights, usually a mapped file. Immutable: any number of engines and
/// threads may share it.
class CGC_API Plan final {
public:
  enum class Verify {
    Metadata, ///< Header and metadata only, for inspecting a plan.
    Full,     ///< Every byte, weights included.
  };
  /// Maps and verifies a plan file. Touches no GPU and executes nothing from the file. InvalidFile
  /// if the file is missing, damaged or invalid; OutOfMemory if it cannot be mapped.
  static Result<Plan> load(const std::string &path, Verify verify = Verify::Full);

  /// Makes a plan that was never in a file, to run a model that was just compiled. `weights` has
  /// the bytes of each weight. InvalidFile if the plan is invalid.
  static Result<Plan> fromMemory(PlanData plan, std::vector<std::vector<std::byte>> weights);

  const PlanData &data() const { return data_; }
  /// The bytes of the weight of this index, dense and row-major. They live as long as the plan.
  std::span<const std::byte> weightBytes(size_t weight) const;
  /// The size of the plan file in bytes; 0 for a plan without a file.
  uint64_t fileBytes() const;

private:
  Plan(std::optional<MappedFile> file, PlanData data,
       std::vector<std::vector<std::byte>> memory = {})
      : file_(std::move(file)), data_(std::move(data)), memory_(std::move(memory)) {}
  std::optional<MappedFile> file_;
  PlanData data_;
  std::vector<std::vector<std::byte>> memory_; ///< The weights of a plan without a file.
};

/// Checks the invariants of plan.h. InvalidFile names entry, bucket and record.
CGC_API Status validate(const PlanData &plan);

/// Whether `name` is a valid name of an entry, input or output: 1 to 4096 bytes of UTF-8 without
/// control characters.
CGC_API bool isPlanName(std::string_view name);

/// The line of toText() for one record, whose tensors `tensorText` formats.
CGC_API std::string recordText(const LaunchRecord &record,
                               const std::function<std::string(TensorId)> &tensorText);

/// A listing of a plan for people and tests: entries, buckets, tensors, records. Its format is
/// stable.
CGC_API std::string toText(const PlanData &plan);

} // namespace cgc

// validate(): checks the invariants of plan.h for plans from untrusted sources: the plan, its
// entries, buckets and tensors here, records in validate_record.cpp and validate_access.cpp,
// branches in validate_branches.cpp, batches and times in validate_batch.cpp. Checks that depend on
// the runtime's kernels, libraries and ops happen when a context binds the records
// (docs/plan-format.md, "Plans from elsewhere").
#include "runtime/base/checked.h"
#include "runtime/base/printable.h"
#include "runtime/base/training_names.h"
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/names.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/validate_access.h"
#include "runtime/plan/validate_batch.h"
#include "runtime/plan/validate_branches.h"
#include "runtime/plan/validate_record.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace cgc {
namespace {

constexpr size_t kMaxEntries = 1 << 10, kMaxBuckets = 1 << 10, kMaxIo = 1 << 10;
constexpr size_t kMaxItems = 1 << 20; // Weights and locations; tensors and records of a bucket.
constexpr size_t kMaxOpLibraries = 64;
// Limit in bytes on the weights, the largest arena, and all inputs and outputs together, and on the
// elements of one tensor. Sums and products of such sizes fit into 64 bits.
constexpr uint64_t kMaxBytes = uint64_t(1) << 48;

/// Checks one plan. `where_` names the object being checked, for messages.
class Validator {
public:
  explicit Validator(const PlanData &plan) : plan_(plan) {}

  Status run() {
    if (plan_.target != DeviceKind::Cpu && plan_.target != DeviceKind::Cuda)
      return fail("unknown target " + std::to_string(int(plan_.target)));
    if (!isPrintableUtf8(plan_.producer) || plan_.producer.size() > kMaxNameBytes)
      return fail("the producer is not printable text");
    if (plan_.precision && !isFloating(*plan_.precision))
      return fail("the precision is no floating dtype");
    if (plan_.gpu && (!isPlanName(plan_.gpu->name) || plan_.gpu->multiprocessors == 0))
      return fail("the GPU has no name, or no multiprocessors");
    CGC_TRY(count(plan_.entries.size(), 1, kMaxEntries, "entries"));
    CGC_TRY(count(plan_.weights.size(), 0, kMaxItems, "weights"));
    CGC_TRY(count(plan_.locations.size(), 0, kMaxItems, "locations"));
    for (const SourceLocation &location : plan_.locations)
      for (const std::string &text : {location.file, location.module})
        if (!isPrintableUtf8(text) || text.size() > kMaxNameBytes)
          return fail("a source location is not printable text, or too long");
    CGC_TRY(checkWeights());
    CGC_TRY(checkStates());
    CGC_TRY(checkTraining());
    CGC_TRY(checkOpLibraries());
    std::set<std::string_view> names;
    for (const Entry &entry : plan_.entries) {
      where_ = "entry '" + entry.name + "'";
      CGC_TRY(checkName(entry.name, names));
      CGC_TRY(count(entry.buckets.size(), 1, kMaxBuckets, "buckets"));
      CGC_TRY(checkBucketShapes(entry));
      for (size_t i = 0; i < entry.buckets.size(); ++i) {
        where_ = "entry '" + entry.name + "', bucket " + std::to_string(i);
        CGC_TRY(checkBucket(entry.buckets[i]));
      }
      where_ = "entry '" + entry.name + "'";
      CGC_TRY(located(checkBatch(plan_, entry)));
    }
    where_.clear();
    if (plan_.tf32 && plan_.target != DeviceKind::Cuda)
      return fail("GEMMs may round to TF32, and the target is cpu");
    if (plan_.gpu && plan_.target != DeviceKind::Cuda)
      return fail("a GPU is named, and the target is cpu");
    return Status::ok();
  }

private:
  Status fail(const std::string &what) const {
    return {Code::InvalidFile, "invalid plan: " + (where_.empty() ? what : where_ + ": " + what)};
  }

  /// Returns `status`, whose error lacks the object being checked.
  Status located(const Status &status) const {
    return status.isOk() ? status : fail(status.message());
  }

  Status count(size_t n, size_t least, size_t most, const char *what) const {
    if (n < least || n > most)
      return fail(std::to_string(n) + " " + what + "; allowed are " + std::to_string(least) +
                  " to " + std::to_string(most));
    return Status::ok();
  }

  Status checkName(const std::string &name, std::set<std::string_view> &seen) const {
    if (!isPlanName(name))
      return fail("a name is empty, too long or not printable text");
    if (!seen.insert(name).second)
      return fail("the name '" + name + "' is used twice");
    return Status::ok();
  }

  Status checkDense(DType dtype, const std::vector<int64_t> &sizes) const {
    if (static_cast<int>(dtype) >= kNumDTypes)
      return fail("unknown element type " + std::to_string(int(dtype)));
    if (sizes.size() > kMaxRank)
      return fail("rank " + std::to_string(sizes.size()) + " is above " + std::to_string(kMaxRank));
    const auto bytes = tensorBytes(dtype, sizes);
    if (!bytes || *bytes > kMaxBytes)
      return fail("sizes are negative or too large");
    return Status::ok();
  }

  /// Checks a bound of `io`, whose type checkDense() has accepted. Its elements are no more than
  /// those of `io`, so that checking the indices of a call takes no longer than copying them.
  Status checkBound(const IoTensor &io, const IndexBound &bound) const {
    const auto refuse = [&](const char *why) {
      return fail("a bound for the indices of '" + io.name + "' " + why);
    };
    if (isFloating(io.dtype) || io.dtype == DType::Bool)
      return refuse("that are no integers");
    if (bound.end <= bound.least)
      return refuse("allows no index");
    if (bound.sizes.size() > kMaxRank)
      return refuse("has too many dimensions");
    const auto extent = tensorExtent({{}, io.dtype, bound.sizes, bound.strides});
    const auto bytes = tensorBytes(io.dtype, bound.sizes);
    const uint64_t all = *tensorBytes(io.dtype, io.sizes);
    if (bound.offset < 0 || !extent || !bytes || *bytes > all || *extent > all ||
        uint64_t(bound.offset) > (all - *extent) / dtypeSize(io.dtype))
      return refuse("lies outside the input");
    return Status::ok();
  }

  /// Adds the size of a buffer that checkDense() has accepted to the plan's total.
  Status addBytes(uint64_t bytes) {
    bytes_ += bytes; // No overflow: both are at most kMaxBytes.
    if (bytes_ > kMaxBytes)
      return fail("its buffers take more than " + std::to_string(kMaxBytes) + " bytes");
    return Status::ok();
  }

  Status checkWeights() {
    std::set<std::string_view> names;
    for (const Weight &weight : plan_.weights) {
      where_ = "weight '" + weight.name + "'";
      CGC_TRY(checkName(weight.name, names));
      CGC_TRY(checkDense(weight.dtype, weight.sizes));
      CGC_TRY(addBytes(*tensorBytes(weight.dtype, weight.sizes)));
    }
    where_.clear();
    return Status::ok();
  }

  Status checkStates() {
    CGC_TRY(count(plan_.states.size(), 0, kMaxItems, "states"));
    std::set<std::string_view> names;
    for (const State &state : plan_.states) {
      where_ = "state '" + state.name + "'";
      CGC_TRY(checkName(state.name, names));
      CGC_TRY(checkDense(state.dtype, state.sizes));
      CGC_TRY(addBytes(*tensorBytes(state.dtype, state.sizes)));
      if (static_cast<int>(state.role) >= kNumStateRoles)
        return fail("unknown role " + std::to_string(int(state.role)));
      if (state.shard && *state.shard >= plan_.states.size())
        return fail("shard " + std::to_string(*state.shard) + " of a plan with " +
                    std::to_string(plan_.states.size()) + " states");
      if (state.initial == kBeginsAsZeros)
        continue;
      if (state.initial >= plan_.weights.size())
        return fail("there is no weight " + std::to_string(state.initial));
      const Weight &initial = plan_.weights[state.initial];
      // Weights of equal bytes are one, whose sizes may be those of another state.
      if (initial.dtype != state.dtype ||
          tensorBytes(initial.dtype, initial.sizes) != tensorBytes(state.dtype, state.sizes))
        return fail("its first value, weight '" + initial.name + "', is of another type");
    }
    where_.clear();
    return checkOwners();
  }

  /// Checks the states whose names say that they belong to a parameter: "w:exp_avg" to "w".
  Status checkOwners() {
    std::map<std::string_view, const State *> parameters;
    for (const State &state : plan_.states)
      if (state.role == StateRole::Parameter)
        parameters.emplace(state.name, &state);
    for (const State &state : plan_.states) {
      where_ = "state '" + state.name + "'";
      if (state.name == kNotesName)
        return fail("files of safetensors keep this name for their notes");
      const size_t colon = std::min(state.name.rfind(':'), state.name.size());
      const std::string_view name = std::string_view(state.name).substr(0, colon),
                             word = std::string_view(state.name).substr(colon);
      const std::string role(stateRoleName(state.role));
      const bool isAverage = state.role == StateRole::Average,
                 isGradient = state.role == StateRole::Gradient,
                 isCopy = state.role == StateRole::Copy;
      const auto found = parameters.find(name);
      if (found == parameters.end()) {
        if (isAverage || isGradient || isCopy)
          return fail("its role is " + role + ", and there is no parameter '" + std::string(name) +
                      "'");
        continue;
      }
      if (isAverage != (word == kAverageSuffix) || isGradient != (word == kGradientSuffix) ||
          (isCopy && word != ":" + std::string(dtypeName(state.dtype))))
        return fail("the role " + role + " does not go with this name");
      if (!isAverage && !isGradient && !isCopy && state.role != StateRole::Optimizer)
        continue;
      const State &parameter = *found->second;
      if (state.sizes != parameter.sizes ||
          (isCopy || isGradient ? !isFloating(state.dtype) : state.dtype != parameter.dtype))
        return fail("it is " + shapeText(state.dtype, state.sizes) + ", and its parameter " +
                    shapeText(parameter.dtype, parameter.sizes));
    }
    where_.clear();
    return Status::ok();
  }

  /// Checks what the plan says of its step. It has to be printable, and the optimizer to have the
  /// groups of the states.
  Status checkTraining() {
    if (!plan_.training)
      return Status::ok();
    where_ = "training";
    const TrainingStep &step = *plan_.training;
    const OptimizerOptions &optimizer = step.optimizer;
    if (!plan_.findEntry(kStepEntry))
      return fail("there is no entry '" + std::string(kStepEntry) + "'");
    if (!isPlanName(step.method))
      return fail("the method is not printable text");
    if (step.autocast && *step.autocast != DType::F16 && *step.autocast != DType::BF16)
      return fail("the dtype of autocast is neither f16 nor bf16");
    if (static_cast<size_t>(optimizer.rule) >= std::size(kOptimizerRules) ||
        static_cast<size_t>(optimizer.schedule) >= std::size(kSchedules))
      return fail("the rule or the schedule is unknown");
    const auto isNumber = [](double number) { return std::isfinite(number) && number >= 0; };
    for (const OptimizerNumber &number : kOptimizerNumbers)
      if (!isNumber(optimizer.*number.value))
        return fail("'" + std::string(number.name) + "' is negative or not finite");
    CGC_TRY(count(optimizer.groups.size(), 0, kMaxItems, "groups"));
    for (const ParameterGroup &group : optimizer.groups)
      if (!std::ranges::all_of(group.globs, isPlanName) || !isNumber(group.lrScale) ||
          !isNumber(group.weightDecay.value_or(0)))
        return fail("a group has a glob that is not printable text, or a wrong number");
    CGC_TRY(count(optimizer.clamps.size(), 0, kMaxItems, "clamps"));
    for (const ParameterClamp &clamp : optimizer.clamps)
      if (!isPlanName(clamp.path) || !std::isfinite(clamp.min) || !std::isfinite(clamp.max) ||
          clamp.min > clamp.max)
        return fail("a clamp has a path that is not printable text, or wrong limits");
    if (optimizer.growthInterval < 0)
      return fail("the growth interval is negative");
    const auto rates = plan_.findState(kLrState);
    if (!rates || plan_.states[*rates].dtype != DType::F32 ||
        plan_.states[*rates].sizes !=
            std::vector<int64_t>{static_cast<int64_t>(optimizer.groups.size()) + 1})
      return fail("the state '" + std::string(kLrState) + "' has no rate for each of its groups");
    where_.clear();
    return Status::ok();
  }

  Status checkOpLibraries() const {
    CGC_TRY(count(plan_.opLibraries.size(), 0, kMaxOpLibraries, "op libraries"));
    std::set<std::string_view> names;
    for (const OpLibraryId &library : plan_.opLibraries) {
      CGC_TRY(checkName(library.name, names));
      if (library.name == kGemmLibrary)
        return fail("an op library has the name of a vendor's library, '" + library.name + "'");
    }
    return Status::ok();
  }

  /// Checks that the buckets of an entry differ only in sizes and that no two have the same input
  /// shapes.
  Status checkBucketShapes(const Entry &entry) const {
    const auto sameSignature = [](const std::vector<IoTensor> &a, const std::vector<IoTensor> &b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const IoTensor &x, const IoTensor &y) {
                          return x.name == y.name && x.dtype == y.dtype;
                        });
    };
    std::set<std::vector<std::vector<int64_t>>> shapes;
    for (const Bucket &bucket : entry.buckets) {
      if (!sameSignature(bucket.inputs, entry.buckets[0].inputs) ||
          !sameSignature(bucket.outputs, entry.buckets[0].outputs))
        return fail("its buckets differ in the names or element types of inputs or outputs");
      std::vector<std::vector<int64_t>> key;
      for (const IoTensor &input : bucket.inputs)
        key.push_back(input.sizes);
      if (!shapes.insert(std::move(key)).second)
        return fail("two buckets take the same input shapes");
    }
    return Status::ok();
  }

  Status checkBucket(const Bucket &bucket) {
    const std::string where = where_;
    CGC_TRY(count(bucket.inputs.size(), 0, kMaxIo, "inputs"));
    CGC_TRY(count(bucket.outputs.size(), 1, kMaxIo, "outputs"));
    CGC_TRY(count(bucket.tensors.size(), 0, kMaxItems, "tensors"));
    // A bucket whose outputs are all empty needs no record.
    CGC_TRY(count(bucket.records.size(), 0, kMaxItems, "records"));
    if (bucket.arenaBytes > kMaxBytes)
      return fail("an arena of " + std::to_string(bucket.arenaBytes) + " bytes");
    if (bucket.arenaBytes > arenaBytes_) {
      CGC_TRY(addBytes(bucket.arenaBytes - arenaBytes_));
      arenaBytes_ = bucket.arenaBytes;
    }
    for (const auto *list : {&bucket.inputs, &bucket.outputs}) {
      std::set<std::string_view> names;
      for (const IoTensor &io : *list) {
        CGC_TRY(checkName(io.name, names));
        CGC_TRY(checkDense(io.dtype, io.sizes));
        CGC_TRY(addBytes(*tensorBytes(io.dtype, io.sizes)));
        CGC_TRY(count(io.indexBounds.size(), 0, kMaxIndexBounds, "bounds of one input"));
        for (const IndexBound &bound : io.indexBounds)
          CGC_TRY(checkBound(io, bound));
      }
    }
    for (size_t i = 0; i < bucket.tensors.size(); ++i) {
      where_ = where + ", tensor " + std::to_string(i);
      CGC_TRY(checkTensor(bucket, bucket.tensors[i]));
    }
    AccessCheck access(plan_, bucket, steps_);
    for (size_t i = 0; i < bucket.records.size(); ++i) {
      where_ = where + ", record " + std::to_string(i) + " (" + recordName(bucket.records[i]) + ")";
      CGC_TRY(located(checkRecord(plan_, bucket, bucket.records[i])));
      CGC_TRY(located(access.add(bucket.records[i])));
    }
    where_ = where;
    CGC_TRY(located(access.checkSent()));
    CGC_TRY(located(checkBranches(bucket)));
    for (uint32_t i = 0; i < bucket.outputs.size(); ++i)
      if (!access.writesOutput(i))
        return fail("no record writes all of output '" + bucket.outputs[i].name + "'");
    return Status::ok();
  }

  Status checkTensor(const Bucket &bucket, const TensorRef &tensor) const {
    if (static_cast<int>(tensor.dtype) >= kNumDTypes)
      return fail("unknown element type " + std::to_string(int(tensor.dtype)));
    if (tensor.sizes.size() > kMaxRank)
      return fail("rank " + std::to_string(tensor.sizes.size()) + " is above " +
                  std::to_string(kMaxRank));
    const auto extent = tensorExtent(tensor);
    if (!extent)
      return fail("sizes or strides are negative, too large, or not of the same number");
    const auto bytes = tensorBytes(tensor.dtype, tensor.sizes);
    if (!bytes || *bytes > kMaxBytes)
      return fail("it has too many elements");
    const uint32_t index = tensor.slot.index;
    // Weights, inputs, outputs and states are typed: the tensor must have the buffer's element
    // type.
    const auto inTyped = [&](const auto &buffers, const char *kind) -> Status {
      if (index >= buffers.size())
        return fail("there is no " + std::string(kind) + " " + std::to_string(index));
      if (buffers[index].dtype != tensor.dtype)
        return fail("is " + std::string(dtypeName(tensor.dtype)) + " in a " + kind + " of " +
                    std::string(dtypeName(buffers[index].dtype)));
      return inside(tensor, *extent, *tensorBytes(buffers[index].dtype, buffers[index].sizes));
    };
    switch (tensor.slot.buffer) {
    case BufferKind::Weight:
      return inTyped(plan_.weights, "weight");
    case BufferKind::Input:
      return inTyped(bucket.inputs, "input");
    case BufferKind::Output:
      return inTyped(bucket.outputs, "output");
    case BufferKind::State:
      return inTyped(plan_.states, "state");
    case BufferKind::Arena:
      if (index != 0)
        return fail("there is only one arena");
      return inside(tensor, *extent, bucket.arenaBytes);
    }
    return fail("unknown kind of buffer " + std::to_string(int(tensor.slot.buffer)));
  }

  Status inside(const TensorRef &tensor, uint64_t extent, uint64_t total) const {
    if (tensor.slot.offset % dtypeSize(tensor.dtype) != 0)
      return fail("its offset is not a multiple of its element size");
    if (!rangeInside(tensor.slot.offset, extent, total))
      return fail("it reaches past the " + std::to_string(total) + " bytes of its buffer");
    return Status::ok();
  }

  const PlanData &plan_;
  std::string where_;
  uint64_t bytes_ = 0;      ///< Total size of the buffers checked so far.
  uint64_t arenaBytes_ = 0; ///< Size of the largest arena so far.
  uint64_t steps_ = kMaxWrittenSteps;
};

} // namespace

Status validate(const PlanData &plan) {
  return Validator(plan).run();
}

} // namespace cgc

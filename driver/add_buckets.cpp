// addBuckets: weights by content, and the tables that buckets refer to by index.
#include "driver/add_buckets.h"

#include "runtime/base/file.h"

#include <algorithm>
#include <unordered_map>

namespace cgc::driver {
namespace {

bool equalSizes(const Bucket &a, const Bucket &b) {
  return std::ranges::equal(a.inputs, b.inputs, {}, &IoTensor::sizes, &IoTensor::sizes);
}

/// Usage unless the tensors differ in sizes and bounds only.
Status checkTensors(const std::vector<IoTensor> &known, const std::vector<IoTensor> &added,
                    const std::string &what) {
  const auto alike = [](const IoTensor &a, const IoTensor &b) {
    return a.name == b.name && a.dtype == b.dtype && a.sizes.size() == b.sizes.size();
  };
  return std::ranges::equal(known, added, alike)
             ? Status::ok()
             : Status(Code::Usage, what + " have other names, dtypes or numbers of dimensions than "
                                          "in the plan, so that it is a plan of another model");
}

/// Adds one compilation to a plan, whose tables it extends.
class Extension final {
public:
  Extension(const Plan &plan, const backend::CompiledPlan &added) : added_(added) {
    result_.plan = plan.data();
    for (size_t i = 0; i < result_.plan.weights.size(); ++i) {
      result_.weights.push_back(plan.weightBytes(i));
      byHash_.emplace(hash64(result_.weights.back()), uint32_t(i));
    }
  }

  Result<ExtendedPlan> run() {
    PlanData &plan = result_.plan;
    CGC_TRY(checkOptions());
    for (size_t i = 0; i < added_.plan.weights.size(); ++i) {
      CGC_ASSIGN_OR_RETURN(const uint32_t index, indexOfWeight(i));
      weights_.push_back(index);
    }
    for (const State &state : added_.plan.states) {
      CGC_ASSIGN_OR_RETURN(const uint32_t index, indexOfState(state));
      states_.push_back(index);
    }
    for (const SourceLocation &location : added_.plan.locations) {
      const auto found = std::ranges::find(plan.locations, location);
      locations_.push_back(LocationId(found - plan.locations.begin()));
      if (found == plan.locations.end())
        plan.locations.push_back(location);
    }
    for (const OpLibraryId &library : added_.plan.opLibraries)
      if (std::ranges::find(plan.opLibraries, library) == plan.opLibraries.end())
        plan.opLibraries.push_back(library);
    for (const Entry &entry : added_.plan.entries)
      CGC_TRY(addEntry(entry).withContext("entry '" + entry.name + "'"));
    return std::move(result_);
  }

private:
  Status checkOptions() const {
    const PlanData &plan = result_.plan, &added = added_.plan;
    const auto differ = [](const std::string &what) {
      return Status(Code::Usage, "the plan was compiled with another " + what +
                                     "; compile with that one, or into a new plan");
    };
    if (plan.target != added.target)
      return differ("--target, " + std::string(deviceName(plan.target)));
    if (plan.precision != added.precision || plan.tf32 != added.tf32)
      return differ("--precision, " + precisionOption(plan));
    if (plan.gpu.has_value() != added.gpu.has_value() ||
        (plan.gpu && plan.gpu->name != added.gpu->name))
      return differ("--arch, for " + (plan.gpu ? plan.gpu->name : std::string("no GPU")));
    return Status::ok();
  }

  /// The index of a weight of `added_` in the result, to which it is added if it is new. Usage if
  /// the model has other values for a weight that is in the plan.
  Result<uint32_t> indexOfWeight(size_t i) {
    Weight weight = added_.plan.weights[i];
    const auto bytes = added_.weights[i]->bytes();
    const std::span<const std::byte> content(bytes.data(), bytes.size());
    const uint64_t hash = hash64(content);
    auto [begin, end] = byHash_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (result_.plan.weights[it->second].dtype == weight.dtype &&
          std::ranges::equal(result_.weights[it->second], content))
        return it->second;
    if (!weight.isComputed && std::ranges::any_of(result_.plan.weights, [&](const Weight &known) {
          return !known.isComputed && known.name == weight.name && known.dtype == weight.dtype &&
                 known.sizes == weight.sizes;
        }))
      return Status(Code::Usage, "weight '" + weight.name +
                                     "' has other values than in the plan; give the model that "
                                     "the plan was compiled from, or compile into a new plan");
    const std::string name = weight.name;
    const auto isTaken = [&] {
      return std::ranges::find(result_.plan.weights, weight.name, &Weight::name) !=
             result_.plan.weights.end();
    };
    for (unsigned suffix = 1; isTaken(); ++suffix)
      weight.name = name + "." + std::to_string(suffix);
    const auto index = uint32_t(result_.plan.weights.size());
    result_.plan.weights.push_back(std::move(weight));
    result_.weights.push_back(content);
    byHash_.emplace(hash, index);
    return index;
  }

  /// The index of a state of `added_` in the result, to which it is added if it is new.
  Result<uint32_t> indexOfState(State state) {
    if (state.initial != kBeginsAsZeros)
      state.initial = weights_[state.initial];
    std::vector<State> &states = result_.plan.states;
    const size_t index = std::ranges::find(states, state.name, &State::name) - states.begin();
    if (index == states.size())
      states.push_back(state);
    else if (states[index] != state)
      return Status(Code::Usage, "state '" + state.name +
                                     "' is another one in the plan; give the model that the plan "
                                     "was compiled from, or compile into a new plan");
    return uint32_t(index);
  }

  LocationId locationOf(LocationId location) const {
    return location == kNoLocation ? location : locations_[size_t(location)];
  }

  Status addEntry(const Entry &entry) {
    std::vector<Entry> &entries = result_.plan.entries;
    withoutBatch_ = false;
    auto known = std::ranges::find(entries, entry.name, &Entry::name);
    if (known == entries.end()) {
      Entry fresh{.name = entry.name, .buckets = {}, .rows = entry.rows};
      fresh.rows.location = locationOf(entry.rows.location);
      known = entries.insert(entries.end(), std::move(fresh));
    } else {
      const Bucket &a = known->buckets[0], &b = entry.buckets[0];
      CGC_TRY(checkTensors(a.inputs, b.inputs, "its inputs"));
      CGC_TRY(checkTensors(a.outputs, b.outputs, "its outputs"));
      mergeRows(*known, entry);
    }
    for (const Bucket &bucket : entry.buckets) {
      if (std::ranges::any_of(known->buckets,
                              [&](const Bucket &other) { return equalSizes(other, bucket); }))
        return {Code::Usage, "the plan already has a bucket for " + shapesText(bucket.inputs)};
      known->buckets.push_back(bucket);
      retarget(known->buckets.back());
    }
    return Status::ok();
  }

  /// Keeps the claims that hold for both plans.
  void mergeRows(Entry &known, const Entry &entry) {
    if (known.rows.independent && !entry.rows.independent) {
      known.rows = entry.rows;
      known.rows.location = locationOf(entry.rows.location);
    }
    const bool alike = std::ranges::equal(known.buckets[0].inputs, entry.buckets[0].inputs, {},
                                          &IoTensor::batchDim, &IoTensor::batchDim) &&
                       std::ranges::equal(known.buckets[0].outputs, entry.buckets[0].outputs, {},
                                          &IoTensor::batchDim, &IoTensor::batchDim);
    if (alike && known.rows.independent == entry.rows.independent)
      return;
    withoutBatch_ = true;
    for (Bucket &bucket : known.buckets)
      clearBatch(bucket);
  }

  static void clearBatch(Bucket &bucket) {
    for (auto *list : {&bucket.inputs, &bucket.outputs})
      for (IoTensor &tensor : *list)
        tensor.batchDim = kNoBatchDim;
  }

  /// Lets a bucket of `added_` refer to the tables of the result.
  void retarget(Bucket &bucket) {
    for (TensorRef &tensor : bucket.tensors)
      if (tensor.slot.buffer == BufferKind::Weight)
        tensor.slot.index = weights_[tensor.slot.index];
      else if (tensor.slot.buffer == BufferKind::State)
        tensor.slot.index = states_[tensor.slot.index];
    for (LaunchRecord &record : bucket.records)
      record.location = locationOf(record.location);
    if (withoutBatch_)
      clearBatch(bucket);
  }

  const backend::CompiledPlan &added_;
  ExtendedPlan result_;
  std::unordered_multimap<uint64_t, uint32_t> byHash_;
  std::vector<uint32_t> weights_;     ///< By weight of `added_`: its index in the result.
  std::vector<uint32_t> states_;      ///< By state of `added_`: its index in the result.
  std::vector<LocationId> locations_; ///< By location of `added_`: its index in the result.
  bool withoutBatch_ = false;         ///< The plans disagree on the batch of this entry.
};

} // namespace

Result<ExtendedPlan> addBuckets(const Plan &plan, const backend::CompiledPlan &added) {
  return Extension(plan, added).run();
}

} // namespace cgc::driver

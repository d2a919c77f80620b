// BucketBuilder: the interface that the lowering of an op uses: where values live, and how to add
// records.
#pragma once

#include "backend/branches.h"
#include "backend/lower_options.h"
#include "backend/weights.h"
#include "ir/graph.h"
#include "runtime/base/check.h"
#include "runtime/plan/plan.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace cgc::backend {

/// A strided tensor in a storage of the bucket. Becomes a TensorRef once the arena is planned.
struct Place {
  uint32_t storage = 0;
  uint64_t offset = 0; ///< In bytes.
  DType dtype = DType::F32;
  ir::Dims sizes, strides; ///< Strides in elements.

  ir::TensorType type() const { return {dtype, sizes, strides, DeviceKind::Cpu}; }
  bool operator==(const Place &) const = default;
};

/// `place` with its leading dimensions merged into one, so that `rank` dimensions are left. Nothing
/// if the strides do not allow it.
std::optional<Place> mergeLeading(const Place &place, size_t rank);
/// `place` with its last two dimensions swapped. Its rank is at least 2.
Place transposed(Place place);

/// The source locations of a plan, without duplicates.
class LocationTable {
public:
  LocationId add(const ir::Loc &loc);
  std::vector<SourceLocation> take() { return std::move(locations_); }

private:
  std::vector<SourceLocation> locations_;
  std::map<std::tuple<std::string, unsigned, std::string>, uint32_t> index_;
};

struct FinishedBucket {
  Bucket bucket;
  /// The arena that it would need if its records ran in order, without branches.
  uint64_t serialArenaBytes = 0;
};

/// Builds one bucket. Records are added for one node at a time, in graph order.
class BucketBuilder {
public:
  BucketBuilder(LowerOptions options, WeightTable &weights, StateTable &states,
                LocationTable &locations)
      : options_(options), weights_(weights), states_(states), locations_(locations) {}

  DeviceKind target() const { return options_.target; }
  /// The GPUs whose kernels may be chosen for target cuda.
  Arch arch() const { return options_.arch; }
  /// Whether GEMMs of f32 may round their operands to tf32.
  bool tf32() const { return options_.tf32; }
  /// The number of SMs of the GPU that launch shapes are chosen for.
  int64_t multiprocessors() const { return options_.gpu().multiprocessors; }
  /// The GPU that kernels are chosen for, for target cuda.
  GpuTarget gpu() const { return {arch(), multiprocessors()}; }

  llvm::ArrayRef<std::shared_ptr<const OpLibrary>> opLibraries() const {
    return options_.opLibraries;
  }

  // Where values live.
  /// The place of a value that was already lowered.
  Place place(const ir::Value *value) const {
    auto it = places_.find(value);
    CGC_CHECK(it != places_.end() && "not lowered yet");
    return it->second;
  }
  /// That of an optional argument; nothing if it is none.
  std::optional<Place> optionalPlace(const ir::Arg &arg) const {
    return arg.isNone() ? std::nullopt : std::optional(place(arg.value()));
  }
  /// Whether `value`, which is placed, fills memory in the arena that no other value so far is in.
  bool isWhole(const ir::Value &value) const;
  bool isPlaced(const ir::Value *value) const { return places_.contains(value); }
  void setPlace(const ir::Value *value, Place place) { places_[value] = std::move(place); }
  /// Notes that `output`, of the definition of an op, is the result `result` of that op.
  void noteResult(const ir::Value *output, const ir::Value *result) { results_[output] = result; }
  /// The result of an op that `value`, of its definition, is; null if it is none.
  const ir::Value *resultOf(const ir::Value *value) const { return results_.lookup(value); }
  /// Allocates memory of its own for a result, laid out as its type says, and returns its place.
  Place allocate(const ir::Value &result);
  /// Allocates a dense scratch tensor that is alive from the first record that uses it to the last.
  Place temporary(DType dtype, llvm::ArrayRef<int64_t> sizes);
  void addInput(const ir::Value &value);
  /// `name`: of `parameter` in the whole model. The parameter has data.
  void addWeight(const ir::Value &value, const std::string &name, const ir::Parameter &parameter);
  /// Adds a weight that is no parameter of the model.
  Place addConstant(const std::string &name, const std::shared_ptr<const ir::TensorData> &data);

  /// Places `value` in the memory of a state.
  void addState(const ir::Value &value, const std::string &name, const ir::Parameter &state);

  // Records. Each belongs to the node of the last beginNode().
  void beginNode(const ir::Node &node) { location_ = locations_.add(node.loc()); }
  TensorId tensor(const Place &place);
  /// Requires the values of `indices` to be in [0, bound), or in [-bound, bound) if they wrap, if
  /// they are elements of an integer input, a copy of some, or such plus a number.
  void boundInput(const Place &indices, int64_t bound, bool wraps = false);
  /// Notes that `copy` has the elements of `source`, of the same sizes, for boundInput(). The ones
  /// that equal `exempt`, if given, are 0 in the copy.
  void noteCopy(const Place &source, const Place &copy, std::optional<int64_t> exempt = {});
  /// Notes that `sum` has the elements of `source`, of the same sizes and dtype, plus `number`, for
  /// boundInput().
  void noteSum(const Place &source, int64_t number, const Place &sum);
  /// A constant or a placed value as an argument of an ATen overload.
  AtenArg arg(const ir::Arg &arg);
  /// Adds a call that computes into `outputs`: an overload with true `out` arguments, or one that
  /// writes in place.
  void callInto(std::string op, std::string overload, std::vector<AtenArg> args,
                llvm::ArrayRef<Place> outputs);
  /// Adds a call whose results the provider copies to `outputs`. An output is absent if nothing
  /// reads that result.
  void callThenCopy(std::string op, std::string overload, std::vector<AtenArg> args,
                    llvm::ArrayRef<std::optional<Place>> outputs);
  /// Copies element by element and converts the dtype. The sizes must be equal.
  void copy(const Place &source, const Place &destination);
  /// Sets every element to `number`.
  void fill(const Place &destination, const ir::Arg &number);
  void record(LaunchRecord record) {
    record.location = location_;
    records_.push_back(std::move(record));
  }

  /// The state of the records, for undo().
  struct Mark {
    size_t records, tensors;
  };
  Mark mark() const { return {records_.size(), tensors_.size()}; }
  /// Removes the records that were added after `mark`.
  void undo(const Mark &mark);

  /// Makes `place` the next output. The record that computes it writes the output directly if
  /// `place` fills a storage of its own that is not an output already; else a copy is added. Call
  /// after all nodes.
  void addOutput(std::string name, const Place &place);
  /// A state and the place of its new value.
  struct StateWrite {
    std::string name;
    const ir::Parameter *state;
    Place value;
  };
  /// Gives the states their new values. The record that computes a value writes the state directly
  /// if no record after it reads the old value, nor the record itself, unless its kernel may
  /// overwrite what it reads; else a copy is added. Call once, after all outputs.
  void addStateWrites(llvm::ArrayRef<StateWrite> writes);
  /// Finds the branches if there may be any, plans the arena and resolves every place.
  FinishedBucket finish(bool branches);

private:
  /// The elements of a view of an input plus `added`, but for those that equal `exempt`.
  struct InputView {
    Place place;
    std::optional<int64_t> exempt = std::nullopt;
    int64_t added = 0;
  };
  struct Storage {
    BufferKind kind;
    uint32_t index;
    uint64_t bytes;
    std::optional<InputView> inputView = std::nullopt; ///< Whose elements it has.
  };
  Place newStorage(BufferKind kind, uint32_t index, const ir::TensorType &type);
  /// The dense place of a whole state.
  Place statePlace(const std::string &name, const ir::Parameter &state);
  /// Whether the records that write `value` may write `state` instead.
  bool canWriteInPlace(const Place &value, const Place &state) const;
  /// The storage that stands for all storages of the same memory: those of one state.
  uint32_t representative(uint32_t storage) const;
  /// Gives the records, which have these uses, their branches.
  void setBranches(llvm::ArrayRef<BufferUse> uses);
  /// The storages in arena, outputs and states that each record uses.
  std::vector<BufferUse> bufferUses() const;
  /// Returns true if `place` has each element of its storage once.
  bool coversStorage(const Place &place) const;
  /// Returns the view of an input that has the elements of `place`, in any order; nothing if
  /// `place` is neither in an input nor a whole copy of a view of one.
  std::optional<InputView> inputViewOf(const Place &place) const;

  LowerOptions options_;
  WeightTable &weights_;
  StateTable &states_;
  std::map<uint32_t, uint32_t> stateStorages_; ///< The first storage of each state.
  LocationTable &locations_;
  LocationId location_ = kNoLocation;
  std::vector<IoTensor> inputs_, outputs_;
  std::vector<Storage> storages_;
  llvm::DenseMap<const ir::Value *, Place> places_;              ///< Iterated only to count.
  llvm::DenseMap<const ir::Value *, const ir::Value *> results_; ///< By noteResult().
  std::vector<Place> tensors_;
  std::map<std::tuple<uint32_t, uint64_t, DType, std::vector<int64_t>, std::vector<int64_t>>,
           uint32_t>
      tensorIndex_;
  std::vector<LaunchRecord> records_;
};

} // namespace cgc::backend

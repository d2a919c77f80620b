// BucketBuilder: implements places, records, outputs and the arena of one bucket.
#include "backend/bucket_builder.h"

#include "backend/kernels.h"
#include "backend/memory_plan.h"
#include "backend/ops/lower_optimizer.h"
#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/plan/aten_ops.h"
#include "runtime/plan/collective_call.h"
#include "runtime/plan/names.h"

namespace cgc::backend {
namespace {

/// Bytes from the first element to the end of the last one.
uint64_t extent(const ir::TensorType &type) {
  if (type.numElements() == 0)
    return 0;
  uint64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.sizes, type.strides))
    last += static_cast<uint64_t>(size - 1) * static_cast<uint64_t>(stride);
  return (last + 1) * dtypeSize(type.dtype);
}

IoTensor ioTensor(std::string name, DType dtype, llvm::ArrayRef<int64_t> sizes) {
  return {.name = std::move(name), .dtype = dtype, .sizes = {sizes.begin(), sizes.end()}};
}

} // namespace

std::optional<Place> mergeLeading(const Place &place, size_t rank) {
  CGC_CHECK(rank > 0 && place.sizes.size() >= rank);
  size_t merged = place.sizes.size() - rank + 1;
  // Size and stride of the merged dimension, computed from the innermost dimension outward.
  int64_t size = 1, stride = 1;
  for (size_t i = merged; i-- > 0;) {
    if (place.sizes[i] == 1)
      continue;
    if (size == 1)
      stride = place.strides[i];
    else if (place.strides[i] != stride * size)
      return std::nullopt;
    size *= place.sizes[i];
  }
  if (size == 1) {
    // Any stride is correct; this one keeps a matrix row-major where possible.
    stride = 1;
    for (size_t i = merged; i < place.sizes.size(); ++i)
      stride = std::max(stride, place.sizes[i] * place.strides[i]);
  }
  Place result = place;
  result.sizes = {size};
  result.strides = {stride};
  result.sizes.append(place.sizes.begin() + merged, place.sizes.end());
  result.strides.append(place.strides.begin() + merged, place.strides.end());
  return result;
}

Place transposed(Place place) {
  size_t rank = place.sizes.size();
  CGC_CHECK(rank >= 2);
  std::swap(place.sizes[rank - 1], place.sizes[rank - 2]);
  std::swap(place.strides[rank - 1], place.strides[rank - 2]);
  return place;
}

LocationId LocationTable::add(const ir::Loc &loc) {
  if (!loc.isKnown())
    return kNoLocation;
  // The model's file may have any names. Those of a plan are short and printable.
  constexpr size_t kMost = kMaxNameBytes / 2;
  SourceLocation location{printable(loc.file, kMost), loc.line, printable(loc.module, kMost)};
  const auto next = static_cast<uint32_t>(locations_.size());
  auto [it, isNew] = index_.try_emplace({location.file, location.line, location.module}, next);
  if (isNew)
    locations_.push_back(std::move(location));
  return LocationId{it->second};
}

Place BucketBuilder::newStorage(BufferKind kind, uint32_t index, const ir::TensorType &type) {
  storages_.push_back({kind, index, extent(type)});
  return {static_cast<uint32_t>(storages_.size() - 1), 0, type.dtype, type.sizes, type.strides};
}

Place BucketBuilder::allocate(const ir::Value &result) {
  Place place = newStorage(BufferKind::Arena, 0, result.tensor());
  setPlace(&result, place);
  return place;
}

Place BucketBuilder::temporary(DType dtype, llvm::ArrayRef<int64_t> sizes) {
  return newStorage(BufferKind::Arena, 0, ir::TensorType::dense(dtype, sizes));
}

void BucketBuilder::addInput(const ir::Value &value) {
  const ir::TensorType &type = value.tensor();
  auto index = static_cast<uint32_t>(inputs_.size());
  setPlace(&value, newStorage(BufferKind::Input, index, type));
  inputs_.push_back(ioTensor(value.name(), type.dtype, type.sizes));
}

void BucketBuilder::addWeight(const ir::Value &value, const std::string &name,
                              const ir::Parameter &parameter) {
  const uint32_t weight = weights_.add(name, parameter.data, !parameter.isOfModel());
  setPlace(&value, newStorage(BufferKind::Weight, weight, value.tensor()));
}

Place BucketBuilder::addConstant(const std::string &name,
                                 const std::shared_ptr<const ir::TensorData> &data) {
  const uint32_t weight = weights_.add(name, data, /*isComputed=*/true);
  return newStorage(BufferKind::Weight, weight, data->type());
}

Place BucketBuilder::statePlace(const std::string &name, const ir::Parameter &state) {
  const uint32_t index = states_.add(name, state, weights_);
  const ir::TensorType type = ir::TensorType::dense(state.type.dtype, state.type.sizes);
  if (const auto known = stateStorages_.find(index); known != stateStorages_.end())
    return {known->second, 0, type.dtype, type.sizes, type.strides};
  Place place = newStorage(BufferKind::State, index, type);
  stateStorages_[index] = place.storage;
  return place;
}

void BucketBuilder::addState(const ir::Value &value, const std::string &name,
                             const ir::Parameter &state) {
  setPlace(&value, statePlace(name, state));
}

uint32_t BucketBuilder::representative(uint32_t storage) const {
  return storages_[storage].kind == BufferKind::State ? stateStorages_.at(storages_[storage].index)
                                                      : storage;
}

bool BucketBuilder::canWriteInPlace(const Place &value, const Place &state) const {
  const Storage &storage = storages_[value.storage];
  if (storage.kind != BufferKind::Arena || !value.type().isContiguous() ||
      value.type().numBytes() != storage.bytes)
    return false;
  const auto isIn = [&](const Place &place) {
    return [this, &place](TensorId id) {
      return id != kNoTensor &&
             representative(tensors_[static_cast<uint32_t>(id)].storage) == place.storage;
    };
  };
  const auto isNew = isIn(value), isOld = isIn(state);
  const auto sameLayout = [&](TensorId a, TensorId b) {
    Place other = tensors_[static_cast<uint32_t>(b)];
    other.storage = tensors_[static_cast<uint32_t>(a)].storage;
    return tensors_[static_cast<uint32_t>(a)] == other;
  };
  bool written = false;
  for (const LaunchRecord &record : records_) {
    const bool writes = llvm::any_of(recordWrites(record), isNew);
    if (llvm::any_of(recordReads(record), isOld) &&
        (written || (writes && !mayOverwrite(record, isNew, isOld, sameLayout))))
      return false;
    written |= writes;
  }
  return written;
}

void BucketBuilder::addStateWrites(llvm::ArrayRef<StateWrite> writes) {
  std::vector<std::pair<Place, Place>> values; // Each new value and its state.
  for (const StateWrite &write : writes) {
    const Place state = statePlace(write.name, *write.state);
    Place value = write.value;
    // The value of another state may be overwritten before it is copied.
    if (storages_[value.storage].kind == BufferKind::State &&
        (value.storage != state.storage || value != state)) {
      value = temporary(state.dtype, state.sizes);
      copy(write.value, value);
    }
    values.emplace_back(std::move(value), state);
  }
  for (const auto &[value, state] : values) {
    if (value == state)
      continue;
    if (canWriteInPlace(value, state)) {
      storages_[value.storage].kind = BufferKind::State;
      storages_[value.storage].index = storages_[state.storage].index;
    } else {
      copy(value, state);
    }
  }
}

TensorId BucketBuilder::tensor(const Place &place) {
  auto next = static_cast<uint32_t>(tensors_.size());
  auto [it, isNew] = tensorIndex_.try_emplace({place.storage,
                                               place.offset,
                                               place.dtype,
                                               {place.sizes.begin(), place.sizes.end()},
                                               {place.strides.begin(), place.strides.end()}},
                                              next);
  if (isNew)
    tensors_.push_back(place);
  return TensorId{it->second};
}

bool BucketBuilder::isWhole(const ir::Value &value) const {
  const Place own = place(&value);
  return storages_[own.storage].kind == BufferKind::Arena && own.type().isContiguous() &&
         own.type().numBytes() == storages_[own.storage].bytes &&
         llvm::count_if(
             places_, [&](const auto &entry) { return entry.second.storage == own.storage; }) == 1;
}

AtenArg BucketBuilder::arg(const ir::Arg &arg) {
  if (arg.isNone())
    return NoneArg{};
  if (arg.isValue())
    return tensor(place(arg.value()));
  if (auto *b = arg.getIf<bool>())
    return *b;
  if (auto *i = arg.getIf<int64_t>())
    return *i;
  if (auto *d = arg.getIf<double>())
    return *d;
  if (auto *s = arg.getIf<std::string>())
    return *s;
  if (auto *dtype = arg.getIf<DType>())
    return *dtype;
  if (arg.is<DeviceKind>())
    return DeviceArg{};
  if (auto ints = arg.asInts())
    return std::vector<int64_t>(ints->begin(), ints->end());
  if (!arg.isConstant()) {
    std::vector<TensorId> tensors;
    for (const ir::Arg &element : arg.list())
      tensors.push_back(element.isValue() ? tensor(place(element.value())) : kNoTensor);
    return tensors;
  }
  std::vector<double> numbers;
  for (const ir::Arg &element : arg.list())
    numbers.push_back(element.asNumber().value_or(0));
  return numbers;
}

void BucketBuilder::callInto(std::string op, std::string overload, std::vector<AtenArg> args,
                             llvm::ArrayRef<Place> outputs) {
  CGC_CHECK(isAllowedAtenOp(op) && "add it to runtime/plan/aten_ops.h");
  AtenCall call{std::move(op), std::move(overload), std::move(args), {}, /*writesOut=*/true};
  for (const Place &output : outputs)
    call.outputs.push_back(tensor(output));
  record({std::move(call)});
}

void BucketBuilder::callThenCopy(std::string op, std::string overload, std::vector<AtenArg> args,
                                 llvm::ArrayRef<std::optional<Place>> outputs) {
  CGC_CHECK(isAllowedAtenOp(op) && "add it to runtime/plan/aten_ops.h");
  AtenCall call{std::move(op), std::move(overload), std::move(args), {}, /*writesOut=*/false};
  for (const std::optional<Place> &output : outputs)
    call.outputs.push_back(output ? tensor(*output) : kNoTensor);
  record({std::move(call)});
}

void BucketBuilder::copy(const Place &source, const Place &destination) {
  CGC_CHECK(source.sizes == destination.sizes);
  noteCopy(source, destination);
  if (source.dtype == destination.dtype && source.type().isContiguous() &&
      destination.type().isContiguous())
    record({Memcpy{tensor(source), tensor(destination)}});
  else if (!launchCopy(source, destination, *this))
    callInto("aten::copy_", "", {tensor(source), false}, destination);
}

bool BucketBuilder::coversStorage(const Place &place) const {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 6> dims; // Stride and size.
  for (auto [size, stride] : llvm::zip_equal(place.sizes, place.strides))
    if (size != 1)
      dims.emplace_back(stride, size);
  llvm::sort(dims);
  int64_t elements = 1;
  for (auto [stride, size] : dims) {
    if (stride != elements)
      return false;
    elements *= size;
  }
  return place.offset == 0 && place.type().numBytes() == storages_[place.storage].bytes;
}

std::optional<BucketBuilder::InputView> BucketBuilder::inputViewOf(const Place &place) const {
  const Storage &storage = storages_[place.storage];
  if (storage.kind == BufferKind::Input)
    return InputView{place};
  return coversStorage(place) ? storage.inputView : std::nullopt;
}

/// a - b; nothing if that overflows.
static std::optional<int64_t> difference(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

void BucketBuilder::noteCopy(const Place &source, const Place &copy,
                             std::optional<int64_t> exempt) {
  std::optional<InputView> &view = storages_[copy.storage].inputView;
  view.reset();
  if (!coversStorage(copy))
    return;
  // A narrower type, or a bool, has other values.
  if (source.sizes != copy.sizes ||
      (source.dtype != copy.dtype && copy.dtype != DType::I64 && copy.dtype != DType::I32))
    return;
  view = inputViewOf(source);
  if (!view || !exempt)
    return;
  const std::optional<int64_t> element = difference(*exempt, view->added);
  if (!element || (view->exempt && view->exempt != element)) // An input has one such value.
    view.reset();
  else
    view->exempt = element;
}

void BucketBuilder::noteSum(const Place &source, int64_t number, const Place &sum) {
  std::optional<InputView> &view = storages_[sum.storage].inputView;
  view.reset();
  if (!coversStorage(sum) || source.sizes != sum.sizes || source.dtype != sum.dtype)
    return;
  view = inputViewOf(source);
  int64_t added = 0;
  // The number in place of an exempt element would be an index too.
  if (!view || view->exempt || __builtin_add_overflow(view->added, number, &added))
    view.reset();
  else
    view->added = added;
}

void BucketBuilder::boundInput(const Place &indices, int64_t bound, bool wraps) {
  const std::optional<InputView> from = inputViewOf(indices);
  if (!from || bound < 1) // Nothing indexes an empty dimension.
    return;
  const Place *const view = &from->place;
  IoTensor &input = inputs_[storages_[view->storage].index];
  if (isFloating(input.dtype) || input.dtype == DType::Bool)
    return;
  const auto least = difference(wraps ? -bound : 0, from->added),
             end = difference(bound, from->added);
  if (!least || !end)
    return;
  IndexBound added{.end = *end,
                   .offset = static_cast<int64_t>(view->offset / dtypeSize(view->dtype)),
                   .least = *least,
                   .exempt = from->exempt};
  if (coversStorage(*view)) {
    const ir::Dims dense = ir::contiguousStrides(input.sizes);
    added.sizes = input.sizes;
    added.strides.assign(dense.begin(), dense.end());
  } else {
    for (auto [size, stride] : llvm::zip_equal(view->sizes, view->strides))
      if (size != 1 && stride != 0) {
        added.sizes.push_back(size);
        added.strides.push_back(stride);
      }
  }
  // Overlapping windows may have more elements than the input.
  if (*tensorBytes(input.dtype, added.sizes) > *tensorBytes(input.dtype, input.sizes))
    return;
  for (IndexBound &known : input.indexBounds)
    if (known.offset == added.offset && known.sizes == added.sizes &&
        known.strides == added.strides && known.exempt == added.exempt) {
      known.least = std::max(known.least, added.least);
      known.end = std::max(std::min(known.end, added.end), known.least + 1);
      return;
    }
  if (input.indexBounds.size() < kMaxIndexBounds)
    input.indexBounds.push_back(std::move(added));
}

void BucketBuilder::fill(const Place &destination, const ir::Arg &number) {
  const std::optional<Operand> value = operand(number, *this);
  if (!value || !launchWhere(std::nullopt, *value, 0.0, destination, *this))
    callInto("aten::fill_", "Scalar", {arg(number)}, destination);
}

void BucketBuilder::undo(const Mark &mark) {
  records_.resize(mark.records);
  tensors_.resize(mark.tensors);
  std::erase_if(tensorIndex_, [&](const auto &entry) { return entry.second >= mark.tensors; });
}

void BucketBuilder::addOutput(std::string name, const Place &place) {
  auto index = static_cast<uint32_t>(outputs_.size());
  outputs_.push_back(ioTensor(std::move(name), place.dtype, place.sizes));
  Storage &storage = storages_[place.storage];
  ir::TensorType type = place.type();
  // A dense place of as many bytes as its storage begins where the storage does.
  if (storage.kind == BufferKind::Arena && type.isContiguous() &&
      type.numBytes() == storage.bytes) {
    storage.kind = BufferKind::Output;
    storage.index = index;
    return;
  }
  copy(place,
       newStorage(BufferKind::Output, index, ir::TensorType::dense(place.dtype, place.sizes)));
}

std::vector<BufferUse> BucketBuilder::bufferUses() const {
  std::vector<BufferUse> uses;
  for (const LaunchRecord &record : records_) {
    BufferUse &use = uses.emplace_back();
    const auto add = [&](const std::vector<TensorId> &ids, auto &storages) {
      for (TensorId id : ids) {
        if (id == kNoTensor)
          continue;
        const uint32_t storage = tensors_[static_cast<uint32_t>(id)].storage;
        const BufferKind kind = storages_[storage].kind;
        if (kind == BufferKind::Arena || kind == BufferKind::Output || kind == BufferKind::State)
          storages.push_back(representative(storage));
      }
    };
    add(recordReads(record), use.reads);
    add(recordWrites(record), use.writes);
  }
  return uses;
}

void BucketBuilder::setBranches(llvm::ArrayRef<BufferUse> uses) {
  // Alone, an update beside the backward pass takes from it what it saves (docs/log, 2026-11-29).
  const bool hasRanks =
      llvm::any_of(records_, [](const LaunchRecord &record) { return isCollective(record); });
  const auto detached = [&](const LaunchRecord &record) -> uint32_t {
    return isCollective(record)                    ? kCollectiveBranch
           : hasRanks && isOptimizerLaunch(record) ? kUpdateBranch
                                                   : 0;
  };
  // A collective depends on all of its operands, and what reads one result on one operand alone.
  std::map<uint32_t, uint32_t> operandOf; // The storage of the operand, by that of the result.
  for (const LaunchRecord &record : records_)
    if (isCollective(record)) {
      const auto &call = std::get<LibraryCall>(record.op);
      for (const auto &[read, write] : llvm::zip_equal(call.reads, call.writes))
        operandOf.try_emplace(tensors_[static_cast<uint32_t>(write)].storage,
                              tensors_[static_cast<uint32_t>(read)].storage);
    }
  std::vector<BufferUse> others; // Of the records that are not detached.
  for (const auto &[record, use] : llvm::zip_equal(records_, uses)) {
    if (detached(record))
      continue;
    others.push_back(use);
    for (auto *buffers : {&others.back().reads, &others.back().writes})
      for (uint32_t &buffer : *buffers)
        for (auto it = operandOf.find(buffer); it != operandOf.end() && it->second != buffer;
             it = operandOf.find(buffer))
          buffer = it->second;
  }
  const std::vector<uint32_t> branches = findBranches(others);
  size_t next = 0;
  for (LaunchRecord &record : records_)
    if (const uint32_t branch = detached(record))
      record.branch = branch;
    else
      record.branch = branches[next++];
}

FinishedBucket BucketBuilder::finish(bool branches) {
  const std::vector<BufferUse> uses = bufferUses();
  // On the host, and around a host call, records run one by one.
  if (branches && options_.target == DeviceKind::Cuda && llvm::none_of(records_, isHostCall))
    setBranches(uses);
  const BufferLives lives(uses, records_, storages_.size());
  std::vector<size_t> arena, arenaIndex(storages_.size()); // The arena's storages.
  std::vector<uint64_t> bytes;
  for (size_t s = 0; s < storages_.size(); ++s) {
    if (storages_[s].kind != BufferKind::Arena || !lives.isUsed(s))
      continue;
    arenaIndex[s] = arena.size();
    arena.push_back(s);
    bytes.push_back(storages_[s].bytes);
  }
  const MemoryPlan plan = planMemory(bytes, [&](size_t a, size_t b) {
    return options_.reusesMemory && lives.mayShare(arena[a], arena[b]);
  });

  Bucket bucket;
  bucket.arenaBytes = plan.arenaBytes;
  for (const Place &place : tensors_) {
    const Storage &storage = storages_[place.storage];
    Slot slot{storage.kind, storage.index, place.offset};
    if (storage.kind == BufferKind::Arena)
      slot.offset += plan.offsets[arenaIndex[place.storage]];
    bucket.tensors.push_back({slot,
                              place.dtype,
                              {place.sizes.begin(), place.sizes.end()},
                              {place.strides.begin(), place.strides.end()}});
  }
  bucket.inputs = std::move(inputs_);
  bucket.outputs = std::move(outputs_);
  bucket.records = std::move(records_);

  FinishedBucket finished{std::move(bucket), plan.arenaBytes};
  if (options_.reusesMemory && largestBranch(finished.bucket) > 0)
    finished.serialArenaBytes = planMemory(bytes, [&](size_t a, size_t b) {
                                  return lives.mayShareInOrder(arena[a], arena[b]);
                                }).arenaBytes;
  return finished;
}

} // namespace cgc::backend

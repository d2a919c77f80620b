// writePlan: packs the metadata with FlatBuffers and writes header, metadata and weights.
#include "runtime/base/check.h"
#include "runtime/base/no_throw.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/plan_file.h"

#include <plan_generated.h>

#include <array>

namespace cgc {
namespace {

namespace fbs = flatbuffers;

/// Packs a vector of an optional field. An empty vector is left out.
template <class T>
fbs::Offset<fbs::Vector<T>> packOptional(fbs::FlatBufferBuilder &b, const std::vector<T> &v) {
  return v.empty() ? 0 : b.CreateVector(v);
}

fbs::Offset<fbs::String> packOptional(fbs::FlatBufferBuilder &b, const std::string &s) {
  return s.empty() ? 0 : b.CreateSharedString(s);
}

fbs::Offset<fbs::Vector<uint32_t>> packIds(fbs::FlatBufferBuilder &b,
                                           const std::vector<TensorId> &ids) {
  std::vector<uint32_t> numbers;
  for (TensorId id : ids)
    numbers.push_back(uint32_t(id));
  return packOptional(b, numbers);
}

fbs::Offset<fb::Arg> pack(fbs::FlatBufferBuilder &b, const AtenArg &arg) {
  /// The fields of an argument, filled in for its alternative.
  struct Fields {
    fbs::FlatBufferBuilder &b;
    int64_t number = 0;
    fbs::Offset<fbs::String> text{};
    fbs::Offset<fbs::Vector<int64_t>> numbers{};
    fbs::Offset<fbs::Vector<double>> reals{};
    fbs::Offset<fbs::Vector<uint32_t>> tensors{};

    void operator()(NoneArg) {}
    void operator()(DeviceArg) {}
    void operator()(TensorId id) { number = uint32_t(id); }
    void operator()(const std::vector<TensorId> &ids) { tensors = packIds(b, ids); }
    void operator()(int64_t value) { number = value; }
    void operator()(double value) { number = std::bit_cast<int64_t>(value); }
    void operator()(bool value) { number = value; }
    void operator()(const std::string &value) { text = b.CreateSharedString(value); }
    void operator()(DType value) { number = int64_t(value); }
    void operator()(const std::vector<int64_t> &values) { numbers = packOptional(b, values); }
    void operator()(const std::vector<double> &values) { reals = packOptional(b, values); }
  };
  Fields f{.b = b};
  std::visit(f, arg);
  return fb::CreateArg(b, uint8_t(arg.index()), f.number, f.text, f.numbers, f.reals, f.tensors);
}

fbs::Offset<fb::Record> pack(fbs::FlatBufferBuilder &b, const LaunchRecord &record) {
  /// The fields of a record, filled in for its alternative.
  struct Fields {
    fbs::FlatBufferBuilder &b;
    fbs::Offset<fbs::String> name{}, function{};
    fbs::Offset<fbs::Vector<uint32_t>> reads{}, writes{}, launch{};
    fbs::Offset<fbs::Vector<int64_t>> ints{};
    fbs::Offset<fbs::Vector<double>> floats{};
    fbs::Offset<fbs::Vector<uint8_t>> algorithm{};
    fbs::Offset<fbs::Vector<fbs::Offset<fb::Arg>>> args{};
    uint64_t abiHash = 0;
    uint8_t flag = 0;

    void operator()(const KernelLaunch &r) {
      name = b.CreateSharedString(r.kernel);
      reads = packIds(b, r.reads);
      writes = packIds(b, r.writes);
      ints = packOptional(b, r.ints);
      floats = packOptional(b, r.floats);
      const std::array<uint32_t, 7> shape = {r.grid[0],  r.grid[1],  r.grid[2],    r.block[0],
                                             r.block[1], r.block[2], r.sharedBytes};
      launch = b.CreateVector(shape.data(), shape.size());
      abiHash = r.abiHash;
    }
    void operator()(const LibraryCall &r) {
      name = b.CreateSharedString(r.library);
      function = b.CreateSharedString(r.function);
      reads = packIds(b, r.reads);
      writes = packIds(b, r.writes);
      ints = packOptional(b, r.ints);
      floats = packOptional(b, r.floats);
      if (!r.algorithm.empty())
        algorithm = b.CreateVector(reinterpret_cast<const uint8_t *>(r.algorithm.data()),
                                   r.algorithm.size());
    }
    void operator()(const AtenCall &r) {
      name = b.CreateSharedString(r.op);
      function = b.CreateSharedString(r.overload);
      std::vector<fbs::Offset<fb::Arg>> packed;
      for (const AtenArg &arg : r.args)
        packed.push_back(pack(b, arg));
      args = packOptional(b, packed);
      writes = packIds(b, r.outputs);
      flag = r.writesOut;
    }
    void operator()(const Memcpy &r) {
      reads = packIds(b, {r.source});
      writes = packIds(b, {r.destination});
    }
    void operator()(const Memset &r) {
      writes = packIds(b, {r.destination});
      flag = r.value;
    }
    void operator()(const HostCall &r) {
      name = b.CreateSharedString(r.module);
      function = b.CreateSharedString(r.method);
      reads = packIds(b, r.reads);
      writes = packIds(b, r.writes);
    }
  };
  Fields f{.b = b};
  std::visit(f, record.op);
  return fb::CreateRecord(b, uint8_t(record.op.index()), uint32_t(record.location), f.name,
                          f.function, f.reads, f.writes, f.ints, f.floats, f.launch, f.abiHash,
                          f.algorithm, f.args, f.flag, uint8_t(record.branch));
}

fbs::Offset<fb::Tensor> pack(fbs::FlatBufferBuilder &b, const TensorRef &t) {
  const auto sizes = b.CreateVector(t.sizes), strides = b.CreateVector(t.strides);
  return fb::CreateTensor(b, uint8_t(t.slot.buffer), t.slot.index, t.slot.offset, uint8_t(t.dtype),
                          sizes, strides);
}

fbs::Offset<fb::IndexBound> pack(fbs::FlatBufferBuilder &b, const IndexBound &bound) {
  const auto sizes = b.CreateVector(bound.sizes), strides = b.CreateVector(bound.strides);
  return fb::CreateIndexBound(b, bound.end, bound.offset, sizes, strides, bound.exempt,
                              bound.least);
}

fbs::Offset<fb::Io> pack(fbs::FlatBufferBuilder &b, const IoTensor &io) {
  const auto name = b.CreateSharedString(io.name);
  const auto sizes = b.CreateVector(io.sizes);
  std::vector<fbs::Offset<fb::IndexBound>> packed;
  for (const IndexBound &bound : io.indexBounds)
    packed.push_back(pack(b, bound));
  const auto bounds = packOptional(b, packed);
  return fb::CreateIo(b, name, uint8_t(io.dtype), sizes, bounds, io.batchDim);
}

fbs::Offset<fb::Weight> pack(fbs::FlatBufferBuilder &b, const Weight &w) {
  const auto name = b.CreateSharedString(w.name);
  const auto sizes = b.CreateVector(w.sizes);
  return fb::CreateWeight(b, name, uint8_t(w.dtype), sizes, w.fileOffset, w.hash, w.isComputed);
}

fbs::Offset<fb::Location> pack(fbs::FlatBufferBuilder &b, const SourceLocation &l) {
  const auto file = b.CreateSharedString(l.file);
  return fb::CreateLocation(b, file, l.line, b.CreateSharedString(l.module));
}

fbs::Offset<fb::State> pack(fbs::FlatBufferBuilder &b, const State &s) {
  const auto name = b.CreateSharedString(s.name);
  const auto sizes = b.CreateVector(s.sizes);
  return fb::CreateState(b, name, uint8_t(s.role), uint8_t(s.dtype), sizes, s.initial, s.shard);
}

fbs::Offset<fb::OpLibrary> pack(fbs::FlatBufferBuilder &b, const OpLibraryId &l) {
  return fb::CreateOpLibrary(b, b.CreateSharedString(l.name), l.hash);
}

fbs::Offset<fb::ParameterGroup> pack(fbs::FlatBufferBuilder &b, const ParameterGroup &group) {
  const auto bits = [](double number) { return std::bit_cast<uint64_t>(number); };
  const auto globs = b.CreateVectorOfStrings(group.globs);
  return fb::CreateParameterGroup(
      b, globs, group.weightDecay ? std::optional(bits(*group.weightDecay)) : std::nullopt,
      bits(group.lrScale));
}

fbs::Offset<fb::ParameterClamp> pack(fbs::FlatBufferBuilder &b, const ParameterClamp &clamp) {
  return fb::CreateParameterClamp(b, b.CreateSharedString(clamp.path),
                                  std::bit_cast<uint64_t>(clamp.min),
                                  std::bit_cast<uint64_t>(clamp.max));
}

// Declared before packAll, which calls them.
fbs::Offset<fb::Bucket> pack(fbs::FlatBufferBuilder &b, const Bucket &bucket);
fbs::Offset<fb::Entry> pack(fbs::FlatBufferBuilder &b, const Entry &entry);

/// Packs each element, in order.
template <class T> auto packAll(fbs::FlatBufferBuilder &b, const std::vector<T> &items) {
  std::vector<decltype(pack(b, items[0]))> offsets;
  offsets.reserve(items.size());
  for (const T &item : items)
    offsets.push_back(pack(b, item));
  return b.CreateVector(offsets);
}

fbs::Offset<fb::Bucket> pack(fbs::FlatBufferBuilder &b, const Bucket &bucket) {
  const auto inputs = packAll(b, bucket.inputs), outputs = packAll(b, bucket.outputs);
  const auto tensors = packAll(b, bucket.tensors);
  return fb::CreateBucket(b, inputs, outputs, tensors, packAll(b, bucket.records),
                          bucket.arenaBytes, std::bit_cast<uint64_t>(bucket.expectedMicros),
                          bucket.isMeasured);
}

fbs::Offset<fb::Entry> pack(fbs::FlatBufferBuilder &b, const Entry &entry) {
  const auto name = b.CreateSharedString(entry.name);
  const auto buckets = packAll(b, entry.buckets);
  const BatchRows &rows = entry.rows;
  return fb::CreateEntry(b, name, buckets, rows.independent, packOptional(b, rows.op),
                         packOptional(b, rows.reason), uint32_t(rows.location));
}

fbs::Offset<fb::Training> pack(fbs::FlatBufferBuilder &b, const TrainingStep &step) {
  const OptimizerOptions &optimizer = step.optimizer;
  std::vector<double> numbers;
  for (const OptimizerNumber &number : kOptimizerNumbers)
    numbers.push_back(optimizer.*number.value);
  const auto method = b.CreateSharedString(step.method);
  const auto packed = b.CreateVector(numbers);
  const auto groups = packAll(b, optimizer.groups);
  const auto clamps = packAll(b, optimizer.clamps);
  return fb::CreateTraining(
      b, method, step.loss, step.autocast ? uint8_t(*step.autocast) : kNoPrecision,
      uint8_t(optimizer.rule), uint8_t(optimizer.schedule), packed, optimizer.nesterov, groups,
      clamps, optimizer.growthInterval, optimizer.keepsGradients, optimizer.copies);
}

void packPlan(fbs::FlatBufferBuilder &b, const PlanData &plan) {
  const auto producer = b.CreateSharedString(plan.producer);
  const auto entries = packAll(b, plan.entries);
  const auto weights = packAll(b, plan.weights);
  const auto locations = packAll(b, plan.locations);
  const auto gpu = plan.gpu ? b.CreateString(plan.gpu->name) : 0;
  const auto opLibraries = packAll(b, plan.opLibraries);
  const auto states = packAll(b, plan.states);
  const auto training = plan.training ? pack(b, *plan.training) : 0;
  b.Finish(fb::CreatePlan(b, uint8_t(plan.target), producer, entries, weights, locations,
                          plan.precision ? uint8_t(*plan.precision) : kNoPrecision, gpu,
                          plan.gpu ? plan.gpu->multiprocessors : 0, plan.gpu && plan.gpu->tuned,
                          opLibraries, states, plan.tf32, training));
}

Status padTo(AtomicFile &file, uint64_t offset) {
  static constexpr std::array<char, kBufferAlignment> kZeros{};
  CGC_CHECK(offset >= file.position() && offset - file.position() <= kZeros.size());
  return file.write(kZeros.data(), offset - file.position());
}

} // namespace

Status writePlan(const PlanData &plan, std::span<const std::span<const std::byte>> weights,
                 const std::string &path) {
  return noThrow([&]() -> Status {
    CGC_TRY(validate(plan));
    CGC_CHECK(weights.size() == plan.weights.size() && "one span of bytes for each weight");
    // Offsets in the metadata are relative to the weights region, because the region's start
    // depends on the size of the metadata.
    PlanData placed = plan;
    uint64_t end = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      Weight &weight = placed.weights[i];
      CGC_CHECK(tensorBytes(weight.dtype, weight.sizes) == weights[i].size());
      weight.fileOffset = *alignUp(end, kBufferAlignment);
      weight.hash = hash64(weights[i]);
      end = weight.fileOffset + weights[i].size();
    }
    fbs::FlatBufferBuilder builder;
    packPlan(builder, placed);
    if (builder.GetSize() > kMaxMetadataBytes)
      return {Code::Unsupported, "the plan's metadata takes " + std::to_string(builder.GetSize()) +
                                     " bytes, more than 64 MiB; compile fewer buckets"};

    PlanHeader header{};
    std::memcpy(header.magic, kPlanMagic, sizeof(kPlanMagic));
    header.formatVersion = kPlanFormatVersion;
    header.headerBytes = sizeof(PlanHeader);
    header.features = planFeatures(plan);
    header.kernelAbi = kKernelAbi;
    header.metadataOffset = sizeof(PlanHeader);
    header.metadataBytes = builder.GetSize();
    header.metadataHash =
        hash64(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
    header.weightsOffset = *alignUp(header.metadataOffset + header.metadataBytes, kBufferAlignment);
    header.weightsBytes = end;
    header.fileBytes = header.weightsOffset + end;
    header.headerHash =
        hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(PlanHeader, headerHash)));

    CGC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
    CGC_TRY(file.write(&header, sizeof(header)));
    CGC_TRY(file.write(builder.GetBufferPointer(), builder.GetSize()));
    CGC_TRY(padTo(file, header.weightsOffset));
    for (size_t i = 0; i < weights.size(); ++i) {
      CGC_TRY(padTo(file, header.weightsOffset + placed.weights[i].fileOffset));
      CGC_TRY(file.write(weights[i].data(), weights[i].size()));
    }
    return file.commit();
  });
}

} // namespace cgc

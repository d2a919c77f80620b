// Plan::load: checks the header, metadata and weights of a file and unpacks the metadata into plain
// structs.
#include "runtime/base/check.h"
#include "runtime/base/no_throw.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/plan_file.h"

#include <plan_generated.h>

#include <algorithm>
#include <limits>

namespace cgc {
namespace {

namespace fbs = flatbuffers;

Status invalid(const std::string &what) {
  return {Code::InvalidFile, what};
}

Status damaged(const std::string &what) {
  return invalid("the file is damaged (" + what + "); copy or compile it again");
}

bool allZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

/// Copies FlatBuffers values into the plan's structs. In FlatBuffers many tables can share one long
/// vector, so the unpacked bytes are limited: a small file must not unpack into more memory than a
/// real plan of that size needs. Plans share only names, so they stay far below 64 times the size
/// of their metadata.
class Unpacker {
public:
  explicit Unpacker(uint64_t metadataBytes)
      : budget_(std::min<uint64_t>(1u << 30, (1u << 20) + 64 * metadataBytes)) {}

  bool overBudget() const { return budget_ == 0; }
  /// Whether a required field was absent or a number did not fit its type.
  bool malformed() const { return malformed_; }

  std::string text(const fbs::String *s) { return s && take(s->size()) ? s->str() : std::string(); }

  template <class T, class U = T> std::vector<T> vector(const fbs::Vector<U> *v) {
    std::vector<T> out;
    if (v && take(uint64_t(v->size()) * sizeof(T))) {
      out.reserve(v->size());
      for (uint32_t i = 0; i < v->size(); ++i) {
        // FlatBuffers' verifier checks the alignment of a vector's length, not of 8-byte elements.
        U item;
        std::memcpy(&item, v->Data() + i * sizeof(U), sizeof(U));
        out.push_back(static_cast<T>(item));
      }
    }
    return out;
  }

  /// Unpacks each table of `v` with the matching overload of `unpack`.
  template <class T> auto tables(const fbs::Vector<fbs::Offset<T>> *v) {
    std::vector<decltype(unpack(*v->Get(0)))> out;
    using Item = typename decltype(out)::value_type;
    if (v && take(uint64_t(v->size()) * sizeof(Item))) {
      out.reserve(v->size());
      for (const T *item : *v)
        out.push_back(unpack(*item));
    }
    return out;
  }

  IoTensor unpack(const fb::Io &io) {
    return {text(io.name()), DType(io.dtype()), vector<int64_t>(io.sizes()),
            tables(io.index_bounds()), io.batch_dim()};
  }
  IndexBound unpack(const fb::IndexBound &bound) {
    return {bound.end(),
            bound.offset(),
            vector<int64_t>(bound.sizes()),
            vector<int64_t>(bound.strides()),
            bound.least(),
            bound.exempt()};
  }
  TensorRef unpack(const fb::Tensor &t) {
    return {{BufferKind(t.buffer()), t.index(), t.offset()},
            DType(t.dtype()),
            vector<int64_t>(t.sizes()),
            vector<int64_t>(t.strides())};
  }
  Weight unpack(const fb::Weight &w) {
    return {text(w.name()),  DType(w.dtype()), vector<int64_t>(w.sizes()),
            w.file_offset(), w.hash(),         boolean(w.is_computed())};
  }
  SourceLocation unpack(const fb::Location &l) {
    return {text(l.file()), l.line(), text(l.module_path())};
  }
  State unpack(const fb::State &s) {
    return {text(s.name()),   StateRole(s.role()),
            DType(s.dtype()), vector<int64_t>(s.sizes()),
            s.initial(),      s.shard()};
  }
  OpLibraryId unpack(const fb::OpLibrary &l) { return {text(l.name()), l.hash()}; }
  Bucket unpack(const fb::Bucket &b) {
    return {tables(b.inputs()),      tables(b.outputs()),
            tables(b.tensors()),     tables(b.records()),
            b.arena_bytes(),         std::bit_cast<double>(b.expected_micros()),
            boolean(b.is_measured())};
  }
  Entry unpack(const fb::Entry &e) {
    return {text(e.name()),
            tables(e.buckets()),
            {boolean(e.rows_independent()), text(e.rows_op()), text(e.rows_reason()),
             LocationId(e.rows_location())}};
  }

  ParameterGroup unpack(const fb::ParameterGroup &g) {
    ParameterGroup group;
    if (g.globs())
      for (const fbs::String *glob : *g.globs())
        group.globs.push_back(text(glob));
    if (g.weight_decay())
      group.weightDecay = std::bit_cast<double>(*g.weight_decay());
    group.lrScale = std::bit_cast<double>(g.lr_scale());
    return group;
  }
  ParameterClamp unpack(const fb::ParameterClamp &c) {
    return {text(c.path()), std::bit_cast<double>(c.min()), std::bit_cast<double>(c.max())};
  }
  TrainingStep unpack(const fb::Training &t) {
    TrainingStep step{text(t.method()), t.loss()};
    if (t.autocast() != kNoPrecision)
      step.autocast = DType(t.autocast());
    OptimizerOptions &optimizer = step.optimizer;
    optimizer.rule = OptimizerRule(t.rule());
    optimizer.schedule = LearningRateSchedule(t.schedule());
    const auto numbers = vector<double>(t.numbers());
    malformed_ |= numbers.size() != std::size(kOptimizerNumbers);
    for (size_t i = 0; i < std::size(kOptimizerNumbers) && !malformed_; ++i)
      optimizer.*kOptimizerNumbers[i].value = numbers[i];
    optimizer.nesterov = boolean(t.nesterov());
    optimizer.groups = tables(t.groups());
    optimizer.clamps = tables(t.clamps());
    optimizer.growthInterval = t.growth_interval();
    optimizer.keepsGradients = boolean(t.keeps_gradients());
    optimizer.copies = boolean(t.copies());
    return step;
  }

  AtenArg unpack(const fb::Arg &a) {
    static_assert(std::variant_size_v<AtenArg> == 11);
    switch (a.kind()) {
    case 0:
      return NoneArg{};
    case 1:
      return TensorId(narrow<uint32_t>(a.number()));
    case 2:
      return vector<TensorId>(a.tensors());
    case 3:
      return a.number();
    case 4:
      return std::bit_cast<double>(a.number());
    case 5:
      return narrow<uint8_t>(a.number(), 1) != 0;
    case 6:
      return text(a.text());
    case 7:
      return DType(narrow<uint8_t>(a.number()));
    case 8:
      return DeviceArg{};
    case 9:
      return vector<int64_t>(a.numbers());
    case 10:
      return vector<double>(a.reals());
    default:
      malformed_ = true;
      return NoneArg{};
    }
  }

  LaunchRecord unpack(const fb::Record &r) {
    return {unpackOp(r), LocationId(r.location()), r.branch()};
  }

  PlanData unpack(const fb::Plan &p) {
    return {DeviceKind(p.target()),
            text(p.producer()),
            tables(p.entries()),
            tables(p.weights()),
            tables(p.locations()),
            p.precision() == kNoPrecision ? std::nullopt : std::optional(DType(p.precision())),
            p.gpu() ? std::optional(TargetGpu{text(p.gpu()), p.multiprocessors(), p.tuned()})
                    : std::nullopt,
            tables(p.op_libraries()),
            tables(p.states()),
            boolean(p.tf32()),
            p.training() ? std::optional(unpack(*p.training())) : std::nullopt};
  }

private:
  decltype(LaunchRecord::op) unpackOp(const fb::Record &r) {
    static_assert(std::variant_size_v<decltype(LaunchRecord::op)> == 6);
    switch (r.kind()) {
    case 0: {
      KernelLaunch launch{.kernel = text(r.name()),
                          .abiHash = r.abi_hash(),
                          .reads = vector<TensorId>(r.reads()),
                          .writes = vector<TensorId>(r.writes()),
                          .ints = vector<int64_t>(r.ints()),
                          .floats = vector<double>(r.floats())};
      if (!r.launch() || r.launch()->size() != 7) {
        malformed_ = true;
        return launch;
      }
      for (int i = 0; i < 3; ++i) {
        launch.grid[i] = r.launch()->Get(i);
        launch.block[i] = r.launch()->Get(3 + i);
      }
      launch.sharedBytes = r.launch()->Get(6);
      return launch;
    }
    case 1:
      return LibraryCall{.library = text(r.name()),
                         .function = text(r.function()),
                         .reads = vector<TensorId>(r.reads()),
                         .writes = vector<TensorId>(r.writes()),
                         .ints = vector<int64_t>(r.ints()),
                         .floats = vector<double>(r.floats()),
                         .algorithm = vector<std::byte>(r.algorithm())};
    case 2:
      return AtenCall{.op = text(r.name()),
                      .overload = text(r.function()),
                      .args = tables(r.args()),
                      .outputs = vector<TensorId>(r.writes()),
                      .writesOut = narrow<uint8_t>(r.flag(), 1) != 0};
    case 3:
      return Memcpy{single(r.reads()), single(r.writes())};
    case 4:
      return Memset{single(r.writes()), r.flag()};
    case 5:
      return HostCall{.module = text(r.name()),
                      .method = text(r.function()),
                      .reads = vector<TensorId>(r.reads()),
                      .writes = vector<TensorId>(r.writes())};
    default:
      malformed_ = true;
      return Memset{};
    }
  }

  TensorId single(const fbs::Vector<uint32_t> *ids) {
    if (ids && ids->size() == 1)
      return TensorId(ids->Get(0));
    malformed_ = true;
    return kNoTensor;
  }

  template <class T> T narrow(int64_t number, T most = std::numeric_limits<T>::max()) {
    malformed_ |= number < 0 || number > int64_t(most);
    return static_cast<T>(number);
  }

  /// A bool, which is 0 or 1 in the file.
  bool boolean(uint8_t value) { return narrow<uint8_t>(value, 1) != 0; }

  bool take(uint64_t bytes) {
    budget_ = bytes < budget_ ? budget_ - bytes : 0;
    return budget_ > 0;
  }

  uint64_t budget_;
  bool malformed_ = false;
};

/// Checks magic, version, hash and ranges. Later code may trust the numbers in the header.
Result<PlanHeader> readHeader(std::span<const std::byte> bytes, const std::string &path) {
  const size_t magicBytes = std::min(bytes.size(), sizeof(kPlanMagic));
  if (std::memcmp(bytes.data(), kPlanMagic, magicBytes) != 0) {
    const std::string kind = describeForeignFile(path);
    return invalid((kind.empty() ? "it is not a cgc plan" : "it is " + kind + ", not a cgc plan") +
                   "; write a plan with `cgc compile MODEL.pt -o OUT.cgplan`");
  }
  PlanHeader header;
  if (bytes.size() < sizeof(header))
    return damaged("it ends inside its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.formatVersion != kPlanFormatVersion)
    return invalid("it has plan format version " + std::to_string(header.formatVersion) +
                   ", and this cgc reads version " + std::to_string(kPlanFormatVersion) +
                   "; compile the model again with this cgc");
  if (header.headerHash != hash64(bytes.first(offsetof(PlanHeader, headerHash))))
    return damaged("the header's checksum does not match");
  if (const uint32_t unknown = header.features & ~kKnownFeatures)
    return invalid("it needs features that this cgc does not have (bits " +
                   std::to_string(unknown) + "); use the cgc that compiled it, or compile again");
  if (header.kernelAbi != kKernelAbi)
    return invalid("it needs kernel convention " + std::to_string(header.kernelAbi) +
                   ", and this cgc has " + std::to_string(kKernelAbi) +
                   "; compile the model again with this cgc");
  if (header.fileBytes != bytes.size())
    return damaged("it has " + std::to_string(bytes.size()) + " bytes and its header says " +
                   std::to_string(header.fileBytes));
  if (header.headerBytes != sizeof(header) || header.metadataOffset != sizeof(header) ||
      header.metadataBytes > kMaxMetadataBytes ||
      !rangeInside(header.metadataOffset, header.metadataBytes, header.fileBytes) ||
      header.weightsOffset !=
          alignUp(header.metadataOffset + header.metadataBytes, kBufferAlignment) ||
      !rangeInside(header.weightsOffset, header.weightsBytes, header.fileBytes) ||
      header.weightsOffset + header.weightsBytes != header.fileBytes)
    return damaged("its parts do not lie where they have to");
  return header;
}

Result<PlanData> readMetadata(const PlanHeader &header, std::span<const std::byte> bytes) {
  const auto metadata = bytes.subspan(header.metadataOffset, header.metadataBytes);
  if (hash64(metadata) != header.metadataHash)
    return damaged("the metadata's checksum does not match");
  const auto *data = reinterpret_cast<const uint8_t *>(metadata.data());
  fbs::Verifier verifier(data, metadata.size(), /*max_depth=*/16, /*max_tables=*/1u << 22);
  if (!verifier.VerifyBuffer<fb::Plan>(nullptr))
    return damaged("the metadata is not well-formed");
  Unpacker unpacker(metadata.size());
  PlanData plan = unpacker.unpack(*fbs::GetRoot<fb::Plan>(data));
  if (unpacker.overBudget())
    return damaged("the metadata unpacks into too much memory");
  if (unpacker.malformed())
    return damaged("a record or an argument is not well-formed");
  CGC_TRY(validate(plan));
  if (planFeatures(plan) != header.features)
    return damaged("the records are not of the kinds that the header names");
  return plan;
}

/// Checks that the weights follow one another, each at the next multiple of kBufferAlignment, and
/// makes their offsets relative to the file instead of the weights region.
Status placeWeights(const PlanHeader &header, PlanData &plan) {
  uint64_t end = 0;
  for (Weight &weight : plan.weights) {
    const uint64_t size = *tensorBytes(weight.dtype, weight.sizes);
    if (weight.fileOffset != alignUp(end, kBufferAlignment) ||
        !rangeInside(weight.fileOffset, size, header.weightsBytes))
      return damaged("weight '" + weight.name + "' does not lie where it has to");
    end = weight.fileOffset + size;
    weight.fileOffset += header.weightsOffset;
  }
  return end == header.weightsBytes ? Status::ok()
                                    : damaged("there are bytes after the last weight");
}

/// Checks the hash of every weight and that the padding between weights is zero.
Status checkWeights(const PlanHeader &header, const PlanData &plan,
                    std::span<const std::byte> bytes) {
  uint64_t end = header.weightsOffset;
  for (const Weight &weight : plan.weights) {
    if (!allZero(bytes.subspan(end, weight.fileOffset - end)))
      return damaged("the padding before weight '" + weight.name + "' is not zero");
    const uint64_t size = *tensorBytes(weight.dtype, weight.sizes);
    if (hash64(bytes.subspan(weight.fileOffset, size)) != weight.hash)
      return damaged("the checksum of weight '" + weight.name + "' does not match");
    end = weight.fileOffset + size;
  }
  return Status::ok();
}

} // namespace

Result<Plan> Plan::load(const std::string &path, Verify verify) {
  return noThrow([&]() -> Result<Plan> {
    CGC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    const auto bytes = file.bytes();
    const auto load = [&]() -> Result<PlanData> {
      CGC_ASSIGN_OR_RETURN(const PlanHeader header, readHeader(bytes, path));
      CGC_ASSIGN_OR_RETURN(PlanData plan, readMetadata(header, bytes));
      const uint64_t metadataEnd = header.metadataOffset + header.metadataBytes;
      if (!allZero(bytes.subspan(metadataEnd, header.weightsOffset - metadataEnd)))
        return damaged("the padding after the metadata is not zero");
      CGC_TRY(placeWeights(header, plan));
      if (verify == Verify::Full)
        CGC_TRY(checkWeights(header, plan, bytes));
      return plan;
    };
    Result<PlanData> plan = load();
    if (!plan.isOk())
      return plan.status().withContext("'" + path + "'");
    return Plan(std::move(file), *std::move(plan));
  });
}

Result<Plan> Plan::fromMemory(PlanData plan, std::vector<std::vector<std::byte>> weights) {
  return noThrow([&]() -> Result<Plan> {
    CGC_CHECK(weights.size() == plan.weights.size() && "bytes for each weight");
    CGC_TRY(validate(plan));
    return Plan(std::nullopt, std::move(plan), std::move(weights));
  });
}

std::span<const std::byte> Plan::weightBytes(size_t weight) const {
  if (!file_)
    return memory_[weight];
  const Weight &w = data_.weights[weight];
  return file_->bytes().subspan(w.fileOffset, *tensorBytes(w.dtype, w.sizes));
}

uint64_t Plan::fileBytes() const {
  return file_ ? file_->bytes().size() : 0;
}

} // namespace cgc

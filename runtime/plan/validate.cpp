// validate(): checks the invariants of plan.h for plans from untrusted sources. Checks that depend
// on the runtime's kernels, libraries and ops happen when a context binds the records
// (docs/plan-format.md, "Plans from elsewhere").
#include "runtime/base/checked.h"
#include "runtime/plan/aten_values.h"
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/written_bytes.h"

#include <algorithm>
#include <map>
#include <set>

namespace cgc {
namespace {

constexpr size_t kMaxEntries = 1 << 10, kMaxBuckets = 1 << 10, kMaxIo = 1 << 10;
constexpr size_t kMaxItems = 1 << 20; // Weights and locations; tensors and records of a bucket.
constexpr size_t kMaxOpLibraries = 64;
constexpr size_t kMaxRank = 16;
constexpr size_t kMaxNameBytes = 4096;
// Limit in bytes on the weights, the largest arena, and all inputs and outputs together, and on the
// elements of one tensor. Sums and products of such sizes fit into 64 bits.
constexpr uint64_t kMaxBytes = uint64_t(1) << 48;
// A broadcast tensor has more elements than bytes. A record may read a tensor of this many elements
// for each byte that the record's largest tensor spans. kAlwaysAllowedElements are allowed in any
// case.
constexpr uint64_t kElementsPerByte = 1 << 10, kAlwaysAllowedElements = 1 << 20;
// Limit on the byte runs that WrittenBytes::covers may examine for a plan, beyond one for each
// read.
constexpr uint64_t kMaxSteps = 1 << 20;
// The launch limits of CUDA on every GPU that cgc supports.
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535}, kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxThreads = 1024;
// The most shared memory that a block can have on any supported GPU. Binding asks the actual GPU,
// which may have less.
constexpr uint32_t kMaxSharedBytes = 227 * 1024;

/// Whether `s` is UTF-8 without control characters. Names are printed in terminals and JSON.
bool isPrintableUtf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned char lead = byte(i);
    const int extra = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (extra < 0 || lead > 0xf4 || i + extra >= s.size() || (lead < 0x20) || lead == 0x7f)
      return false;
    for (int k = 1; k <= extra; ++k)
      if ((byte(i + k) & 0xc0) != 0x80)
        return false;
    // Overlong forms, surrogates and code points above U+10FFFF are invalid.
    if (extra >= 2) {
      const unsigned char second = byte(i + 1);
      if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
          (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return false;
    }
    i += extra + 1;
  }
  return true;
}

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
      if (!isPrintableUtf8(location.file) || !isPrintableUtf8(location.module))
        return fail("a source location is not printable text");
    CGC_TRY(checkWeights());
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
    }
    where_.clear();
    if (plan_.gpu && plan_.target != DeviceKind::Cuda)
      return fail("a GPU is named, and the target is cpu");
    return Status::ok();
  }

private:
  Status fail(const std::string &what) const {
    return {Code::InvalidFile, "invalid plan: " + (where_.empty() ? what : where_ + ": " + what)};
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
        if (io.upperBound < 0)
          return fail("a negative bound for '" + io.name + "'");
      }
    }
    for (size_t i = 0; i < bucket.tensors.size(); ++i) {
      where_ = where + ", tensor " + std::to_string(i);
      CGC_TRY(checkTensor(bucket, bucket.tensors[i]));
    }
    Written written;
    for (size_t i = 0; i < bucket.records.size(); ++i) {
      where_ = where + ", record " + std::to_string(i) + " (" + recordName(bucket.records[i]) + ")";
      CGC_TRY(checkRecord(bucket, bucket.records[i]));
      CGC_TRY(checkWork(bucket, bucket.records[i]));
      CGC_TRY(checkAccess(bucket, bucket.records[i], written));
    }
    where_ = where;
    for (uint32_t i = 0; i < bucket.outputs.size(); ++i) {
      const IoTensor &output = bucket.outputs[i];
      if (!written[{BufferKind::Output, i}].coversFirst(*tensorBytes(output.dtype, output.sizes)))
        return fail("no record writes all of output '" + output.name + "'");
    }
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
    // Weights, inputs and outputs are typed: the tensor must have the buffer's element type.
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

  Status checkRecord(const Bucket &bucket, const LaunchRecord &record) const {
    if (record.location != kNoLocation && uint32_t(record.location) >= plan_.locations.size())
      return fail("its source location does not exist");
    CGC_TRY(checkIds(bucket, recordReads(record)));
    CGC_TRY(checkIds(bucket, recordWrites(record)));
    return std::visit([&](const auto &op) { return checkOp(bucket, op); }, record.op);
  }

  Status checkIds(const Bucket &bucket, const std::vector<TensorId> &ids) const {
    for (TensorId id : ids)
      if (uint32_t(id) >= bucket.tensors.size())
        return fail("tensor " + std::to_string(uint32_t(id)) + " does not exist");
    return Status::ok();
  }

  Status checkOp(const Bucket &, const KernelLaunch &launch) const {
    if (plan_.target != DeviceKind::Cuda)
      return fail("kernels need target cuda");
    if (!isIdentifier(launch.kernel))
      return fail("the kernel's name is empty or not an identifier");
    for (int i = 0; i < 3; ++i)
      if (launch.grid[i] == 0 || launch.grid[i] > kMaxGrid[i] || launch.block[i] == 0 ||
          launch.block[i] > kMaxBlock[i])
        return fail("its grid or block is zero or above what CUDA allows");
    if (uint64_t(launch.block[0]) * launch.block[1] * launch.block[2] > kMaxThreads)
      return fail("its block has more than 1024 threads");
    if (launch.sharedBytes > kMaxSharedBytes)
      return fail("it asks for more shared memory than any GPU has");
    if (std::ranges::count(launch.writes, kNoTensor) == std::ssize(launch.writes))
      return fail("it writes nothing");
    return Status::ok();
  }

  /// Checks a call of an op library.
  Status checkOpCall(const Bucket &bucket, const LibraryCall &call) const {
    if (!isPlanName(call.function))
      return fail("the op's name is empty, too long or not printable text");
    if (call.writes.size() != 1 || !call.algorithm.empty())
      return fail("an op of a library writes one tensor and has no algorithm");
    const auto dense = [&](TensorId id) {
      const TensorRef &tensor = bucket.tensors[uint32_t(id)];
      return isDense(tensor.sizes, tensor.strides);
    };
    for (TensorId id : call.reads)
      if (id == kNoTensor || !dense(id))
        return fail("an op of a library reads dense tensors, and none is absent");
    return dense(call.writes[0]) ? Status::ok() : fail("an op of a library writes a dense tensor");
  }

  Status checkOp(const Bucket &bucket, const LibraryCall &call) const {
    if (plan_.opLibraryOf(call))
      return checkOpCall(bucket, call);
    if (plan_.target != DeviceKind::Cuda)
      return fail("library calls need target cuda");
    if (!isIdentifier(call.library) || !isIdentifier(call.function))
      return fail("the library's or function's name is empty or not an identifier");
    if (call.writes.empty())
      return fail("it writes nothing");
    if (isGemm(call))
      if (const Status status = gemmCall(call, bucket.tensors).status(); !status.isOk())
        return fail(status.message());
    return Status::ok();
  }

  Status checkOp(const Bucket &bucket, const AtenCall &call) const {
    if (!call.op.starts_with("aten::") || !isIdentifier(std::string_view(call.op).substr(6)) ||
        (!call.overload.empty() && !isIdentifier(call.overload)))
      return fail("not the name of an ATen op");
    for (const AtenArg &arg : call.args) {
      if (const auto *id = std::get_if<TensorId>(&arg); id && *id == kNoTensor)
        return fail("an absent tensor is not written as None");
      if (const auto *dtype = std::get_if<DType>(&arg);
          dtype && static_cast<int>(*dtype) >= kNumDTypes)
        return fail("unknown element type " + std::to_string(int(*dtype)));
    }
    const Status values = checkAtenValues(call, bucket.tensors);
    return values.isOk() ? values : fail(values.message());
  }

  Status checkOp(const Bucket &bucket, const Memcpy &copy) const {
    const TensorRef &source = bucket.tensors[uint32_t(copy.source)];
    const TensorRef &destination = bucket.tensors[uint32_t(copy.destination)];
    if (source.dtype != destination.dtype || source.sizes != destination.sizes)
      return fail("source and destination differ in element type or sizes");
    if (!isDense(source.sizes, source.strides) || !isDense(destination.sizes, destination.strides))
      return fail("source and destination have to be dense");
    const uint64_t bytes = *tensorExtent(source), from = source.slot.offset,
                   to = destination.slot.offset;
    if (source.slot.buffer == destination.slot.buffer &&
        source.slot.index == destination.slot.index && from < to + bytes && to < from + bytes)
      return fail("source and destination overlap");
    return Status::ok();
  }

  Status checkOp(const Bucket &bucket, const Memset &set) const {
    const TensorRef &tensor = bucket.tensors[uint32_t(set.destination)];
    return isDense(tensor.sizes, tensor.strides) ? Status::ok()
                                                 : fail("the destination has to be dense");
  }

  /// Whether `s` is a name that can be looked up in a table of kernels, libraries or ops.
  static bool isIdentifier(std::string_view s) {
    return !s.empty() && s.size() <= 256 && std::all_of(s.begin(), s.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
  }

  /// Whether elements of the tensor may share memory. They cannot if the stride of each dimension
  /// is at least the span of all dimensions with smaller strides.
  static bool mayOverlap(const TensorRef &tensor) {
    if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end())
      return false;
    std::vector<std::pair<int64_t, int64_t>> dimensions; // (stride, size)
    for (size_t d = 0; d < tensor.sizes.size(); ++d)
      if (tensor.sizes[d] > 1)
        dimensions.emplace_back(tensor.strides[d], tensor.sizes[d]);
    std::ranges::sort(dimensions);
    int64_t span = 1; // In elements; tensorExtent() has checked that it does not overflow.
    for (const auto &[stride, size] : dimensions) {
      if (stride < span)
        return true;
      span += (size - 1) * stride;
    }
    return false;
  }

  /// Bounds the work of a record by the bytes that its tensors span.
  Status checkWork(const Bucket &bucket, const LaunchRecord &record) const {
    const auto tensor = [&](TensorId id) -> const TensorRef & {
      return bucket.tensors[uint32_t(id)];
    };
    const std::vector<TensorId> reads = recordReads(record), writes = recordWrites(record);
    uint64_t span = 0;
    for (const auto *ids : {&reads, &writes})
      for (TensorId id : *ids)
        span = std::max(span, *tensorExtent(tensor(id)));
    const uint64_t most = std::max(kAlwaysAllowedElements, kElementsPerByte * span);
    for (TensorId id : reads)
      if (const TensorRef &t = tensor(id);
          *tensorBytes(t.dtype, t.sizes) / dtypeSize(t.dtype) > most)
        return fail("it reads all elements of tensor " + std::to_string(uint32_t(id)) +
                    ", more than " + std::to_string(most) + ": its largest tensor spans " +
                    std::to_string(span) + " bytes");
    for (TensorId id : writes)
      if (mayOverlap(tensor(id)))
        return fail("elements of tensor " + std::to_string(uint32_t(id)) +
                    ", which it writes, overlap");
    return Status::ok();
  }

  /// The bytes written to each buffer so far.
  using Written = std::map<std::pair<BufferKind, uint32_t>, WrittenBytes>;

  /// Checks that each read was written before and that weights and inputs are not written. Adds the
  /// record's writes to `written`.
  Status checkAccess(const Bucket &bucket, const LaunchRecord &record, Written &written) {
    for (TensorId id : recordReads(record)) {
      const TensorRef &tensor = bucket.tensors[uint32_t(id)];
      ++steps_; // The first run of a read does not count against the limit.
      if (tensor.slot.buffer != BufferKind::Weight && tensor.slot.buffer != BufferKind::Input &&
          !written[{tensor.slot.buffer, tensor.slot.index}].covers(tensor, steps_))
        return fail(
            "it reads tensor " + std::to_string(uint32_t(id)) +
            ", which no earlier record has written" +
            (steps_ > 0 ? "" : ", as far as can be seen: it was written in too many parts"));
    }
    // How much of its workspace cuBLASLt writes is unknown, so the workspace does not count as
    // written.
    const auto *call = std::get_if<LibraryCall>(&record.op);
    const bool hasWorkspace = call && isGemm(*call);
    for (TensorId id : recordWrites(record)) {
      const TensorRef &tensor = bucket.tensors[uint32_t(id)];
      if (tensor.slot.buffer == BufferKind::Weight || tensor.slot.buffer == BufferKind::Input)
        return fail("it writes to a weight or an input");
      if (!hasWorkspace || id == call->writes[0])
        written[{tensor.slot.buffer, tensor.slot.index}].add(tensor);
    }
    return Status::ok();
  }

  const PlanData &plan_;
  std::string where_;
  uint64_t bytes_ = 0;      ///< Total size of the buffers checked so far.
  uint64_t arenaBytes_ = 0; ///< Size of the largest arena so far.
  uint64_t steps_ = kMaxSteps;
};

} // namespace

bool isPlanName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && isPrintableUtf8(name);
}

Status validate(const PlanData &plan) {
  return Validator(plan).run();
}

} // namespace cgc

// Weights: reads each storage once, and copies only views that are not dense.
#include "frontend/exported/weights.h"

#include "runtime/base/checked.h"
#include "runtime/base/printable.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace cgc::exported {
namespace {

/// A view that repeats elements takes more bytes than its storage. Limit on them: so many, and so
/// many for each byte of the storage.
constexpr uint64_t kAlwaysAllowedBytes = 16 << 20, kBytesPerStorageByte = 16;

Status refuse(const std::string &member, const std::string &name, const std::string &how) {
  return Status(Code::InvalidFile, "the member '" + printable(member) + "', which holds '" +
                                       printable(name) + "', " + how);
}

/// Returns the numbers of a list in a file; none if one is negative or no number.
std::optional<std::vector<int64_t>>
numbersOf(const std::vector<std::optional<ir::LinearSize>> &sizes) {
  std::vector<int64_t> numbers;
  for (const auto &size : sizes) {
    if (!size || !size->symbol.empty() || size->offset < 0)
      return std::nullopt;
    numbers.push_back(size->offset);
  }
  return numbers;
}

/// Returns the elements from the first to the last that a view reads; none if they do not fit 64
/// bits.
std::optional<uint64_t> extentOf(const std::vector<int64_t> &sizes,
                                 const std::vector<int64_t> &strides) {
  uint64_t extent = 1;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    if (size == 0)
      return 0;
    const auto step = checkedMul(static_cast<uint64_t>(size - 1), static_cast<uint64_t>(stride));
    const auto sum = step ? checkedAdd(extent, *step) : std::nullopt;
    if (!sum)
      return std::nullopt;
    extent = *sum;
  }
  return extent;
}

std::optional<uint64_t> bytesOf(const std::vector<int64_t> &sizes, size_t elementBytes) {
  std::optional<uint64_t> bytes = elementBytes;
  for (int64_t size : sizes)
    bytes = bytes ? checkedMul(*bytes, static_cast<uint64_t>(size)) : std::nullopt;
  return bytes;
}

/// Copies the elements of a strided view, row by row.
std::shared_ptr<const Bytes> denseCopy(const std::byte *from, const std::vector<int64_t> &sizes,
                                       const std::vector<int64_t> &strides, size_t elementBytes,
                                       size_t bytes) {
  auto copy = std::make_shared<Bytes>(bytes);
  std::vector<int64_t> index(sizes.size());
  for (size_t at = 0; at < bytes; at += elementBytes) {
    int64_t offset = 0;
    for (auto [i, stride] : llvm::zip_equal(index, strides))
      offset += i * stride;
    std::memcpy(copy->data() + at, from + static_cast<size_t>(offset) * elementBytes, elementBytes);
    for (size_t dim = sizes.size(); dim-- > 0;) {
      if (++index[dim] < sizes[dim])
        break;
      index[dim] = 0;
    }
  }
  return copy;
}

} // namespace

Result<Weights> Weights::open(const Archive &archive, const std::string &name) {
  Weights weights(archive);
  if (archive.has("data/weights/" + name + ".pt"))
    return Status(Code::InvalidFile, "the member 'data/weights/" + printable(name) +
                                         ".pt' is a pickle, which cgc does not read, since a "
                                         "pickle can run code; export the model with a torch that "
                                         "stores weights as they are, such as 2.11");
  CGC_TRY(weights.list("data/weights/",
                       {name + "_weights_config.json", name + "_model_param_config.json"}));
  CGC_TRY(weights.list("data/constants/",
                       {name + "_constants_config.json", name + "_model_constants_config.json"}));
  return weights;
}

Status Weights::list(const std::string &folder, const std::vector<std::string> &configs) {
  const auto config =
      llvm::find_if(configs, [&](const std::string &each) { return archive_->has(folder + each); });
  const std::string member = folder + (config == configs.end() ? configs.front() : *config);
  CGC_ASSIGN_OR_RETURN(const auto bytes, archive_->read(member));
  auto payloads = parsePayloads({reinterpret_cast<const char *>(bytes->data()), bytes->size()});
  if (!payloads.isOk())
    return payloads.status().withContext(member);
  for (Payload &payload : *payloads) {
    std::string name = payload.name, file = folder + payload.file;
    entries_.try_emplace(name, Entry{std::move(payload), std::move(file)});
  }
  return Status::ok();
}

Result<Weight> Weights::get(const std::string &name) {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    return Status(Code::InvalidFile, "the archive lists no weight '" + printable(name) +
                                         "', which the program reads; export the model again");
  const auto &[payload, member] = found->second;
  if (payload.isPickled || !payload.meta)
    return refuse(member, name,
                  "is a pickle, which cgc does not read, since a pickle can run code; make it a "
                  "plain tensor before the export");
  const TensorMeta &meta = *payload.meta;
  Weight weight{nullptr, "", payload.isParameter, meta.requiresGrad};
  if (!meta.dtype)
    weight.refusal = "a " + meta.dtypeName + " tensor";
  else if (!meta.isStrided)
    weight.refusal = "a sparse or quantized tensor";
  if (!weight.refusal.empty())
    return weight;
  CGC_ASSIGN_OR_RETURN(weight.data, load(found->second, meta));
  return weight;
}

Result<std::shared_ptr<const Bytes>> Weights::storage(const std::string &member) {
  auto &storage = storages_[member];
  if (!storage) {
    CGC_ASSIGN_OR_RETURN(storage, archive_->read(member));
  }
  return storage;
}

Result<std::shared_ptr<const ir::TensorData>> Weights::load(const Entry &entry,
                                                            const TensorMeta &meta) {
  const auto &[payload, member] = entry;
  const auto sizes = numbersOf(meta.sizes), strides = numbersOf(meta.strides),
             offset = numbersOf({meta.offset});
  if (!sizes || !strides || !offset || sizes->size() != strides->size())
    return refuse(member, payload.name, "has no sizes and strides; export the model again");
  std::shared_ptr<const ir::TensorData> &known =
      tensors_[Key{member, *meta.dtype, *sizes, *strides, offset->front()}];
  if (known)
    return known;
  const size_t elementBytes = dtypeSize(*meta.dtype);
  const auto bytes = bytesOf(*sizes, elementBytes);
  const auto extent = extentOf(*sizes, *strides);
  const auto first = checkedMul(static_cast<uint64_t>(offset->front()), elementBytes);
  const auto taken = extent ? checkedMul(*extent, elementBytes) : std::nullopt;
  if (!bytes || !first || !taken)
    return refuse(member, payload.name, "is larger than any memory; export the model again");
  std::shared_ptr<const Bytes> storage = std::make_shared<const Bytes>();
  if (*taken > 0) { // Torch stores no bytes for an empty tensor.
    CGC_ASSIGN_OR_RETURN(storage, this->storage(member));
    if (!rangeInside(*first, *taken, storage->size()))
      return refuse(member, payload.name,
                    "has " + std::to_string(storage->size()) + " bytes, and the tensor takes " +
                        std::to_string(*taken) + " from byte " + std::to_string(*first) +
                        " on; export or copy the file again");
  }
  const ir::TensorType type = ir::TensorType::dense(*meta.dtype, *sizes);
  ir::TensorType view = type;
  view.strides.assign(strides->begin(), strides->end());
  const std::byte *begin = *taken > 0 ? storage->data() + *first : storage->data();
  if (*taken > 0 && !view.isContiguous()) {
    if (*bytes > kAlwaysAllowedBytes && *bytes / kBytesPerStorageByte > storage->size())
      return refuse(member, payload.name,
                    "has " + std::to_string(storage->size()) +
                        " bytes, of which a view repeats so many that it takes " +
                        std::to_string(*bytes) + "; store the tensor without expand()");
    storage = denseCopy(begin, *sizes, *strides, elementBytes, *bytes);
    begin = storage->data();
  }
  known = std::make_shared<const ir::TensorData>(
      type, llvm::ArrayRef(begin, static_cast<size_t>(*bytes)), storage);
  return known;
}

} // namespace cgc::exported

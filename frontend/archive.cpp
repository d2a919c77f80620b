// Archive: checks checksums over a mapping of the file, and parses the pickles with LibTorch's
// Unpickler.
#include "frontend/archive.h"

#include "runtime/base/file.h"
#include "runtime/base/printable.h"
#include "runtime/base/zip.h"
#include "runtime/script/source_depth.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CRC.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>

namespace cgc::frontend {
namespace {

uint32_t crcOf(const void *data, size_t size) {
  return llvm::crc32(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(data), size));
}

// Limit on the uncompressed bytes of all records: so many, and so many for each byte of the file.
// Exporters store tensors uncompressed.
constexpr uint64_t kAlwaysAllowedBytes = 16 << 20, kBytesPerFileByte = 16;

/// InvalidFile names the record with which the records in `root` take more than a file of
/// `fileBytes` may unpack to.
Status checkSizes(const std::vector<ZipEntry> &entries, std::string_view root, uint64_t fileBytes) {
  uint64_t left = kAlwaysAllowedBytes + kBytesPerFileByte * fileBytes;
  for (const ZipEntry &entry : entries) {
    if (!entry.name.starts_with(root))
      continue;
    if (entry.size > left)
      return Status(Code::InvalidFile,
                    "with the record '" + printable(entry.name) + "' of " +
                        std::to_string(entry.size) + " bytes, a file of " +
                        std::to_string(fileBytes) + " bytes unpacks to more than " +
                        std::to_string(kAlwaysAllowedBytes + kBytesPerFileByte * fileBytes) +
                        " bytes; export the model again");
    left -= entry.size;
  }
  return Status::ok();
}

/// What the stack of a thread has room for, many times over.
constexpr size_t kDeepestSource = 500;

/// A record that a pickle references.
struct Record {
  std::string name;
  uint64_t size = 0; ///< Uncompressed, in bytes.
};

/// Reads the pickles of an archive as torch::jit::load does, but without the module's code: every
/// class is an empty one. Tensors point into the mapping of the archive.
class TensorCheck {
public:
  /// For the tensors of `folder`.pkl, whose records are in `folder`.
  TensorCheck(caffe2::serialize::PyTorchStreamReader &reader, std::span<const std::byte> zip,
              std::string folder)
      : reader_(reader), zip_(zip), folder_(std::move(folder)) {}

  Status check();

private:
  c10::StrongTypePtr typeNamed(const c10::QualifiedName &name);
  at::DataPtr record(const std::string &name);
  void checkTensor(const at::Tensor &tensor);
  void checkTensorsOf(std::vector<c10::IValue> values);

  caffe2::serialize::PyTorchStreamReader &reader_;
  std::span<const std::byte> zip_;
  std::string folder_;
  std::shared_ptr<torch::jit::CompilationUnit> classes_ =
      std::make_shared<torch::jit::CompilationUnit>();
  llvm::DenseMap<const void *, Record> records_; ///< By the address of their storage.
  Status status_;
};

/// Resolves `name`, which is a class or a type such as List[Tensor] that the pickle gives to a
/// list.
c10::StrongTypePtr TensorCheck::typeNamed(const c10::QualifiedName &name) {
  const std::string &text = name.qualifiedName();
  c10::TypePtr type;
  if (text.starts_with("List["))
    type = c10::ListType::create(c10::AnyType::get());
  else if (text.starts_with("Dict["))
    type = c10::DictType::create(c10::AnyType::get(), c10::AnyType::get());
  else
    type = c10::ClassType::create(name, classes_);
  return {classes_, std::move(type)};
}

at::DataPtr TensorCheck::record(const std::string &name) {
  const uint64_t offset = reader_.getRecordOffset(name), size = reader_.getRecordSize(name);
  at::DataPtr data;
  if (offset <= zip_.size() && size <= zip_.size() - offset)
    data = at::DataPtr(const_cast<std::byte *>(zip_.data()) + offset, c10::kCPU);
  else // Compressed: larger than in the archive.
    data = std::get<0>(reader_.getRecord(name));
  // If records overlap, the shortest one bounds the tensor.
  Record &known = records_[data.get()];
  if (known.name.empty() || size < known.size)
    known = {name, size};
  return data;
}

void TensorCheck::checkTensor(const at::Tensor &tensor) {
  if (!tensor.defined() || tensor.layout() != c10::kStrided) // The importer refuses other layouts.
    return;
  const uint64_t claimed = tensor.storage().nbytes();
  const auto record = records_.find(tensor.storage().data());
  // A tensor of the meta device, or one whose storage was freed, has no record. The importer
  // refuses it where the model uses it. LibTorch reads constants while it loads.
  if (record == records_.end() && folder_ != "constants")
    return;
  const bool negative = tensor.storage_offset() < 0 ||
                        llvm::any_of(tensor.sizes(), [](int64_t size) { return size < 0; });
  const uint64_t taken =
      negative ? UINT64_MAX
               : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                                  tensor.itemsize(), tensor.storage_offset());
  const Record none{folder_ + ".pkl"};
  const auto &[name, size] = record == records_.end() ? none : record->second;
  if (std::max(taken, claimed) > size)
    status_ = Status(Code::InvalidFile,
                     "the record '" + name + "' has " + std::to_string(size) +
                         " bytes, fewer than a tensor in it takes; copy the file again, or clone "
                         "views of another dtype and export it again");
}

/// Lists and dicts may share parts, and may contain themselves.
void TensorCheck::checkTensorsOf(std::vector<c10::IValue> values) {
  llvm::DenseSet<const void *> seen;
  while (!values.empty() && status_.isOk()) {
    const c10::IValue value = std::move(values.back());
    values.pop_back();
    if (value.isTensor())
      checkTensor(value.toTensor());
    else if (value.isPtrType() && !seen.insert(value.internalToPointer()).second)
      continue;
    else if (value.isTuple())
      llvm::append_range(values, value.toTupleRef().elements());
    else if (value.isList())
      llvm::append_range(values, value.toListRef());
    else if (value.isGenericDict())
      for (const auto &entry : value.toGenericDict()) {
        values.push_back(entry.key());
        values.push_back(entry.value());
      }
  }
}

Status TensorCheck::check() {
  if (!reader_.hasRecord(folder_ + ".pkl"))
    return Status::ok();
  const auto [data, size] = reader_.getRecord(folder_ + ".pkl");
  // A pickle may change the state of an object after the object was built.
  std::vector<c10::IValue> states;
  const char *next = static_cast<const char *>(data.get()), *const end = next + size;
  torch::jit::Unpickler pickle(
      [&](char *to, size_t length) {
        const size_t available = std::min<size_t>(length, end - next);
        std::copy_n(next, available, to);
        // Unpickler::readString searches all of its buffer for the end of a line, also past the
        // bytes read. Zeros keep it from finding an old one. Longer reads do not go to the buffer.
        constexpr size_t kBufferSize = 256;
        if (length <= kBufferSize)
          std::fill(to + available, to + length, '\0');
        next += available;
        return available;
      },
      [this](const c10::QualifiedName &name) { return typeNamed(name); },
      [&](const c10::StrongTypePtr &type, const c10::IValue &state) {
        states.push_back(state);
        return c10::ivalue::Object::create(type, 0);
      },
      [&](const std::string &name) { return record(folder_ + "/" + name); }, c10::kCPU);
  states.push_back(pickle.parse_ivalue());
  checkTensorsOf(std::move(states));
  return status_;
}

} // namespace

Status checkArchive(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  Status broken(Code::InvalidFile,
                "the directory of the zip is damaged; export or copy the file again");
  const auto entries = zipEntries(file.bytes());
  if (!entries)
    return broken;
  caffe2::serialize::PyTorchStreamReader reader(path);
  // The archive's records are in one folder, that of its first entry. Other tools add files beside.
  const std::string_view first = entries->empty() ? "" : entries->front().name;
  const std::string_view root = first.substr(0, first.find('/') + 1);
  CGC_TRY(checkSizes(*entries, root, file.bytes().size()));
  size_t numMethods = 0;
  for (const ZipEntry &entry : *entries) {
    if (!entry.name.starts_with(root))
      continue;
    const auto isTooDeep = [&](const void *data, size_t size) {
      if (!entry.name.substr(root.size()).starts_with("code/") || !entry.name.ends_with(".py"))
        return false;
      const llvm::StringRef source(static_cast<const char *>(data), size);
      numMethods += source.count("def ");
      return script::sourceDepth(source) > kDeepestSource;
    };
    uint32_t crc = 0;
    bool tooDeep = false;
    if (entry.isStored) {
      const auto bytes = storedBytes(file.bytes(), entry);
      if (!bytes)
        return broken;
      crc = crcOf(bytes->data(), bytes->size());
      tooDeep = isTooDeep(bytes->data(), bytes->size());
    } else {
      auto [data, size] = reader.getRecord(std::string(entry.name.substr(root.size())));
      crc = crcOf(data.get(), size);
      tooDeep = isTooDeep(data.get(), size);
    }
    if (tooDeep)
      return Status(Code::InvalidFile,
                    "the source in the record '" + printable(entry.name) + "' has more than " +
                        std::to_string(kDeepestSource) +
                        " brackets, operators or blocks inside each other; write the code in parts "
                        "and export the model again");
    if (crc != entry.crc)
      return Status(Code::InvalidFile, "the record '" + printable(entry.name) +
                                           "' is damaged: its bytes do not have the checksum in "
                                           "the file; export or copy the file again");
  }
  if (numMethods > kMostMethods)
    return Status(Code::InvalidFile, "the source has " + std::to_string(numMethods) +
                                         " methods, more than the " + std::to_string(kMostMethods) +
                                         " that cgc reads; export parts of the model");
  for (const char *folder : {"constants", "data"})
    CGC_TRY(TensorCheck(reader, file.bytes(), folder).check());
  return Status::ok();
}

} // namespace cgc::frontend

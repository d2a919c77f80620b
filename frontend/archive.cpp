// Archive: checks checksums over a mapping of the file, and parses the pickles with LibTorch's
// Unpickler.
#include "frontend/archive.h"

#include "runtime/base/file.h"
#include "runtime/base/zip.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
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

/// A record that a pickle references.
struct Record {
  std::string name;
  uint64_t size = 0; ///< Uncompressed, in bytes.
};

/// Reads the pickles of an archive as torch::jit::load does, but without the module's code: every
/// class is an empty one. Tensors point into the mapping of the archive.
class TensorCheck {
public:
  TensorCheck(caffe2::serialize::PyTorchStreamReader &reader, std::span<const std::byte> zip)
      : reader_(reader), zip_(zip) {}

  /// Checks the tensors of `folder`.pkl, whose records are in `folder`.
  Status check(const std::string &folder);

private:
  c10::StrongTypePtr typeNamed(const c10::QualifiedName &name);
  at::DataPtr record(const std::string &name);
  void checkTensorsOf(const c10::IValue &value);

  caffe2::serialize::PyTorchStreamReader &reader_;
  std::span<const std::byte> zip_;
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

void TensorCheck::checkTensorsOf(const c10::IValue &value) {
  value.visit([this](const c10::IValue &part) {
    if (!status_.isOk() || !part.isTensor() || !part.toTensor().defined() ||
        part.toTensor().layout() != c10::kStrided)
      return !status_.isOk();
    const at::Tensor &tensor = part.toTensor();
    const Record record = records_.lookup(tensor.storage().data());
    const uint64_t taken = at::detail::computeStorageNbytes(
        tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset());
    if (std::max<uint64_t>(taken, tensor.storage().nbytes()) > record.size)
      status_ = Status(Code::InvalidFile,
                       record.name.empty()
                           ? "a tensor has a size but no bytes in the file: load the "
                             "model onto the CPU and export it again"
                           : "the record '" + record.name + "' has " + std::to_string(record.size) +
                                 " bytes, fewer than a tensor in it takes; export or copy "
                                 "the file again");
    return false;
  });
}

Status TensorCheck::check(const std::string &folder) {
  if (!reader_.hasRecord(folder + ".pkl"))
    return Status::ok();
  const auto [data, size] = reader_.getRecord(folder + ".pkl");
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
      [this](const c10::StrongTypePtr &type, const c10::IValue &state) {
        checkTensorsOf(state);
        return c10::ivalue::Object::create(type, 0);
      },
      [&](const std::string &name) { return record(folder + "/" + name); }, c10::kCPU);
  checkTensorsOf(pickle.parse_ivalue());
  return status_;
}

} // namespace

Status checkArchive(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const Status broken(Code::InvalidFile,
                      "the directory of the zip is damaged; export or copy the file again");
  const auto entries = zipEntries(file.bytes());
  if (!entries)
    return broken;
  caffe2::serialize::PyTorchStreamReader reader(path);
  for (const ZipEntry &entry : *entries) {
    uint32_t crc = 0;
    if (entry.isStored) {
      const auto bytes = storedBytes(file.bytes(), entry);
      if (!bytes)
        return broken;
      crc = crcOf(bytes->data(), bytes->size());
    } else {
      // The reader omits the folder that contains all records.
      const size_t slash = entry.name.find('/');
      auto [data, size] = reader.getRecord(
          std::string(slash == std::string_view::npos ? "" : entry.name.substr(slash + 1)));
      crc = crcOf(data.get(), size);
    }
    if (crc != entry.crc)
      return Status(Code::InvalidFile, "the record '" + std::string(entry.name) +
                                           "' is damaged: its bytes do not have the checksum in "
                                           "the file; export or copy the file again");
  }
  for (const char *folder : {"constants", "data"})
    CGC_TRY(TensorCheck(reader, file.bytes()).check(folder));
  return Status::ok();
}

} // namespace cgc::frontend

// ModelFile: finds the tensors of the states, and converts 16 bits to f32.
#include "runtime/train/model_file.h"

#include "runtime/base/check.h"
#include "runtime/kernels/reference_elements.h"

#include <cstring>
#include <filesystem>
#include <set>

namespace cgc {
namespace {

/// Whether the file's tensor can become the state: the same dtype, or 16 bits for f32.
bool converts(DType from, DType to) {
  return from == to || (to == DType::F32 && (from == DType::F16 || from == DType::BF16));
}

template <class T> void toFloats(std::span<const std::byte> from, std::vector<std::byte> &floats) {
  const size_t count = from.size() / sizeof(T);
  floats.resize(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, from.data() + i * sizeof(T), sizeof(T));
    const float value = reference::toFloat(element);
    std::memcpy(floats.data() + i * sizeof(float), &value, sizeof(value));
  }
}

} // namespace

/// A view of the bytes of a state, which are only read.
TensorView viewOf(const State &state, std::span<const std::byte> bytes) {
  CGC_CHECK(bytes.size() == *tensorBytes(state.dtype, state.sizes));
  static std::byte empty; // A tensor without elements still needs an address.
  auto *const data = bytes.empty() ? &empty : const_cast<std::byte *>(bytes.data());
  return {data, state.dtype, DeviceKind::Cpu, state.sizes, {}};
}

Result<ModelFile> ModelFile::open(const std::string &path, std::vector<FileTensor> tensors,
                                  const TrainerWords &words) {
  std::error_code ignored;
  const std::string place =
      std::filesystem::is_directory(path, ignored) ? path + "/" + std::string(kModelFile) : path;
  CGC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(place));
  for (const auto &[name, state] : tensors) {
    const SafetensorsTensor *const tensor = file.find(name);
    if (!tensor)
      return Status(Code::Usage, "'" + place + "' has no '" + name +
                                     "': it is of another model, or its names need " +
                                     words.prefix);
    if (!converts(tensor->dtype, state->dtype) || tensor->sizes != state->sizes)
      return Status(Code::Usage, "'" + place + "' is of another model: '" + name + "' is " +
                                     shapeText(tensor->dtype, tensor->sizes) + " instead of " +
                                     shapeText(state->dtype, state->sizes));
  }
  return ModelFile(std::move(file), std::move(tensors));
}

Status
ModelFile::forEach(const std::function<Status(size_t, std::span<const std::byte>)> &write) const {
  std::vector<std::byte> floats;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const SafetensorsTensor &tensor = *file_.find(tensors_[i].name);
    std::span<const std::byte> bytes = tensor.bytes;
    if (tensor.dtype != tensors_[i].state->dtype) {
      if (tensor.dtype == DType::F16)
        toFloats<reference::F16>(bytes, floats);
      else
        toFloats<reference::BF16>(bytes, floats);
      bytes = floats;
    }
    CGC_TRY(write(i, bytes));
  }
  return Status::ok();
}

std::vector<std::string> ModelFile::unused() const {
  std::set<std::string> names;
  for (const SafetensorsTensor &tensor : file_.tensors())
    names.insert(tensor.name);
  for (const FileTensor &tensor : tensors_)
    names.erase(tensor.name);
  return {names.begin(), names.end()};
}

} // namespace cgc

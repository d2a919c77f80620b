// Files of safetensors: parses the header with checks of all that a hostile file could say, and
// writes it.
#include "runtime/train/safetensors.h"

#include "runtime/base/checked.h"
#include "runtime/base/no_throw.h"
#include "runtime/base/printable.h"
#include "runtime/base/training_names.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

namespace cgc {
namespace {

using nlohmann::json;

constexpr std::string_view kMetadata = kNotesName;

/// By DType.
constexpr std::array<std::string_view, kNumDTypes> kDTypeNames = {
    "F32", "F16", "BF16", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL"};

Status damaged(const std::string &what) {
  return {Code::InvalidFile, what + "; write or download the file again"};
}

uint64_t headerBytes(std::span<const std::byte> bytes) {
  uint64_t size = 0; // Little-endian, as the hosts that cgc runs on.
  std::memcpy(&size, bytes.data(), sizeof(size));
  return size;
}

/// A tensor as the header describes it.
struct Described {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
};

/// Reads the header event by event. A tree of JSON values would allocate in its destructor, which
/// ends the process where no memory is left.
class HeaderReader final : public nlohmann::json_sax<json> {
public:
  std::vector<Described> tensors;
  SafetensorsMetadata metadata;
  std::string problem = "its header is no JSON object";

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::List || value > uint64_t(INT64_MAX))
      return other();
    list_->push_back(value);
    return true;
  }
  bool number_float(number_float_t, const string_t &) override { return other(); }
  bool string(string_t &text) override {
    if (place_ == Place::Metadata)
      metadata[key_] = text;
    else if (place_ == Place::Tensor && key_ == "dtype")
      tensors.back().dtype = text;
    else
      return other();
    return true;
  }
  bool binary(binary_t &) override { return other(); }
  bool start_object(std::size_t) override {
    if (place_ == Place::Outside)
      place_ = Place::Top;
    else if (place_ == Place::Top)
      place_ = name_ == kMetadata ? Place::Metadata : Place::Tensor;
    else
      return other();
    return true;
  }
  bool key(string_t &text) override {
    key_ = text;
    if (place_ != Place::Top) {
      if (!members_.insert(text).second)
        return twice("'" + printable(text) + "' of '" + printable(name_) + "'");
      return true;
    }
    name_ = text;
    members_.clear();
    if (!names_.insert(text).second)
      return twice("'" + printable(text) + "'");
    if (text != kMetadata)
      tensors.emplace_back().name = text;
    return true;
  }
  bool end_object() override {
    place_ = place_ == Place::Top ? Place::Outside : Place::Top;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::Tensor || (key_ != "shape" && key_ != "data_offsets"))
      return other();
    place_ = Place::List;
    list_ = &(key_ == "shape" ? tensors.back().shape : tensors.back().offsets).emplace();
    return true;
  }
  bool end_array() override {
    place_ = Place::Tensor;
    return true;
  }
  bool parse_error(std::size_t, const std::string &, const nlohmann::detail::exception &) override {
    return false;
  }

private:
  enum class Place { Outside, Top, Metadata, Tensor, List };

  bool twice(const std::string &what) {
    problem = "its header has " + what + " twice";
    return false;
  }
  /// A value that may not be here.
  bool other() {
    if (place_ == Place::Outside)
      return false;
    if (name_ != kMetadata)
      problem = "tensor '" + printable(name_) + "' has no valid dtype, shape and data_offsets";
    else if (place_ == Place::Top)
      problem = "its metadata is no object";
    else
      problem = "its metadata '" + printable(key_) + "' is no text";
    return false;
  }

  Place place_ = Place::Outside;
  std::string name_, key_;                ///< Of the member of the header, and of its member.
  std::set<std::string> names_, members_; ///< Of the header, and of its member.
  std::vector<uint64_t> *list_ = nullptr;
};

/// The tensor that the header describes. Its bytes are in `data`.
Result<SafetensorsTensor> tensorOf(const Described &described, std::span<const std::byte> data) {
  const auto &[name, dtype, shape, offsets] = described;
  const std::string what = "tensor '" + printable(name) + "'";
  if (!dtype || !shape || !offsets || offsets->size() != 2)
    return damaged(what + " has no valid dtype, shape and data_offsets");
  const auto known = std::ranges::find(kDTypeNames, *dtype);
  if (known == kDTypeNames.end())
    return Status(Code::InvalidFile, what + " has the dtype '" + printable(*dtype) +
                                         "', which cgc does not know; convert the file");
  SafetensorsTensor tensor{
      name, DType(known - kDTypeNames.begin()), {shape->begin(), shape->end()}, {}};
  const uint64_t begin = (*offsets)[0], end = (*offsets)[1];
  const std::optional<uint64_t> bytes = tensorBytes(tensor.dtype, tensor.sizes);
  if (!bytes || begin > end || end - begin != *bytes)
    return damaged(what + " has a shape and offsets that do not fit");
  if (end > data.size())
    return damaged(what + " ends at byte " + std::to_string(end) + " of " +
                   std::to_string(data.size()) + ": the file is cut short");
  tensor.bytes = data.subspan(begin, *bytes);
  return tensor;
}

/// `text` as JSON. Throws if it is not UTF-8.
std::string quoted(const std::string &text) {
  return json(text).dump();
}

std::string listText(const std::vector<int64_t> &sizes) {
  std::string text;
  for (const int64_t size : sizes)
    text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

} // namespace

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes) {
  constexpr uint64_t kLengthBytes = sizeof(uint64_t);
  if (bytes.size() < kLengthBytes)
    return damaged("it is no file of safetensors: it has less than 8 bytes");
  const uint64_t length = headerBytes(bytes);
  if (length > kMaxSafetensorsHeader)
    return damaged("it is no file of safetensors: its header would have " + std::to_string(length) +
                   " bytes");
  if (length > bytes.size() - kLengthBytes)
    return damaged("it is cut short in its header, or no file of safetensors");
  const auto *const text = reinterpret_cast<const char *>(bytes.data()) + kLengthBytes;
  HeaderReader header;
  if (!json::sax_parse(text, text + length, &header))
    return damaged("it is no file of safetensors, or damaged: " + header.problem);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  SafetensorsFile file;
  file.metadata_ = std::move(header.metadata);
  std::vector<std::pair<uint64_t, uint64_t>> ranges; // Begin and size.
  for (const Described &described : header.tensors) {
    CGC_ASSIGN_OR_RETURN(SafetensorsTensor tensor, tensorOf(described, data));
    ranges.emplace_back((*described.offsets)[0], tensor.bytes.size());
    file.tensors_.push_back(std::move(tensor));
  }
  std::ranges::sort(ranges);
  uint64_t end = 0;
  for (const auto &[begin, size] : ranges) {
    if (begin != end)
      return damaged("its tensors overlap or leave bytes between them");
    end += size;
  }
  if (end != data.size())
    return damaged("it has " + std::to_string(data.size() - end) + " bytes behind its tensors");
  std::ranges::sort(file.tensors_, {}, &SafetensorsTensor::name);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  auto file = noThrow([&] { return parse(mapped.bytes()); });
  if (!file.isOk())
    return file.status().withContext("'" + path + "'");
  file->file_ = std::move(mapped); // The mapping does not move.
  return file;
}

const SafetensorsTensor *SafetensorsFile::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors_, name, {}, &SafetensorsTensor::name);
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

std::vector<size_t> safetensorsOrder(std::span<const SafetensorsEntry> entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const size_t sizeA = dtypeSize(entries[a].dtype), sizeB = dtypeSize(entries[b].dtype);
    return sizeA != sizeB ? sizeA > sizeB : entries[a].name < entries[b].name;
  });
  return order;
}

Result<std::string> safetensorsHeader(std::span<const SafetensorsEntry> entries,
                                      const SafetensorsMetadata &metadata) {
  const auto write = [&]() -> Result<std::string> {
    std::string members;
    for (const auto &[key, note] : metadata)
      members += (members.empty() ? "" : ",") + quoted(key) + ":" + quoted(note);
    std::string all = metadata.empty() ? "" : quoted(std::string(kMetadata)) + ":{" + members + "}";
    uint64_t end = 0;
    for (const size_t i : safetensorsOrder(entries)) {
      const SafetensorsEntry &entry = entries[i];
      const uint64_t begin = end;
      end += *tensorBytes(entry.dtype, entry.sizes);
      all += (all.empty() ? "" : ",") + quoted(entry.name) + ":{\"dtype\":\"" +
             std::string(kDTypeNames[size_t(entry.dtype)]) +
             "\",\"shape\":" + listText(entry.sizes) +
             ",\"data_offsets\":" + listText({int64_t(begin), int64_t(end)}) + "}";
    }
    return "{" + all + "}";
  };
  auto text = noThrow(write); // A text that is not UTF-8 is an exception.
  if (!text.isOk())
    return text.status().withContext("a name or note cannot be written");
  constexpr size_t kAlignment = 8; // Readers map the file.
  text->append((kAlignment - text->size() % kAlignment) % kAlignment, ' ');
  if (text->size() > kMaxSafetensorsHeader)
    return Status(Code::Failed, "the header of the file would have " +
                                    std::to_string(text->size()) + " bytes, more than " +
                                    std::to_string(kMaxSafetensorsHeader));
  const uint64_t size = text->size();
  std::string all(sizeof(size), '\0');
  std::memcpy(all.data(), &size, sizeof(size));
  return all + *text;
}

} // namespace cgc

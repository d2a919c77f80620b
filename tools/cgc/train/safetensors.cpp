// Safetensors files: parses the JSON header.
#include "tools/cgc/train/safetensors.h"

#include "runtime/plan/plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <optional>
#include <utility>

namespace cgc::tool {
namespace {

using Json = nlohmann::ordered_json;

std::optional<DType> dtypeOf(const Json &name) {
  constexpr std::pair<const char *, DType> kDTypes[] = {
      {"F32", DType::F32}, {"F16", DType::F16},  {"BF16", DType::BF16}, {"F64", DType::F64},
      {"I64", DType::I64}, {"I32", DType::I32},  {"I16", DType::I16},   {"I8", DType::I8},
      {"U8", DType::U8},   {"BOOL", DType::Bool}};
  for (const auto &[text, dtype] : kDTypes)
    if (name == text)
      return dtype;
  return std::nullopt;
}

/// The list of nonnegative integers in `json`; nothing if it is another value.
std::optional<std::vector<int64_t>> sizesOf(const Json &json) {
  if (!json.is_array())
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (const Json &size : json) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > uint64_t(INT64_MAX))
      return std::nullopt;
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

} // namespace

Result<std::vector<NamedArray>> parseSafetensors(std::span<const std::byte> file,
                                                 const std::string &name) {
  const auto invalid = [&](const std::string &what) {
    return Status(Code::InvalidFile, fmt::format("'{}' {}", name, what));
  };
  uint64_t length = 0;
  if (file.size() < sizeof(length))
    return invalid("is not a safetensors file");
  std::memcpy(&length, file.data(), sizeof(length));
  const auto rest = file.subspan(sizeof(length));
  if (length > rest.size())
    return invalid("is not a safetensors file, or cut short in its header; copy it again");
  const auto *text = reinterpret_cast<const char *>(rest.data());
  const Json header = Json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object())
    return invalid("is not a safetensors file: its header is no JSON object");
  const auto data = rest.subspan(length);

  std::vector<NamedArray> arrays;
  for (const auto &[key, value] : header.items()) {
    if (key == "__metadata__")
      continue;
    const auto sizes = sizesOf(value.value("shape", Json()));
    const auto offsets = sizesOf(value.value("data_offsets", Json()));
    if (!sizes || !offsets || offsets->size() != 2)
      return invalid(fmt::format("has a damaged header: no shape and place of '{}'", key));
    const auto begin = static_cast<uint64_t>((*offsets)[0]);
    const auto end = static_cast<uint64_t>((*offsets)[1]);
    const auto dtype = dtypeOf(value.value("dtype", Json()));
    if (!dtype)
      continue;
    if (end > data.size())
      return invalid(
          fmt::format("is cut short: '{}' ends behind the end of the file; copy it again", key));
    if (begin > end || tensorBytes(*dtype, *sizes) != end - begin)
      return invalid(fmt::format("is damaged: the size of '{}' is not that of its shape", key));
    arrays.push_back({key, *dtype, *sizes, data.subspan(begin, end - begin)});
  }
  return arrays;
}

} // namespace cgc::tool

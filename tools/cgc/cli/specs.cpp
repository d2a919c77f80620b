// Specs: parses the values of --input.
#include "tools/cgc/cli/specs.h"

#include "ir/type.h"
#include "tools/cgc/io/file_pattern.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <ranges>
#include <regex>

namespace cgc::tool {

namespace {

/// Names of dtypes in PyTorch and NumPy that differ from cgc's.
constexpr std::pair<std::string_view, DType> kOtherDTypeNames[] = {
    {"float32", DType::F32}, {"float", DType::F32},     {"float16", DType::F16},
    {"half", DType::F16},    {"bfloat16", DType::BF16}, {"float64", DType::F64},
    {"double", DType::F64},  {"int64", DType::I64},     {"long", DType::I64},
    {"int32", DType::I32},   {"int", DType::I32},       {"int16", DType::I16},
    {"short", DType::I16},   {"int8", DType::I8},       {"uint8", DType::U8},
};

/// `type` with cgc's name of the dtype: `float32[1,3]` becomes `f32[1,3]`. Unchanged if it does not
/// begin with a name in kOtherDTypeNames.
std::string withOwnDTypeName(std::string_view type) {
  const std::string_view name = type.substr(0, type.find('['));
  for (const auto &[other, dtype] : kOtherDTypeNames)
    if (name == other)
      return std::string(dtypeName(dtype)).append(type.substr(name.size()));
  return std::string(type);
}

/// Splits `NAME=REST`. Nothing if the text has another form.
std::optional<std::pair<std::string, std::string_view>> splitName(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return std::nullopt;
  return std::pair(std::string(text.substr(0, equals)), text.substr(equals + 1));
}

/// Usage if a size is symbolic or a wildcard, as in "[-1,3,N]".
Status checkConcrete(std::string_view text, const std::string &sizes) {
  static const std::regex kSymbolic(R"(\[ *((?:\d+ *, *)*)(-\d+|[?*]|[A-Za-z_]\w*) *[,\]].*)");
  std::smatch match;
  if (!std::regex_match(sizes, match, kSymbolic))
    return Status::ok();
  return Status(Code::Usage,
                fmt::format("--input {}: sizes are concrete; give a number instead of {}{}", text,
                            match[2].str(),
                            match[1].length() == 0
                                ? ", and compile for several values of dimension 0 with --batch 1,4"
                                : ""));
}

template <class T, class Parse>
Result<std::vector<T>> parseEach(const std::vector<std::string> &texts, Parse parse) {
  std::vector<T> items;
  for (const std::string &text : texts) {
    CGC_ASSIGN_OR_RETURN(T item, parse(text));
    if (findByName(items, item.name))
      return Status(Code::Usage, fmt::format("--input names '{}' twice; give it once", item.name));
    items.push_back(std::move(item));
  }
  return items;
}

} // namespace

Result<InputSpec> parseInputSpec(std::string_view text) {
  const auto parts = splitName(text);
  const std::string shape = withOwnDTypeName(parts ? parts->second : "");
  // The IR's type syntax without strides and device: one bracket, and nothing after it.
  const size_t close = shape.find(']');
  std::optional<ir::TensorType> type;
  if (close != std::string::npos && close + 1 == shape.size())
    type = ir::parseTensorType(shape);
  static const std::regex kWellFormed(R"(\[ *\d+( *, *\d+)* *\])");
  const size_t open = std::min(shape.find('['), shape.size());
  if (parseDType(shape.substr(0, open)))
    CGC_TRY(checkConcrete(text, shape.substr(open)));
  if (!type && parseDType(shape.substr(0, open)) &&
      std::regex_match(shape.begin() + static_cast<ptrdiff_t>(open), shape.end(), kWellFormed))
    return Status(Code::Usage, fmt::format("--input {}: the tensor is too large", text));
  if (!type)
    return Status(Code::Usage,
                  fmt::format("--input {}: expected NAME=DTYPE[SIZES], for example "
                              "image=f32[1,3,224,224]; the dtypes are f32 f16 bf16 f64 i64 i32 i16 "
                              "i8 u8 bool, or PyTorch's names (float32, half, int64, ...)",
                              text));
  for (int64_t size : type->sizes)
    if (size < 1)
      return Status(Code::Usage, fmt::format("--input {}: sizes must be at least 1", text));
  return InputSpec{parts->first, type->dtype, {type->sizes.begin(), type->sizes.end()}};
}

Result<InputSource> parseInputSource(std::string_view text) {
  const auto parts = splitName(text);
  if (parts && parts->second.size() > 1 && parts->second.front() == '@') {
    const std::string_view file = parts->second.substr(1);
    if (isPattern(file))
      CGC_TRY(checkPattern(file));
    return InputSource{parts->first, std::string(file), 0};
  }
  constexpr std::string_view kRandom = "random:";
  if (parts && parts->second.starts_with(kRandom)) {
    const std::string_view digits = parts->second.substr(kRandom.size());
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error == std::errc() && end == digits.data() + digits.size())
      return InputSource{parts->first, "", seed};
  }
  std::error_code ignored;
  const bool isPath = parts && (parts->second.ends_with(".npy") ||
                                std::filesystem::is_regular_file(parts->second, ignored));
  return Status(
      Code::Usage,
      fmt::format(
          "--input {}: expected NAME=@FILE.npy or NAME=random:SEED, for example "
          "image=random:0{}",
          text, isPath ? fmt::format("; did you mean {}=@{}?", parts->first, parts->second) : ""));
}

Result<std::vector<InputSpec>> parseInputSpecs(const std::vector<std::string> &texts) {
  return parseEach<InputSpec>(texts, parseInputSpec);
}

Result<std::vector<InputSource>> parseInputSources(const std::vector<std::string> &texts) {
  return parseEach<InputSource>(texts, parseInputSource);
}

Result<std::vector<driver::EntryGroup>> parseEntryGroups(const std::vector<std::string> &texts) {
  std::vector<driver::EntryGroup> groups;
  for (const std::string &text : texts) {
    const auto parts = splitName(text);
    driver::EntryGroup group{parts ? parts->first : "", {}};
    for (auto member : std::views::split(parts ? parts->second : "", '+'))
      group.members.emplace_back(member.begin(), member.end());
    if (group.members.empty() || std::ranges::count(group.members, std::string()) > 0)
      return Status(Code::Usage, fmt::format("--entry-group {}: expected NAME=ENTRY+ENTRY[+...], "
                                             "for example clip=encode_image+encode_text",
                                             text));
    if (findByName(groups, group.name))
      return Status(Code::Usage,
                    fmt::format("--entry-group names '{}' twice; give it once", group.name));
    groups.push_back(std::move(group));
  }
  return groups;
}

Status withOptionsToChange(const Status &status, std::string_view options) {
  return {status.code(), fmt::format("{}\n  to do: add or change {}", status.message(), options)};
}

} // namespace cgc::tool

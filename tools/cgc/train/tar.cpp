// Tar archives: walks the headers of 512 bytes.
#include "tools/cgc/train/tar.h"

#include "runtime/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace cgc::tool {
namespace {

constexpr size_t kBlock = 512;

/// A text field of a header, which a zero ends if it is shorter than the field.
std::string_view field(std::string_view header, size_t at, size_t size) {
  const std::string_view text = header.substr(at, size);
  return text.substr(0, text.find('\0'));
}

/// An octal number between spaces.
std::optional<uint64_t> octal(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Whether the sum of the header's bytes, with spaces for the sum itself, is what it says.
bool checksumFits(std::string_view header) {
  constexpr size_t kSumAt = 148, kSumSize = 8;
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i)
    sum += i >= kSumAt && i < kSumAt + kSumSize ? ' ' : static_cast<unsigned char>(header[i]);
  return octal(field(header, kSumAt, kSumSize)) == sum;
}

/// The value of the record `path` of a pax header, which has lines "LENGTH KEY=VALUE\n"; nothing if
/// there is none.
std::optional<std::string> paxPath(std::string_view records) {
  std::optional<std::string> path;
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 2)
      break;
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    constexpr std::string_view kKey = "path=";
    if (record.starts_with(kKey))
      path = record.substr(kKey.size());
    records.remove_prefix(length);
  }
  return path;
}

} // namespace

Result<std::vector<TarMember>> readTar(std::span<const std::byte> archive,
                                       const std::string &name) {
  const auto invalid = [&](const std::string &what) {
    return Status(Code::InvalidFile, fmt::format("'{}' {}", name, what));
  };
  const std::string_view bytes(reinterpret_cast<const char *>(archive.data()), archive.size());
  std::vector<TarMember> members;
  std::optional<std::string> longName; // Of the next member, from an extension header.
  for (size_t at = 0;;) {
    if (bytes.size() - at < kBlock)
      return invalid(at == 0 ? "is not a tar archive"
                             : "is cut short: it has no end; copy it again");
    const std::string_view header = bytes.substr(at, kBlock);
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; }))
      return members;
    const auto size = octal(field(header, 124, 12));
    if (!size || !checksumFits(header))
      return invalid(at == 0 ? "is not a tar archive, or compressed; unpack it first"
                             : fmt::format("is damaged at byte {}; copy it again", at));
    at += kBlock;
    if (*size > bytes.size() - at)
      return invalid(fmt::format("is cut short: '{}' needs {} bytes, there are {}; copy it again",
                                 printable(longName.value_or(std::string(field(header, 0, 100)))),
                                 *size, bytes.size() - at));
    const std::string_view content = bytes.substr(at, *size);
    const char type = header[156];
    if (type == 'x') {
      longName = paxPath(content);
    } else if (type == 'L') {
      longName = content.substr(0, content.find('\0'));
    } else {
      std::string path(field(header, 0, 100));
      const std::string_view prefix = field(header, 345, 155);
      if (header.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty())
        path = fmt::format("{}/{}", prefix, path);
      if (type == '0' || type == '\0')
        members.push_back({longName.value_or(path), archive.subspan(at, *size)});
      longName.reset();
    }
    at += std::min<size_t>((*size + kBlock - 1) / kBlock * kBlock, bytes.size() - at);
  }
}

} // namespace cgc::tool

// .npy files: implements the reader and the writer.
#include "tools/cgc/io/npy.h"

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace cgc::tool {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxNpyRank = 64; ///< NumPy's limit.

struct NpyDType {
  DType dtype;
  std::string_view code; ///< NumPy's code on a little-endian machine.
};
constexpr NpyDType kDTypes[] = {
    {DType::F32, "<f4"}, {DType::F16, "<f2"}, {DType::F64, "<f8"},
    {DType::I64, "<i8"}, {DType::I32, "<i4"}, {DType::I16, "<i2"},
    {DType::I8, "|i1"},  {DType::U8, "|u1"},  {DType::Bool, "|b1"},
};

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

/// Parses the Python dict literal in an .npy header, in exactly the form that NumPy defines: the
/// keys descr, fortran_order and shape, each once, in any order.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool seen[3] = {};
    if (!accept('{'))
      return std::nullopt;
    while (!accept('}')) {
      const auto key = string();
      if (!key || !accept(':'))
        return std::nullopt;
      const int index = *key == "descr"           ? 0
                        : *key == "fortran_order" ? 1
                        : *key == "shape"         ? 2
                                                  : -1;
      if (index < 0 || seen[index])
        return std::nullopt;
      seen[index] = true;
      if (!(index == 0 ? descr(header) : index == 1 ? order(header) : shape(header)))
        return std::nullopt;
      if (!accept(',') && peek() != '}')
        return std::nullopt;
    }
    const bool complete = seen[0] && seen[1] && seen[2];
    return complete && peek() == '\0' ? std::optional(header) : std::nullopt;
  }

private:
  char peek() {
    const size_t start = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(std::min(start, rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool acceptWord(std::string_view word) {
    peek();
    if (!rest_.starts_with(word))
      return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      return std::nullopt;
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool descr(Header &header) {
    auto text = string();
    if (text)
      header.descr = std::move(*text);
    else if (peek() == '[') { // A structured type gets an error of its own.
      header.descr = "a record";
      rest_.remove_prefix(std::min(rest_.rfind(']') + 1, rest_.size()));
    }
    return !header.descr.empty();
  }
  bool order(Header &header) {
    header.fortran = acceptWord("True");
    return header.fortran || acceptWord("False");
  }
  bool shape(Header &header) {
    if (!accept('('))
      return false;
    while (!accept(')')) {
      int64_t size = -1;
      peek();
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0)
        return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      header.shape.push_back(size);
      if (!accept(',') && peek() != ')')
        return false;
    }
    return true;
  }

  std::string_view rest_;
};

/// Copies column-major elements to row-major order.
void transposeFortran(const std::byte *source, HostTensor &target) {
  const size_t size = dtypeSize(target.dtype);
  const size_t rank = target.sizes.size();
  std::vector<int64_t> index(rank, 0);
  for (size_t i = 0; i * size < target.bytes.size(); ++i) {
    size_t from = 0;
    for (size_t d = rank; d-- > 0;)
      from = from * static_cast<size_t>(target.sizes[d]) + static_cast<size_t>(index[d]);
    std::memcpy(target.bytes.data() + i * size, source + from * size, size);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < target.sizes[d])
        break;
      index[d] = 0;
    }
  }
}

} // namespace

bool isNpy(std::span<const std::byte> file) {
  return std::string_view(reinterpret_cast<const char *>(file.data()), file.size())
      .starts_with(kMagic);
}

Result<NpyArray> parseNpy(std::span<const std::byte> file, const std::string &name) {
  const auto invalid = [&](const std::string &what) {
    return Status(Code::InvalidFile, fmt::format("'{}' {}", name, what));
  };
  const std::string_view bytes(reinterpret_cast<const char *>(file.data()), file.size());
  if (!isNpy(file))
    return invalid("is not an .npy file; write it with numpy.save");
  const size_t lengthAt = kMagic.size() + 2;
  const unsigned major = bytes.size() > kMagic.size() ? uint8_t(bytes[kMagic.size()]) : 0;
  if (major < 1 || major > 3)
    return invalid(fmt::format("has .npy version {}; cgc reads 1 to 3", major));
  const size_t lengthBytes = major == 1 ? 2 : 4;
  if (bytes.size() < lengthAt + lengthBytes)
    return invalid("is truncated inside its header");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + lengthAt, lengthBytes);
  const size_t dataAt = lengthAt + lengthBytes + length;
  if (bytes.size() < dataAt)
    return invalid("is truncated inside its header");

  const auto header = HeaderParser(bytes.substr(lengthAt + lengthBytes, length)).parse();
  if (!header)
    return invalid("has a malformed .npy header");
  const NpyDType *type = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                      [&](const NpyDType &t) { return t.code == header->descr; });
  if (type == std::end(kDTypes))
    return invalid(fmt::format("holds elements of type {}; convert it to one of {}",
                               printable(header->descr), "<f4 <f2 <f8 <i8 <i4 <i2 |i1 |u1 |b1"));
  if (header->shape.size() > kMaxNpyRank)
    return invalid(fmt::format("has {} dimensions; reshape it to at most {}", header->shape.size(),
                               kMaxNpyRank));
  const auto wanted = tensorBytes(type->dtype, header->shape);
  if (!wanted || *wanted != bytes.size() - dataAt)
    return invalid(
        fmt::format("is truncated or damaged: shape ({}) needs {} bytes of data, there are {}",
                    fmt::join(header->shape, ","), wanted ? std::to_string(*wanted) : "too many",
                    bytes.size() - dataAt));

  return NpyArray{type->dtype, header->shape, header->fortran, file.subspan(dataAt)};
}

Result<HostTensor> readNpy(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (!isNpy(file.bytes())) {
    const std::string kind = describeForeignFile(path);
    return Status(Code::InvalidFile,
                  fmt::format("'{}' is not an .npy file{}; write it with numpy.save", path,
                              kind.empty() ? "" : " but " + kind));
  }
  CGC_ASSIGN_OR_RETURN(const NpyArray array, parseNpy(file.bytes(), path));
  HostTensor tensor = makeTensor("", array.dtype, array.sizes);
  if (array.isFortran)
    transposeFortran(array.data.data(), tensor);
  else if (!array.data.empty())
    std::memcpy(tensor.bytes.data(), array.data.data(), array.data.size());
  return tensor;
}

std::vector<std::byte> formatNpy(const HostTensor &tensor) {
  if (tensor.dtype == DType::BF16)
    return formatNpy(convertFloats(tensor, DType::F32));
  const NpyDType *type = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                      [&](const NpyDType &t) { return t.dtype == tensor.dtype; });
  CGC_CHECK(type != std::end(kDTypes));
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type->code,
                  fmt::join(tensor.sizes, ", "), tensor.sizes.size() == 1 ? "," : "");
  // In version 1.0, the data begins at a multiple of 64 and the header ends with a line break.
  const size_t fixed = kMagic.size() + 4;
  header.resize((fixed + header.size() + 1 + 63) / 64 * 64 - fixed - 1, ' ');
  header += '\n';
  CGC_CHECK(header.size() <= 0xffff);
  std::string start(kMagic);
  start += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  start += header;
  std::vector<std::byte> file(start.size() + tensor.bytes.size());
  std::memcpy(file.data(), start.data(), start.size());
  if (!tensor.bytes.empty())
    std::memcpy(file.data() + start.size(), tensor.bytes.data(), tensor.bytes.size());
  return file;
}

} // namespace cgc::tool

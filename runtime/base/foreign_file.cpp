// describeForeignFile: recognizes file formats that users pass to cgc by mistake.
#include "runtime/base/file.h"

#include "runtime/base/checked.h"
#include "runtime/base/zip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <sys/stat.h>

namespace cgc {
namespace {

using namespace std::literals;

constexpr size_t kHeadBytes = 4096;

std::string describeZip(std::span<const std::byte> zip) {
  const auto entries = zipEntries(zip);
  if (!entries)
    return "a damaged or truncated zip archive";
  const auto ends = [&](std::string_view suffix) {
    return std::ranges::any_of(*entries,
                               [=](const ZipEntry &entry) { return entry.name.ends_with(suffix); });
  };
  const auto holds = [&](std::string_view part) {
    return std::ranges::any_of(
        *entries, [=](const ZipEntry &e) { return e.name.find(part) != std::string_view::npos; });
  };
  if (ends("serialized_exported_program.json"))
    return "a .pt2 archive of an older torch.export, with pickled weights";
  if (ends("/archive_format"))
    return kExportedFile;
  if (ends("/constants.pkl") || holds("/code/"))
    return kTorchScriptFile;
  if (ends("/data.pkl"))
    return "a torch.save checkpoint (weights or a pickled object), not TorchScript";
  if (std::ranges::all_of(*entries,
                          [](const ZipEntry &entry) { return entry.name.ends_with(".npy"); }))
    return "a NumPy .npz archive";
  return "a zip archive";
}

/// A serialized ModelProto starts with ir_version (field 1, a small number), followed by another of
/// its fields.
bool looksLikeOnnx(std::string_view head) {
  if (head.size() < 4 || head[0] != 0x08 || head[1] < 1 || head[1] > 32)
    return false;
  // The tags of producer_name, producer_version, domain, model_version, doc_string, graph and
  // opset_import.
  return "\x12\x1a\x22\x28\x32\x3a\x42"sv.find(head[2]) != std::string_view::npos;
}

bool looksLikeSafetensors(std::string_view head, uint64_t fileBytes) {
  uint64_t header = 0;
  if (head.size() <= 9)
    return false;
  std::memcpy(&header, head.data(), sizeof(header));
  return header >= 2 && header <= 100'000'000 && rangeInside(8, header, fileBytes) &&
         head[8] == '{';
}

bool isText(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && u != '\n' && u != '\r' && u != '\t') || u == 0x7f;
  });
}

std::string describeText(std::string_view head) {
  // IR text may begin with comments and blank lines.
  std::string_view rest = head;
  while (!rest.empty()) {
    const size_t start = rest.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos)
      break;
    rest.remove_prefix(start);
    if (!rest.starts_with("//") && !rest.starts_with(";") && !rest.starts_with("#"))
      break;
    rest.remove_prefix(std::min(rest.size(), rest.find('\n')));
  }
  if (rest.starts_with("module @") || rest.starts_with("graph @"))
    return kIrTextFile;
  if (head.starts_with("version https://git-lfs"))
    return "a Git LFS pointer (run `git lfs pull`)";
  if (rest.starts_with("<!DOCTYPE") || rest.starts_with("<!doctype") || rest.starts_with("<html"))
    return "an HTML page (a failed download?)";
  if (rest.starts_with("{") || rest.starts_with("["))
    return "a JSON file";
  return kTextFile;
}

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char *kind;
};

constexpr std::array kMagics = {
    Magic{0, "CGCPLAN\0"sv, kPlanFile},
    Magic{0, "\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    Magic{0, "\xff\xd8\xff"sv, "a JPEG image"},
    Magic{0, "GIF8"sv, "a GIF image"},
    Magic{8, "WEBP"sv, "a WebP image"},
    Magic{0, "%PDF-"sv, "a PDF document"},
    Magic{0,
          "\x7f"
          "ELF"sv,
          "an ELF program or library"},
    Magic{0, "\x1f\x8b"sv, "a gzip archive (unpack it first)"},
    Magic{0, "BZh"sv, "a bzip2 archive (unpack it first)"},
    Magic{0,
          "\xfd"
          "7zXZ\0"sv,
          "an xz archive (unpack it first)"},
    Magic{0, "\x28\xb5\x2f\xfd"sv, "a zstd archive (unpack it first)"},
    Magic{257, "ustar"sv, "a tar archive (unpack it first)"},
    Magic{0, "\x93NUMPY"sv, "a NumPy .npy array"},
    Magic{0, "\x89HDF\r\n"sv, "an HDF5 file (Keras?)"},
    Magic{0, "GGUF"sv, "a GGUF model"},
    Magic{4, "TFL3"sv, "a TensorFlow Lite model"},
    Magic{4, "ET12"sv, "an ExecuTorch program"},
    // torch.save before PyTorch 1.6 writes a pickled magic number first.
    Magic{0, "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19"sv,
          "a torch.save checkpoint in the format before PyTorch 1.6, not TorchScript"},
};

} // namespace

std::string describeForeignFile(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return {};
  if (S_ISDIR(info.st_mode))
    return "a directory";
  if (!S_ISREG(info.st_mode))
    return "not a regular file";
  if (info.st_size == 0)
    return "an empty file";
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return {};
  const std::span<const std::byte> bytes = file->bytes();
  const std::string_view head(reinterpret_cast<const char *>(bytes.data()),
                              std::min(bytes.size(), kHeadBytes));
  for (const Magic &magic : kMagics)
    if (head.size() >= magic.offset && head.substr(magic.offset).starts_with(magic.bytes))
      return magic.kind;
  if (head.starts_with("PK\3\4"sv) || head.starts_with("PK\5\6"sv))
    return describeZip(bytes);
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    return "a Python pickle (a checkpoint?), not TorchScript";
  if (looksLikeSafetensors(head, bytes.size()))
    return "a safetensors file (weights only)";
  if (looksLikeOnnx(head))
    return "an ONNX model";
  if (isText(head))
    return describeText(head);
  return {};
}

} // namespace cgc

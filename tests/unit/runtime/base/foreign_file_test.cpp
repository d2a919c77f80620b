// describeForeignFile: recognizes every kind of file that users pass to cgc by mistake.
#include "runtime/base/file.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <unistd.h>

namespace cgc::test {
namespace {

using namespace std::literals;
using testing::HasSubstr;

void putLittle(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i));
}

/// A zip archive of empty stored entries with these names.
std::string zipOf(const std::vector<std::string> &names) {
  std::string file, directory;
  for (const std::string &name : names) {
    const size_t at = file.size();
    file += "PK\3\4"s + std::string(22, '\0');
    putLittle(file, name.size(), 2);
    putLittle(file, 0, 2);
    file += name;
    directory += "PK\1\2"s + std::string(24, '\0');
    putLittle(directory, name.size(), 2);
    directory += std::string(12, '\0');
    putLittle(directory, at, 4);
    directory += name;
  }
  const size_t start = file.size();
  file += directory + "PK\5\6"s + std::string(4, '\0');
  putLittle(file, names.size(), 2);
  putLittle(file, names.size(), 2);
  putLittle(file, directory.size(), 4);
  putLittle(file, start, 4);
  putLittle(file, 0, 2);
  return file;
}

std::string safetensors() {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string file;
  putLittle(file, header.size(), 8);
  return file + header + std::string(4, '\0');
}

struct Case {
  const char *name;
  std::string content;
  const char *description;
};

class ForeignFile : public testing::TestWithParam<Case> {};

TEST_P(ForeignFile, IsNamed) {
  const TempFolder folder;
  writeFile(folder / "file", GetParam().content);
  EXPECT_THAT(describeForeignFile(folder / "file"), HasSubstr(GetParam().description));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ForeignFile,
    testing::Values(
        Case{"Empty", "", "an empty file"},
        Case{"Png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s, "a PNG image"},
        Case{"Jpeg", "\xff\xd8\xff\xe0\0\x10JFIF"s, "a JPEG image"},
        Case{"Gzip", "\x1f\x8b\x08\0\0\0"s, "a gzip archive"},
        Case{"Elf", "\x7f"s + "ELF\2\1\1\0"s, "an ELF"},
        Case{"Tar", std::string(257, '\0') + "ustar"s, "a tar archive"},
        Case{"Npy", "\x93NUMPY\1\0"s, "a NumPy .npy array"},
        Case{"Npz", zipOf({"x.npy", "y.npy"}), "a NumPy .npz archive"},
        Case{"Safetensors", safetensors(), "a safetensors file"},
        Case{"Onnx", "\x08\x08\x12\x07pytorch\x1a\x05"s + "2.0.0:\0"s, "an ONNX model"},
        Case{"OnnxWithoutProducer", "\x08\x07\x3a\xc0\x01"s, "an ONNX model"},
        Case{"LegacyCheckpoint", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M"s,
             "a torch.save checkpoint"},
        Case{"Pickle", "\x80\x04\x95\x0f\0"s, "a Python pickle"},
        Case{"Checkpoint",
             zipOf({"m/data.pkl", "m/.format_version", "m/byteorder", "m/data/0", "m/version"}),
             "a torch.save checkpoint (weights or a pickled object), not TorchScript"},
        Case{"TorchScript",
             zipOf({"m/data.pkl", "m/code/__torch__/a.py", "m/data/0", "m/constants.pkl"}),
             "a TorchScript module"},
        Case{"TorchScriptOfTimm",
             zipOf({"m/data.pkl", "m/code/__torch__/timm/models/eva.py", "m/constants.pkl"}),
             "a TorchScript module"},
        Case{"Pt2", zipOf({"m/archive_format", "m/models/model.json", "m/data/weights/w"}),
             kExportedFile},
        Case{"OldPt2", zipOf({"serialized_exported_program.json", "version"}),
             "a .pt2 archive of an older torch.export"},
        Case{"OtherZip", zipOf({"a.txt", "b.npy"}), "a zip archive"},
        Case{"TruncatedZip", zipOf({"m/data.pkl", "m/code/x.py"}).substr(0, 60),
             "a damaged or truncated zip archive"},
        Case{"Plan", "CGCPLAN\0\1\0\0\0"s, "a cgc plan"},
        Case{"IrText", "// comment\n\nmodule @M {\n}\n"s, "cgc IR text"},
        Case{"GitLfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"s,
             "a Git LFS pointer"},
        Case{"Html", "<!DOCTYPE html><html>404"s, "an HTML page"},
        Case{"Json", "{\"a\": 1}"s, "a JSON file"}, Case{"Text", "hello\n"s, "a text file"}),
    [](const auto &info) { return info.param.name; });

TEST(ForeignFile, FoldersAndMissingFiles) {
  const TempFolder folder;
  EXPECT_EQ(describeForeignFile(folder.path()), "a directory");
  EXPECT_EQ(describeForeignFile(folder / "missing"), "");
}

TEST(ForeignFile, UnknownBytesHaveNoName) {
  const TempFolder folder;
  writeFile(folder / "file", "\1\2\3\4\5\6\7\xff\xfe\xfd\xfc\xfb"s);
  EXPECT_EQ(describeForeignFile(folder / "file"), "");
}

/// A sparse zip archive of 8 GB: only its beginning and end can have been read.
TEST(ForeignFile, LooksAtTheEndsOfALargeZipOnly) {
  const TempFolder folder;
  const uint64_t size = uint64_t(8) << 30;
  std::string tail = "PK\1\2"s + std::string(24, '\0');
  const std::string name = "m/constants.pkl";
  putLittle(tail, name.size(), 2);
  tail += std::string(16, '\0') + name;
  const uint64_t directoryAt = size, directorySize = tail.size();
  const uint64_t recordAt = size + directorySize;
  tail += "PK\6\6"s + std::string(36, '\0');
  putLittle(tail, directorySize, 8);
  putLittle(tail, directoryAt, 8);
  tail += "PK\6\7"s + std::string(4, '\0');
  putLittle(tail, recordAt, 8);
  putLittle(tail, 1, 4);
  tail += "PK\5\6"s + std::string(6, '\0') + std::string(10, '\xff') + std::string(2, '\0');
  writeFile(folder / "big", "PK\3\4");
  ASSERT_EQ(::truncate((folder / "big").c_str(), size), 0);
  std::ofstream(folder / "big", std::ios::binary | std::ios::app) << tail;
  EXPECT_EQ(describeForeignFile(folder / "big"), "a TorchScript module");
}

} // namespace
} // namespace cgc::test

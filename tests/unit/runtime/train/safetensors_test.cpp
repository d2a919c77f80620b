// Files of safetensors: round trips, also with the package of Python, and hostile files.
#include "runtime/train/safetensors.h"
#include "tests/paths.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A file with this header and so many bytes behind it.
std::string fileOf(const std::string &header, size_t bytes, uint64_t length) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(bytes, 'x');
}
std::string fileOf(const std::string &header, size_t bytes) {
  return fileOf(header, bytes, header.size());
}

Result<SafetensorsFile> parse(const std::string &file) {
  return SafetensorsFile::parse(std::as_bytes(std::span(file)));
}

TEST(Safetensors, AreWrittenAndRead) {
  const std::vector<SafetensorsEntry> entries = {{"b", DType::U8, {3}},
                                                 {"a \"quoted\" \n", DType::F16, {2, 1}},
                                                 {"scalar", DType::I64, {}},
                                                 {"empty", DType::F32, {0, 4}}};
  EXPECT_THAT(safetensorsOrder(entries), ElementsAre(2, 3, 1, 0));
  const auto header = safetensorsHeader(entries, {{"step", "7"}});
  ASSERT_TRUE(header.isOk()) << header.status().message();
  EXPECT_EQ(header->size() % 8, 0u);
  const std::string file = *header + "12345678" + "abcd" + "xyz";
  const auto read = parse(file);
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(read->metadata(), (SafetensorsMetadata{{"step", "7"}}));
  EXPECT_EQ(read->tensors().size(), 4u);
  const SafetensorsTensor *const scalar = read->find("scalar");
  ASSERT_TRUE(scalar);
  EXPECT_EQ(scalar->dtype, DType::I64);
  EXPECT_EQ(std::memcmp(scalar->bytes.data(), "12345678", 8), 0);
  EXPECT_THAT(read->find("empty")->sizes, ElementsAre(0, 4));
  EXPECT_THAT(read->find("a \"quoted\" \n")->sizes, ElementsAre(2, 1));
  EXPECT_EQ(read->find("c"), nullptr);
}

TEST(Safetensors, NamesThatAreNoTextAreNotWritten) {
  const std::vector<SafetensorsEntry> entries = {{"\xff", DType::U8, {3}}};
  EXPECT_EQ(safetensorsHeader(entries, {}).status().code(), Code::Failed);
  EXPECT_EQ(safetensorsHeader({}, {{"note", "\xff"}}).status().code(), Code::Failed);
}

TEST(Safetensors, EachTruncationIsRefused) {
  const std::vector<SafetensorsEntry> entries = {{"a", DType::F32, {2}}, {"b", DType::U8, {3}}};
  const std::string file = *safetensorsHeader(entries, {}) + std::string(11, 'x');
  ASSERT_TRUE(parse(file).isOk());
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(parse(file.substr(0, size)).status().code(), Code::InvalidFile) << size;
  EXPECT_THAT(parse(file + "x").status().message(), HasSubstr("1 bytes behind its tensors"));
}

struct Hostile {
  const char *name, *header;
  size_t bytes;
  const char *message;
};
void PrintTo(const Hostile &hostile, std::ostream *os) {
  *os << hostile.name;
}
class HostileSafetensors : public testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, AreRefused) {
  const auto file = parse(fileOf(GetParam().header, GetParam().bytes));
  EXPECT_EQ(file.status().code(), Code::InvalidFile);
  EXPECT_THAT(file.status().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Files, HostileSafetensors,
    testing::Values(
        Hostile{"NoJson", "{\"a\":", 0, "no JSON object"},
        Hostile{"AList", "[1]", 0, "no JSON object"},
        Hostile{"NotUtf8", "{\"\xff\":1}", 0, "no JSON object"},
        Hostile{"Twice",
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                1, "its header has 'a' twice"},
        Hostile{"DTypeTwice",
                R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1,
                "its header has 'dtype' of 'a' twice"},
        Hostile{"ShapeTwice",
                R"({"a":{"dtype":"U8","shape":[1],"shape":[1,1],"data_offsets":[0,1]}})", 1,
                "its header has 'shape' of 'a' twice"},
        Hostile{"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", 0,
                "its header has '__metadata__' twice"},
        Hostile{"NoteTwice", R"({"__metadata__":{"step":"1","step":"2"}})", 0,
                "its header has 'step' of '__metadata__' twice"},
        Hostile{"NoMembers", R"({"a":{}})", 0, "no valid dtype, shape and data_offsets"},
        Hostile{"ANumber", R"({"a":7})", 0, "no valid dtype, shape and data_offsets"},
        Hostile{"NegativeSize", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
                "no valid dtype, shape"},
        Hostile{"HugeSize",
                R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1,
                "no valid dtype, shape"},
        Hostile{"Overflow",
                R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                "do not fit"},
        Hostile{"FractionalOffset", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1.5]}})", 1,
                "no valid dtype, shape"},
        Hostile{"ThreeOffsets", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 2,
                "no valid dtype, shape"},
        Hostile{"BackwardOffsets", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", 2,
                "do not fit"},
        Hostile{"OtherShape", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                "do not fit"},
        Hostile{"Outside", R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 4,
                "ends at byte 8 of 4"},
        Hostile{"Overlap",
                R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                3, "overlap"},
        Hostile{"Gap", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2,
                "leave bytes between"},
        Hostile{"Escape", R"({"a\u001b[31m":{}})", 0, "tensor 'a\\x1b[31m' has no valid dtype"},
        Hostile{"EscapeInADType", R"({"a":{"dtype":"\n","shape":[1],"data_offsets":[0,1]}})", 1,
                "dtype '\\x0a'"},
        Hostile{"UnknownDType", R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1,
                "the dtype 'F8_E4M3'"},
        Hostile{"MetadataOfNumbers", R"({"__metadata__":{"a":1}})", 0, "metadata 'a' is no text"},
        Hostile{"MetadataThatIsAList", R"({"__metadata__":[]})", 0, "metadata is no object"}),
    [](const auto &info) { return info.param.name; });

TEST(Safetensors, LengthsOfTheHeaderAreChecked) {
  for (const uint64_t length : {uint64_t(3), uint64_t(1) << 20, UINT64_MAX, UINT64_MAX - 7})
    EXPECT_EQ(parse(fileOf("{}", 0, length)).status().code(), Code::InvalidFile) << length;
  EXPECT_TRUE(parse(fileOf("{}", 0)).isOk());
  EXPECT_EQ(parse(fileOf(std::string(1 << 20, '['), 0)).status().code(), Code::InvalidFile);
}

TEST(Safetensors, DamagedBytesNeverReachOutsideTheFile) {
  const std::vector<SafetensorsEntry> entries = {{"a", DType::F32, {2}}, {"b", DType::U8, {3}}};
  const std::string file = *safetensorsHeader(entries, {{"k", "v"}}) + std::string(11, 'x');
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = file;
    for (unsigned n = 1 + random() % 3; n-- > 0;)
      damaged[random() % damaged.size()] = char(random());
    const auto read = parse(damaged);
    if (!read.isOk())
      continue;
    for (const SafetensorsTensor &tensor : read->tensors()) {
      const auto *const begin = reinterpret_cast<const char *>(tensor.bytes.data());
      EXPECT_GE(begin, damaged.data());
      EXPECT_LE(begin + tensor.bytes.size(), damaged.data() + damaged.size());
    }
  }
}

/// Python's own package reads what is written here, and writes what is read here.
TEST(Safetensors, RoundTripThroughPython) {
  const std::string python = sourceDir().string() + "/.venv/bin/python";
  if (!std::filesystem::exists(python))
    GTEST_SKIP() << "there is no .venv";
  const TempFolder folder;
  const std::vector<SafetensorsEntry> entries = {{"a", DType::F32, {2}}, {"b", DType::I64, {1}}};
  const float floats[] = {1.5F, -2};
  const int64_t ints[] = {7};
  std::string file = *safetensorsHeader(entries, {{"format", "pt"}});
  file.append(reinterpret_cast<const char *>(ints), sizeof(ints));
  file.append(reinterpret_cast<const char *>(floats), sizeof(floats));
  writeFile(folder / "in", file);
  writeFile(folder / "test.py", R"(import sys
from safetensors import safe_open
from safetensors.numpy import save_file
with safe_open(sys.argv[1], framework="np") as f:
    assert f.metadata() == {"format": "pt"}, f.metadata()
    tensors = {name: f.get_tensor(name) for name in f.keys()}
assert tensors["a"].tolist() == [1.5, -2.0] and tensors["b"].tolist() == [7]
save_file({"c": tensors["a"] * 2, "d": tensors["b"]}, sys.argv[2])
)");
  const std::string command = "'" + python + "' '" + (folder / "test.py") + "' '" +
                              (folder / "in") + "' '" + (folder / "out") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto read = SafetensorsFile::open(folder / "out");
  ASSERT_TRUE(read.isOk()) << read.status().message();
  const float doubled[] = {3, -4};
  ASSERT_TRUE(read->find("c"));
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bytes of the file
  EXPECT_EQ(std::memcmp(read->find("c")->bytes.data(), doubled, sizeof(doubled)), 0);
  EXPECT_EQ(read->find("d")->dtype, DType::I64);
}

} // namespace
} // namespace cgc::test

// Tests of .npy files: written files are read back, and malformed files are rejected.
#include "tools/cgc/io/npy.h"

#include "tests/temp_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

namespace cgc::tool {
namespace {

class Npy : public testing::Test {
protected:
  void write(const std::string &header, const std::string &data, char major = 1) {
    std::string bytes("\x93NUMPY", 6);
    bytes += {major, 0};
    bytes += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    if (major > 1)
      bytes += {0, 0};
    std::ofstream(path, std::ios::binary) << bytes << header << data;
  }
  Result<HostTensor> read() { return readNpy(path); }
  void refuses(const std::string &text) {
    const auto tensor = read();
    ASSERT_FALSE(tensor.isOk());
    EXPECT_EQ(tensor.status().code(), Code::InvalidFile);
    EXPECT_NE(tensor.status().message().find(text), std::string::npos) << tensor.status().message();
  }

  test::TempFolder folder;
  std::string path = folder / "x.npy";
};

TEST_F(Npy, RoundTripsEveryType) {
  for (DType dtype : {DType::F32, DType::F16, DType::F64, DType::I64, DType::I32, DType::I16,
                      DType::I8, DType::U8, DType::Bool})
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 4}}) {
      HostTensor tensor = makeTensor("", dtype, shape);
      for (size_t i = 0; i < tensor.bytes.size(); ++i)
        tensor.bytes[i] = static_cast<std::byte>(i % 2);
      const auto bytes = formatNpy(tensor);
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char *>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      const auto again = read();
      ASSERT_TRUE(again.isOk()) << again.status().message();
      EXPECT_EQ(again->dtype, dtype);
      EXPECT_EQ(again->sizes, shape);
      EXPECT_EQ(again->bytes, tensor.bytes);
    }
}

TEST_F(Npy, DataBeginsAtAMultipleOf64) {
  const auto bytes = formatNpy(makeTensor("", DType::U8, {1}));
  EXPECT_EQ((bytes.size() - 1) % 64, 0u);
}

TEST_F(Npy, WritesBf16AsFloat32) {
  const IoTensor input{"x", DType::F32, {64}};
  const HostTensor rounded = convertFloats(randomInput(input, 1), DType::BF16);
  const auto bytes = formatNpy(rounded);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto again = read();
  ASSERT_TRUE(again.isOk());
  EXPECT_EQ(again->dtype, DType::F32);
  EXPECT_EQ(toDoubles(*again), toDoubles(rounded));
}

TEST_F(Npy, TransposesFortranOrder) {
  // [[0, 1, 2], [3, 4, 5]] in column-major order.
  write("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n",
        std::string("\0\3\1\4\2\5", 6));
  const auto tensor = read();
  ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
  EXPECT_EQ(toDoubles(*tensor), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST_F(Npy, ReadsVersions2And3) {
  for (char version : {2, 3}) {
    write("{'shape': (2,), 'descr': '<i2', 'fortran_order': False}", std::string("\1\0\2\0", 4),
          version);
    const auto tensor = read();
    ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
    EXPECT_EQ(toDoubles(*tensor), (std::vector<double>{1, 2}));
  }
}

TEST_F(Npy, RefusesWhatItCannotRead) {
  write("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", "abcd");
  refuses(">f4");
  write("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", "abcd");
  refuses("record");
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "abcd");
  refuses("needs 8 bytes");
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8), }\n", "abcd");
  refuses("too many");
  for (const char *header :
       {"", "{", "{}", "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} rest",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1"}) {
    write(header, "abcd");
    refuses("malformed");
  }
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", "abcd", 9);
  refuses("version 9");
  std::string sizes;
  for (int i = 0; i < 65; ++i)
    sizes += "1,";
  write("{'descr': '|u1', 'fortran_order': False, 'shape': (" + sizes + ")}", "a");
  refuses("has 65 dimensions");
}

} // namespace
} // namespace cgc::tool

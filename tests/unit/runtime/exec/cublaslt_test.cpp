// CublasLt without a GPU: serialized algorithms, and messages when the library cannot be opened.
#include "runtime/exec/cublaslt.h"
#include "tests/op_library_files.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

FrozenAlgorithm sample() {
  FrozenAlgorithm f{130100, 132, "NVIDIA H200", {}};
  for (size_t i = 0; i < f.algorithm.size(); ++i)
    f.algorithm[i] = std::byte(255 - i);
  return f;
}

TEST(FrozenAlgorithm, RoundTrips) {
  const std::vector<std::byte> bytes = encode(sample());
  EXPECT_EQ(bytes.size(), 8 + 4 + 64 + 11);
  EXPECT_EQ(decodeAlgorithm(bytes), sample());
}

TEST(FrozenAlgorithm, OtherBytesAreRefused) {
  std::vector<std::byte> bytes = encode(sample());
  EXPECT_FALSE(decodeAlgorithm({}));
  EXPECT_FALSE(decodeAlgorithm(std::span(bytes).first(75)));
  EXPECT_TRUE(decodeAlgorithm(std::span(bytes).first(76))); // An empty name.
  bytes.back() = std::byte{0x1b};
  EXPECT_FALSE(decodeAlgorithm(bytes));
  bytes.assign(76 + 257, std::byte{'x'});
  EXPECT_FALSE(decodeAlgorithm(bytes));
}

TEST(CublasLt, AMissingLibraryIsNamedWithItsPath) {
  const TempFolder folder;
  const Status status = CublasLt::open(folder.path()).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("the plan calls cuBLASLt"), HasSubstr(folder / "libcublasLt.so.13"),
                    HasSubstr("LD_LIBRARY_PATH")));
}

TEST(CublasLt, AnotherLibraryIsRefused) {
  const Status status = CublasLt::open("libm.so.6").status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("has no function cublasLt"), HasSubstr("needs cuBLASLt 13")));
}

/// Binds a GEMM whose x, weight, residual and result begin at `addresses`, with a frozen algorithm
/// that requires an alignment of `alignment` bytes. Returns the note.
std::string noteOfBinding(uint64_t alignment, const std::array<uintptr_t, 4> &addresses) {
  const auto library = CublasLt::open(builtLibrary("libcgc_test_cublaslt.so"));
  EXPECT_TRUE(library.isOk()) << library.status().message();
  Gpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.multiprocessors = 132;
  EXPECT_TRUE((*library)->initialize(gpu).isOk());
  std::vector<TensorRef> tensors(addresses.size(),
                                 dense(BufferKind::Arena, 0, 0, DType::F16, {8, 8}));
  tensors.push_back(dense(BufferKind::Arena, 0, 256, DType::U8, {16}));
  const GemmCall call{
      .x = id(0), .weight = id(1), .residual = id(2), .d = id(3), .workspace = id(4)};
  FrozenAlgorithm frozen{130000, 132, "NVIDIA H200", {}};
  std::memcpy(frozen.algorithm.data(), &alignment, sizeof(alignment));
  const auto address = [&](TensorId tensor) {
    const auto index = uint32_t(tensor);
    return reinterpret_cast<void *>(index < addresses.size() ? addresses[index] : 8192);
  };
  std::string note;
  const auto bound = (*library)->bind({call, tensors, address}, encode(frozen), note);
  EXPECT_TRUE(bound.isOk()) << bound.status().message();
  return note;
}

TEST(CublasLt, AFrozenAlgorithmIsUsedOnlyForAlignedOperands) {
  for (size_t operand = 0; operand < 4; ++operand) {
    SCOPED_TRACE(operand);
    const auto noteOf = [&](uint64_t alignment, uintptr_t offset) {
      std::array<uintptr_t, 4> addresses;
      addresses.fill(4096);
      addresses[operand] += offset;
      return noteOfBinding(alignment, addresses);
    };
    EXPECT_EQ(noteOf(16, 0), "");
    EXPECT_EQ(noteOf(16, 16), "");
    EXPECT_EQ(noteOf(1, 2), "");
    EXPECT_THAT(noteOf(16, 8), HasSubstr("cuBLASLt refuses an algorithm"));
    EXPECT_THAT(noteOf(256, 128), HasSubstr("cuBLASLt refuses an algorithm"));
  }
}

/// The build has no such library, but if the loader finds one, it must be the right one.
TEST(CublasLt, IsFoundByTheLoader) {
  const Result<std::unique_ptr<CublasLt>> library = CublasLt::open("");
  if (!library.isOk())
    GTEST_SKIP() << library.status().message();
  EXPECT_TRUE(*library);
}

} // namespace
} // namespace cgc::test

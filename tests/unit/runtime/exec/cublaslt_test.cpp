// CublasLt without a GPU: serialized algorithms, and messages when the library cannot be opened.
#include "runtime/exec/cublaslt.h"
#include "tests/op_library_files.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

/// Binds a GEMM whose x begins at `address`, with a frozen algorithm that requires an alignment of
/// `alignment` bytes. Returns the note.
std::string noteOfBinding(uint64_t alignment, uintptr_t address) {
  const auto library = CublasLt::open(builtLibrary("libcgc_test_cublaslt.so"));
  EXPECT_TRUE(library.isOk()) << library.status().message();
  Gpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.multiprocessors = 132;
  EXPECT_TRUE((*library)->initialize(gpu).isOk());
  const std::vector<TensorRef> tensors = {dense(BufferKind::Arena, 0, 0, DType::F16, {8, 8}),
                                          dense(BufferKind::Arena, 0, 256, DType::U8, {16})};
  const GemmCall call{.x = id(0), .weight = id(0), .d = id(0), .workspace = id(1)};
  FrozenAlgorithm frozen{130000, 132, "NVIDIA H200", {}};
  std::memcpy(frozen.algorithm.data(), &alignment, sizeof(alignment));
  std::string note;
  const auto bound =
      (*library)->bind({call, tensors, [&](TensorId) { return reinterpret_cast<void *>(address); }},
                       encode(frozen), note);
  EXPECT_TRUE(bound.isOk()) << bound.status().message();
  return note;
}

TEST(CublasLt, AFrozenAlgorithmIsUsedOnlyForAlignedOperands) {
  EXPECT_EQ(noteOfBinding(16, 4096), "");
  EXPECT_EQ(noteOfBinding(16, 4096 + 16), "");
  EXPECT_EQ(noteOfBinding(1, 4096 + 2), "");
  EXPECT_THAT(noteOfBinding(16, 4096 + 8), HasSubstr("cuBLASLt refuses an algorithm"));
  EXPECT_THAT(noteOfBinding(256, 4096 + 128), HasSubstr("cuBLASLt refuses an algorithm"));
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

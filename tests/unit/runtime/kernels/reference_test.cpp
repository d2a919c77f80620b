// libcgc_reference: it has a reference of every kernel. The references' conversions of 16-bit
// floats equal CUDA's. tests/conformance compares results.
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/reference_elements.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <dlfcn.h>

#include <map>
#include <random>
#include <string>

namespace cgc::test {
namespace {

/// The references by name, from the built library.
std::map<std::string, uint64_t> abiHashes() {
  std::map<std::string, uint64_t> hashes;
  void *const library =
      dlopen((buildDir() / "lib/libcgc_reference.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  const auto entry = reinterpret_cast<ReferencesEntry>(dlsym(library, kReferenceSymbol));
  const References *references = entry(kReferenceAbi);
  for (const Reference &reference : std::span(references->data, references->size)) {
    EXPECT_TRUE(reference.run) << reference.name;
    EXPECT_TRUE(hashes.emplace(reference.name, reference.abiHash).second) << reference.name;
  }
  EXPECT_FALSE(entry(kReferenceAbi + 1));
  return hashes;
}

TEST(References, ExistForEveryKernelAndCuBlasLt) {
  const std::map<std::string, uint64_t> hashes = abiHashes();
  EXPECT_EQ(hashes.size(), kernels().size() + 1);
  for (const Kernel &kernel : kernels()) {
    const auto found = hashes.find(std::string(kernel.name));
    ASSERT_NE(found, hashes.end()) << kernel.name;
    EXPECT_EQ(found->second, kernel.abiHash) << kernel.name;
  }
  EXPECT_TRUE(hashes.contains("cublaslt.matmul"));
}

/// Both representations, so that NaN equals NaN and -0 differs from 0.
testing::AssertionResult same(float a, float b) {
  if (std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " is not " << b;
}

TEST(References, DecodeEvery16BitFloatAsCudaDoes) {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const auto b = uint16_t(bits);
    ASSERT_TRUE(same(reference::toFloat(reference::F16{b}), __half2float(__ushort_as_half(b))))
        << bits;
    ASSERT_TRUE(
        same(reference::toFloat(reference::BF16{b}), __bfloat162float(__ushort_as_bfloat16(b))))
        << bits;
  }
}

TEST(References, RoundTo16BitsAsCudaDoes) {
  std::mt19937 random(1);
  const auto check = [](uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    ASSERT_EQ(reference::fromFloat<reference::F16>(value).bits,
              __half_as_ushort(__float2half_rn(value)))
        << value;
    ASSERT_EQ(reference::fromFloat<reference::BF16>(value).bits,
              __bfloat16_as_ushort(__float2bfloat16_rn(value)))
        << value;
  };
  for (uint32_t i = 0; i < 1 << 21; ++i)
    check(uint32_t(random()));
  // Each f16 and bf16, the middle between it and the next one, and the neighbors of the middle.
  for (uint32_t high = 0; high < 1 << 16; ++high)
    for (const uint32_t low : {0x0u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(high << 16 | low);
}

} // namespace
} // namespace cgc::test

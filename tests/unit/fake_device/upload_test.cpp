// upload(): chunks that reuse staging memory, on the fake GPU.
#include "runtime/exec/upload.h"
#include "tests/unit/fake_device/fake_cuda_test.h"

#include <cstring>

namespace cgc::test {
namespace {

class Uploads : public FakeCuda {};

/// Each thread has two staging buffers of 4 MiB, and there are at most four threads. A copy from
/// pinned memory reads it only when it runs.
TEST_F(Uploads, AStagingBufferIsFilledAgainOnlyAfterItsCopy) {
  fake_cuda::reset({.deviceBytes = 64 << 20});
  std::vector<std::byte> bytes((36 << 20) + 3);
  constexpr size_t kMiB = 1 << 20;
  for (size_t at = 0; at < bytes.size(); at += kMiB) // Each differs from the others.
    std::memset(&bytes[at], int(at / kMiB) + 1, std::min(kMiB, bytes.size() - at));
  void *buffer = nullptr;
  ASSERT_EQ(cudaMalloc(&buffer, bytes.size()), cudaSuccess);
  const UploadPiece piece{bytes, 0};
  const Status status =
      upload({&piece, 1}, static_cast<std::byte *>(buffer), bytes.size(), /*device=*/0);
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_EQ(std::memcmp(buffer, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

} // namespace
} // namespace cgc::test

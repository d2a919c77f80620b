// Fuzz target: .npy files. An array that was read is written as a file that reads back equal.
#include "tools/cgc/io/npy.h"
#include "runtime/plan/plan.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

using namespace cgc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz::MemoryFile file(data, size);
  const Result<tool::HostTensor> tensor = tool::readNpy(file.path());
  if (!tensor.isOk()) {
    CGC_REQUIRE(tensor.status().code() == Code::InvalidFile, tensor.status().message());
    return 0;
  }
  CGC_REQUIRE(tensorBytes(tensor->dtype, tensor->sizes) == tensor->bytes.size(), "bytes");
  const std::vector<std::byte> written = tool::formatNpy(*tensor);
  const fuzz::MemoryFile again(reinterpret_cast<const uint8_t *>(written.data()), written.size());
  const Result<tool::HostTensor> back = tool::readNpy(again.path());
  CGC_REQUIRE(back.isOk(), back.status().message());
  CGC_REQUIRE(back->dtype == tensor->dtype && back->sizes == tensor->sizes &&
                  back->bytes == tensor->bytes,
              "the written array reads back different");
  return 0;
}

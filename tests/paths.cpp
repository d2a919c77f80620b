// Paths: as CMake has configured them.
#include "tests/paths.h"

namespace cgc::test {

std::filesystem::path sourceDir() {
  return CGC_SOURCE_DIR;
}

std::filesystem::path buildDir() {
  return CGC_BINARY_DIR;
}

std::filesystem::path torchDir() {
  return CGC_TORCH_DIR;
}

} // namespace cgc::test

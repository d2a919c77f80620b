// Version: formats the versions of cgc and of the libraries linked into it.
#include "tools/cgc/cli/version.h"

#include "tools/cgc/cli/revision.h"

#include "llvm/Config/llvm-config.h"

#include <fmt/format.h>

namespace cgc::tool {

std::string versionText() {
  const std::string revision = gitRevision();
  return fmt::format("cgc {}{}, LLVM {}, CUDA runtime {}", CGC_VERSION,
                     revision.empty() ? "" : " (" + revision + ")", LLVM_VERSION_STRING,
                     CGC_CUDA_VERSION);
}

} // namespace cgc::tool

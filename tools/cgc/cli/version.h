// Version: the versions of cgc and of the libraries that it was built with.
#pragma once

#include <string>

namespace cgc::tool {

/// For example "cgc 0.1.0 (abc1234), LLVM 19.1.7, CUDA runtime 13.0".
std::string versionText();

} // namespace cgc::tool

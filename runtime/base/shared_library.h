// Shared libraries that a user names: opened after a look at whether the file is whole.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc {

/// dlopen of a file, whose symbols stay with it; it is never closed. InvalidFile with the cause if
/// it is missing, cut short (loading it would end the process by SIGBUS) or refused by the loader.
Result<void *> openSharedLibrary(const std::string &path);

} // namespace cgc

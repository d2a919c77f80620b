// Guard: the only place that catches exceptions, since LibTorch throws and cgc returns Status.
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace cgc::frontend {

/// Runs `fn` and returns its Status. An exception becomes `code` with the cause in one line;
/// out-of-memory errors and device faults get their own codes.
Status guarded(Code code, llvm::function_ref<Status()> fn);

} // namespace cgc::frontend

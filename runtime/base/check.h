// CGC_CHECK: an assertion that release builds keep, for invariants whose violation would give wrong
// results.
#pragma once

#include "runtime/base/export.h"

namespace cgc {

/// Writes the condition and its place to stderr and aborts. The backend of CGC_CHECK.
[[noreturn]] CGC_API void failCheck(const char *condition, const char *file, int line) noexcept;

} // namespace cgc

/// Aborts with the condition, file and line unless `condition` holds: `CGC_CHECK(i < n && "why")`.
/// A violation is a bug of cgc. For input and the environment there are Diagnostics and Status. Use
/// assert where the check would cost time in an accessor.
#define CGC_CHECK(condition)                                                                       \
  (static_cast<bool>(condition) ? void() : ::cgc::failCheck(#condition, __FILE__, __LINE__))

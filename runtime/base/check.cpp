// CGC_CHECK: how a violated invariant ends the process.
#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace cgc {

void failCheck(const char *condition, const char *file, int line) noexcept {
  std::fprintf(stderr,
               "cgc: internal error: %s:%d: CGC_CHECK(%s) failed; this is a bug of cgc: please "
               "report it with the model or plan\n",
               file, line, condition);
  std::abort();
}

} // namespace cgc

# Writes FILE, the C++ source with the git revision of SOURCE_DIR, if it has changed: a build step, so that the
# program names the commit it was built from and not the one CMake last ran at. Empty outside a clone.
set(revision "")
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git describe --always --dirty WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${FILE} CONTENT [[
#include "tools/cgc/cli/revision.h"

const char *cgc::tool::gitRevision() {
  return "@revision@";
}
]] @ONLY)

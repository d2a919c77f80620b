# Writes FILE, a C++ source with the git revision of SOURCE_DIR, if the revision has changed. This is a build step, so
# that the program names the commit that it was built from, not the commit at which CMake last ran. The revision is
# empty outside a clone.
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

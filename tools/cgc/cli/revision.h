// Revision: the commit that this program was built from; cmake/write_revision.cmake writes its
// source at each build.
#pragma once

namespace cgc::tool {

/// The output of `git describe --always --dirty`; empty if the program was built outside a clone.
const char *gitRevision();

} // namespace cgc::tool

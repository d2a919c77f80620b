// Revision: the commit that this program was built from. cmake/write_revision.cmake writes the
// source at each build.
#pragma once

namespace cgc::tool {

/// As `git describe --always --dirty` says it; empty if it was built outside a clone.
const char *gitRevision();

} // namespace cgc::tool

// Candidate paths of the libraries that the runtime opens.
#pragma once

#include "runtime/base/status.h"

#include <filesystem>
#include <string>
#include <vector>

namespace cgc {

/// The candidate files for `library`, in the order to try. If `path` is given: `path` itself, or
/// the library in the folder `path`. Otherwise: the folder of this code and the folder of the
/// program, each followed by its ../lib.
std::vector<std::filesystem::path> libraryPlaces(const std::string &library,
                                                 const std::string &path);

/// Opens `library` by dlopen, and never closes it: at `path`, or, if that is empty, where the
/// dynamic loader searches, else at libraryPlaces(). Device if it cannot be opened: "libx.so cannot
/// be opened (looked for ...: cause)", without a next step.
Result<void *> openLibrary(const std::string &library, const std::string &path);

/// The paths as "a, b, c", for messages.
std::string joinPaths(const std::vector<std::filesystem::path> &paths);

} // namespace cgc

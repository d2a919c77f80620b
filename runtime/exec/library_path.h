// Where a library that the runtime opens may lie.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cgc {

/// The files that `library` may be, best first: at `path` (the library, or a folder that holds it),
/// or, if empty, beside this code and beside the program, each also in ../lib.
std::vector<std::filesystem::path> libraryPlaces(const std::string &library,
                                                 const std::string &path);

/// "a, b, c"
std::string joinPaths(const std::vector<std::filesystem::path> &paths);

} // namespace cgc

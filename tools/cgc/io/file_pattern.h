// File patterns: names of files with one `*`, which stands for the part that differs: `in/*.npy`.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// Whether `path` holds a `*`.
bool isPattern(std::string_view path);

/// Usage unless there is one `*`, and in the name of the file, not in a folder's.
Status checkPattern(std::string_view path);

/// The path with `stem` in place of its `*`.
std::string fillPattern(std::string_view pattern, std::string_view stem);

/// The stems of the files that there are, sorted. InvalidFile if there is none or the folder cannot
/// be read.
Result<std::vector<std::string>> matchPattern(const std::string &pattern);

} // namespace cgc::tool

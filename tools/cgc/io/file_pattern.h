// File patterns: file names with one `*`, such as `in/*.npy`. The text that replaces the `*` is the
// stem.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// Whether `path` contains a `*`.
bool isPattern(std::string_view path);

/// Usage unless `path` contains exactly one `*`, in the name of the file and not of a folder.
Status checkPattern(std::string_view path);

/// `pattern` with `stem` in place of its `*`.
std::string fillPattern(std::string_view pattern, std::string_view stem);

/// The stems of the files that match `pattern`, sorted. InvalidFile if no file matches or the
/// folder cannot be read.
Result<std::vector<std::string>> matchPattern(const std::string &pattern);

} // namespace cgc::tool

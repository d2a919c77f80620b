// Console: results to stdout, log to stderr, and how a failure becomes an exit status.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// The exit status of the program for each code; docs/cli.md is the specification.
int exitStatus(Code code);

/// Sends the log to stderr as `cgc: level: text`.
void setUpLog();
/// Leaves warnings and errors in the log alone: --quiet.
void setQuiet();
bool isQuiet();
/// One line of the log, from any thread.
void logInfo(const std::string &text);
void logWarning(const std::string &text);
void logError(const std::string &text);

/// Writes to stdout and flushes. Failed if stdout is full or closed.
Status printOut(std::string_view text);
/// Whether what is written to the file `path` goes where printOut() writes: /dev/stdout, say.
bool isStandardOutput(const std::string &path);
/// One JSON object and a line break, with the version of cgc's JSON and the `kind` of object in
/// front.
std::string jsonText(std::string_view kind, const nlohmann::ordered_json &fields);
/// Prints jsonText.
Status printJson(std::string_view kind, const nlohmann::ordered_json &fields);
/// Logs a failure; with `json` it is also printed, as an object of the kind "error".
void reportError(const Status &status, bool json);
/// The same with more `fields`.
void reportError(const Status &status, bool json, const nlohmann::ordered_json &fields);

/// A check for options that name a file or a folder to write: why `name` is none, or nothing.
std::string requireName(const std::string &name);

/// Rows of cells as aligned columns with two spaces between; the first row is the heading.
std::string formatTable(const std::vector<std::vector<std::string>> &rows);
/// "1.5 MB" (powers of 1000), exact below 1000 bytes.
std::string formatBytes(uint64_t bytes);
/// "f32[1,3,224,224]"
std::string formatShape(std::string_view dtype, std::span<const int64_t> sizes);
/// "a, b, c", or "none".
std::string joinNames(std::span<const std::string> names);

} // namespace cgc::tool

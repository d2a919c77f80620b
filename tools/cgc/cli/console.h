// Console: prints results to stdout and the log to stderr, and maps a failure to an exit status.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// The exit status of the program for `code`, as docs/cli.md specifies.
int exitStatus(Code code);

/// Sends the log to stderr as `cgc: level: text`. Call once, before anything is logged.
void setUpLog();
/// Keeps only warnings and errors in the log, for --quiet.
void setQuiet();
bool isQuiet();
/// Logs one line. Safe to call from any thread.
void logInfo(const std::string &text);
void logWarning(const std::string &text);
void logError(const std::string &text);

/// Writes to stdout and flushes. Failed if stdout is full or closed.
Status printOut(std::string_view text);
/// Whether a write to the file `path` goes to stdout, as with /dev/stdout.
bool isStandardOutput(const std::string &path);
/// One JSON object and a line break: the version of cgc's JSON, the `kind` of the object, then
/// `fields`.
std::string jsonText(std::string_view kind, const nlohmann::ordered_json &fields);
/// Prints jsonText(kind, fields) to stdout.
Status printJson(std::string_view kind, const nlohmann::ordered_json &fields);
/// Logs a failure. With `json`, also prints it as an object of the kind "error".
void reportError(const Status &status, bool json);
/// As above; appends `fields` to the JSON object.
void reportError(const Status &status, bool json, const nlohmann::ordered_json &fields);

/// A CLI11 check for options that name a file or folder to write: the error text if `name` is
/// empty, else an empty string.
std::string requireName(const std::string &name);

/// Formats rows of cells as aligned columns, two spaces apart. The first row is the heading.
std::string formatTable(const std::vector<std::vector<std::string>> &rows);
/// For example "1.5 MB" (powers of 1000). Exact below 1000 bytes.
std::string formatBytes(uint64_t bytes);
/// For example "f32[1,3,224,224]".
std::string formatShape(std::string_view dtype, std::span<const int64_t> sizes);
/// For example "a, b, c"; "none" if there are no names.
std::string joinNames(std::span<const std::string> names);

} // namespace cgc::tool

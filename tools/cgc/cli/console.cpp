// Console: implements stdout, the log, tables and exit statuses.
#include "tools/cgc/cli/console.h"

#include "runtime/base/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

namespace cgc::tool {

int exitStatus(Code code) {
  switch (code) {
  case Code::Ok:
    return 0;
  case Code::Failed:
  case Code::Busy:
    return 1;
  case Code::Usage:
    return 2;
  case Code::InvalidFile:
    return 3;
  case Code::Unsupported:
    return 4;
  case Code::Mismatch:
    return 5;
  case Code::Device:
    return 6;
  case Code::OutOfMemory:
    return 7;
  }
  return 1;
}

void setUpLog() {
  auto logger = spdlog::stderr_color_mt("cgc");
  logger->set_pattern("%n: %^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
}

void setQuiet() {
  spdlog::set_level(spdlog::level::warn);
}
bool isQuiet() {
  return !spdlog::should_log(spdlog::level::info);
}

void logInfo(const std::string &text) {
  spdlog::info("{}", text);
}
void logWarning(const std::string &text) {
  spdlog::warn("{}", text);
}
void logError(const std::string &text) {
  spdlog::error("{}", text);
}

Status printOut(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return Status::ok();
  return Status(Code::Failed,
                fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

bool isStandardOutput(const std::string &path) {
  struct stat file, output;
  return isStream(path) && ::stat(path.c_str(), &file) == 0 &&
         ::fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev &&
         file.st_ino == output.st_ino;
}

std::string jsonText(std::string_view kind, const nlohmann::ordered_json &fields) {
  nlohmann::ordered_json object = {{"version", 1}, {"kind", kind}};
  object.update(fields);
  // Names come from files, so invalid UTF-8 is replaced: the default handler would throw.
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Status printJson(std::string_view kind, const nlohmann::ordered_json &fields) {
  return printOut(jsonText(kind, fields));
}

void reportError(const Status &status, bool json) {
  reportError(status, json, nlohmann::ordered_json::object());
}

void reportError(const Status &status, bool json, const nlohmann::ordered_json &fields) {
  // Rendered diagnostics bring their own "error: " and line break; the log adds both again.
  std::string_view text = status.message();
  if (text.starts_with("error: "))
    text.remove_prefix(std::string_view("error: ").size());
  text = text.substr(0, text.find_last_not_of('\n') + 1);
  logError(std::string(text));
  if (!json)
    return;
  nlohmann::ordered_json object = {{"code", codeName(status.code())}, {"message", text}};
  object.update(fields);
  (void)printJson("error", object);
}

std::string requireName(const std::string &name) {
  return name.empty() ? "the name is empty" : "";
}

std::string formatTable(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths;
  for (const auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto &row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    if (!row.empty())
      text += row.back();
    text += '\n';
  }
  return text;
}

std::string formatBytes(uint64_t bytes) {
  if (bytes < 1000)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char *unit = "";
  for (const char *next : {"kB", "MB", "GB", "TB"}) {
    if (value < 1000)
      break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string formatShape(std::string_view dtype, std::span<const int64_t> sizes) {
  return fmt::format("{}[{}]", dtype, fmt::join(sizes, ","));
}

std::string joinNames(std::span<const std::string> names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

} // namespace cgc::tool

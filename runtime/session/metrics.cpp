// prometheusText: one family of samples for each counter.
#include "runtime/session/metrics.h"

#include <utility>

namespace cgc {
namespace {

/// A label's value: backslash, quote and line feed are escaped.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c == '\n')
      result += "\\n";
    else if (c == '\\' || c == '"')
      (result += '\\') += c;
    else
      result += c;
  return result;
}

class Text final {
public:
  explicit Text(std::string_view name) : session_("session=\"" + escaped(name) + "\"") {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = std::string("cgc_") + std::string(name);
    text_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " +
             std::string(type) + "\n";
  }
  void sample(const std::string &value, std::string_view key = "", std::string_view label = "") {
    text_ += name_ + "{" + session_;
    if (!key.empty())
      text_ += "," + std::string(key) + "=\"" + escaped(label) + "\"";
    text_ += "} " + value + "\n";
  }
  void counter(std::string_view name, std::string_view help, uint64_t value) {
    family(name, "counter", help);
    sample(std::to_string(value));
  }
  std::string take() { return std::move(text_); }

private:
  std::string session_, name_, text_;
};

} // namespace

std::string prometheusText(const SessionStats &stats, const MemoryReport &memory, bool isHealthy,
                           std::string_view name) {
  Text text(name);
  text.counter("requests_total", "Requests, failed ones included.", stats.requests);
  text.family("failures_total", "counter", "Requests that failed, by code.");
  for (size_t code = 1; code < kNumCodes; ++code)
    text.sample(std::to_string(stats.failuresByCode[code]), "code", codeName(Code(code)));
  text.counter("splits_total", "Requests that took more than one run of a bucket.", stats.splits);
  text.counter("bucket_runs_total", "Runs of a bucket.", stats.bucketRuns);
  text.counter("rows_total", "Rows of requests with a batch.", stats.rows);
  text.counter("padded_rows_total", "Rows that were computed and that nobody asked for.",
               stats.paddedRows);
  text.counter("waits_total", "Requests that found no free context.", stats.waits);
  text.family("wait_seconds_total", "counter", "Time of requests in the queue.");
  text.sample(std::to_string(double(stats.waitMicros) * 1e-6));
  text.counter("updates_total", "Plans that were exchanged.", stats.updates);
  text.family("memory_bytes", "gauge", "Memory of the plan that serves requests.");
  for (const auto &[kind, bytes] : {std::pair("weights", memory.weights),
                                    {"arenas", memory.arenas},
                                    {"io", memory.io},
                                    {"graphs", memory.graphs}})
    text.sample(std::to_string(bytes), "kind", kind);
  text.family("healthy", "gauge", "1 unless the session has lost a device.");
  text.sample(isHealthy ? "1" : "0");
  return text.take();
}

} // namespace cgc

// prometheusText: one family of samples for each counter.
#include "runtime/session/metrics.h"

#include <initializer_list>
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

/// Microseconds as seconds. Independent of the locale, which may have a decimal comma.
std::string secondsText(uint64_t micros) {
  const std::string fraction = std::to_string(micros % 1'000'000);
  return std::to_string(micros / 1'000'000) + "." + std::string(6 - fraction.size(), '0') +
         fraction;
}

struct Counter {
  std::string_view name, help;
  uint64_t SessionStats::*member;
};
constexpr Counter kCounters[] = {
#define CGC_SESSION_COUNTER(member, name, help) {#name, help, &SessionStats::member},
#include "runtime/session/counters.def"
};

class Text final {
public:
  explicit Text(std::string_view name) : session_("session=\"" + escaped(name) + "\"") {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = std::string("cgc_") + std::string(name);
    text_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " +
             std::string(type) + "\n";
  }
  using Label = std::pair<std::string_view, std::string_view>;
  void sample(const std::string &value, std::initializer_list<Label> labels = {}) {
    text_ += name_ + "{" + session_;
    for (const auto &[key, label] : labels)
      text_ += "," + std::string(key) + "=\"" + escaped(label) + "\"";
    text_ += "} " + value + "\n";
  }
  std::string take() { return std::move(text_); }

private:
  std::string session_, name_, text_;
};

void addCounter(Text &text, const Counter &counter, const SessionStats &stats) {
  constexpr std::string_view kMicros = "_micros";
  std::string name(counter.name);
  const bool isTime = name.ends_with(kMicros);
  if (isTime)
    name.replace(name.size() - kMicros.size(), kMicros.size(), "_seconds");
  text.family(name + "_total", "counter", counter.help);
  const uint64_t value = stats.*counter.member;
  if (counter.member != &SessionStats::failures)
    return text.sample(isTime ? secondsText(value) : std::to_string(value));
  for (size_t code = 1; code < kNumCodes; ++code)
    text.sample(std::to_string(stats.failuresByCode[code]), {{"code", codeName(Code(code))}});
}

} // namespace

std::string prometheusText(const SessionStats &stats, const MemoryReport &memory, bool isHealthy,
                           std::string_view name) {
  Text text(name);
  for (const Counter &counter : kCounters)
    addCounter(text, counter, stats);
  text.family("bucket_hits_total", "counter", "Runs of each bucket, by entry and inputs.");
  for (const BucketCount &bucket : stats.buckets)
    text.sample(std::to_string(bucket.runs), {{"entry", bucket.entry}, {"inputs", bucket.inputs}});
  text.family("memory_bytes", "gauge", "Memory of the plan that serves requests.");
  for (const auto &[kind, bytes] : {std::pair("weights", memory.weights),
                                    {"arenas", memory.arenas},
                                    {"io", memory.io},
                                    {"graphs", memory.graphs},
                                    {"states", memory.states}})
    text.sample(std::to_string(bytes), {{"kind", kind}});
  text.family("workspace_bytes", "gauge", "The part of the arenas that GEMMs of libraries need.");
  text.sample(std::to_string(memory.workspace));
  text.family("memory_peak_bytes", "gauge", "The most memory since the session was created.");
  text.sample(std::to_string(memory.peak));
  text.family("healthy", "gauge", "1 unless the session has lost a device.");
  text.sample(isHealthy ? "1" : "0");
  return text.take();
}

} // namespace cgc

// load_report: one table of figures, with a column for the load while weights were swapped.
#include "tools/cgc/report/load_report.h"

#include "tools/cgc/cli/console.h"
#include "tools/cgc/report/plan_summary.h"

#include <fmt/format.h>

namespace cgc::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kDefinitions =
    "latency       of the requests that succeeded, in ms: from the call (closed loop) or the "
    "scheduled\n"
    "              arrival (open loop) to the results\n"
    "waits         requests that found no free context; wait is their mean time in the queue, in "
    "ms\n"
    "padded rows   computed, and asked for by nobody; splits: requests that took several buckets\n"
    "backlog       arrived when the time was over, and not begun\n"
    "back-to-back  the same requests again, from one thread, with nothing between them\n"
    "A request is not a run of a bucket: copies, and the choice of buckets, count.";

double perSecond(uint64_t count, double seconds) {
  return seconds > 0 ? double(count) / seconds : 0;
}

uint64_t succeededIn(const LoadFigures &load) {
  return load.requests() - load.failures();
}

double meanWaitMillis(const LoadFigures &load) {
  return load.waits > 0 ? double(load.waitMicros) / 1e3 / double(load.waits) : 0;
}

Json figuresJson(const LoadFigures &load) {
  Json json = {{"seconds", load.seconds},
               {"requests", load.requests()},
               {"failures", load.failures()},
               {"requests_per_s", perSecond(succeededIn(load), load.seconds)},
               {"rows_per_s", perSecond(load.rows, load.seconds)},
               {"latency_ms", nullptr},
               {"waits", load.waits},
               {"wait_s", double(load.waitMicros) / 1e6},
               {"splits", load.splits},
               {"bucket_runs", load.bucketRuns},
               {"padded_rows", load.paddedRows},
               {"backlog", load.backlog}};
  if (succeededIn(load) > 0) {
    json["latency_ms"] = load.latency.json();
    json["latency_ms"]["max"] = load.latency.quantile(1);
  }
  Json codes = Json::object();
  for (size_t code = 1; code < kNumCodes; ++code)
    if (load.failuresByCode[code] > 0)
      codes[std::string(codeName(Code(code)))] = load.failuresByCode[code];
  json["failures_by_code"] = std::move(codes);
  return json;
}

/// p99 while weights are swapped over p99 without; nothing if no request succeeded in one of them.
std::optional<double> p99Ratio(const LoadReport &report) {
  if (!report.swap || succeededIn(report.load) == 0 || succeededIn(report.swap->load) == 0)
    return std::nullopt;
  return report.swap->load.latency.quantile(0.99) / report.load.latency.quantile(0.99);
}

} // namespace

double shareOfBackToBack(const LoadReport &report) {
  const double backToBack = perSecond(report.backToBack.rows, report.backToBack.seconds);
  return backToBack > 0 ? perSecond(report.load.rows, report.load.seconds) / backToBack : 0;
}

Json loadJson(const LoadReport &report) {
  Json kinds = Json::array();
  for (size_t i = 0; i < report.kinds.size(); ++i) {
    const RequestKind &kind = report.kinds[i];
    kinds.push_back({{"entry", kind.entry},
                     {"inputs", describeIo(kind.inputs)},
                     {"rows", kind.rows},
                     {"weight", kind.weight},
                     {"succeeded", report.load.succeeded[i]}});
  }
  Json json = {
      {"plan", report.plan},         {"target", report.target},
      {"executor", report.executor}, {"clients", report.clients},
      {"contexts", report.contexts}, {"devices", report.devices},
      {"tensors", report.tensors},   {"rate", report.rate > 0 ? Json(report.rate) : Json(nullptr)},
      {"mix", std::move(kinds)},     {"load", figuresJson(report.load)},
      {"back_to_back", nullptr},     {"of_back_to_back", nullptr}};
  if (const BackToBack &row = report.backToBack; row.requests > 0) {
    json["back_to_back"] = {{"requests", row.requests},
                            {"requests_per_s", perSecond(row.requests, row.seconds)},
                            {"rows_per_s", perSecond(row.rows, row.seconds)}};
    json["of_back_to_back"] = shareOfBackToBack(report);
  }
  if (report.swap) {
    const auto ratio = p99Ratio(report);
    json["swap"] = {{"plan", report.swap->plan},
                    {"every_s", report.swap->every},
                    {"swaps", report.swap->swaps},
                    {"load", figuresJson(report.swap->load)},
                    {"p99_ratio", ratio ? Json(*ratio) : Json(nullptr)}};
  }
  return json;
}

std::string loadText(const LoadReport &report) {
  std::vector<std::vector<std::string>> kinds = {{"entry", "inputs", "weight", "succeeded"}};
  for (size_t i = 0; i < report.kinds.size(); ++i)
    kinds.push_back({report.kinds[i].entry, describeIo(report.kinds[i].inputs),
                     fmt::format("{:g}", report.kinds[i].weight),
                     std::to_string(report.load.succeeded[i])});
  std::vector<const LoadFigures *> columns = {&report.load};
  std::vector<std::vector<std::string>> rows = {{"figure", "load"}};
  if (report.swap) {
    columns.push_back(&report.swap->load);
    rows[0].push_back(fmt::format("with {} swaps", report.swap->swaps));
  }
  const auto add = [&](const std::string &name, const auto &textOf) {
    std::vector<std::string> row = {name};
    for (const LoadFigures *const load : columns)
      row.push_back(textOf(*load));
    rows.push_back(std::move(row));
  };
  add("requests", [](const LoadFigures &f) { return std::to_string(f.requests()); });
  add("failures", [](const LoadFigures &f) { return std::to_string(f.failures()); });
  add("requests/s", [](const LoadFigures &f) {
    return fmt::format("{:.1f}", perSecond(succeededIn(f), f.seconds));
  });
  add("rows/s",
      [](const LoadFigures &f) { return fmt::format("{:.1f}", perSecond(f.rows, f.seconds)); });
  for (const auto &[name, share] :
       {std::pair("latency p50", 0.5), {"p90", 0.9}, {"p99", 0.99}, {"max", 1.0}})
    add(name, [share](const LoadFigures &f) {
      return succeededIn(f) > 0 ? fmt::format("{:.4f}", f.latency.quantile(share)) : "-";
    });
  add("waits", [](const LoadFigures &f) { return std::to_string(f.waits); });
  add("wait", [](const LoadFigures &f) { return fmt::format("{:.4f}", meanWaitMillis(f)); });
  add("splits", [](const LoadFigures &f) { return std::to_string(f.splits); });
  add("padded rows", [](const LoadFigures &f) { return std::to_string(f.paddedRows); });
  add("backlog", [](const LoadFigures &f) { return std::to_string(f.backlog); });

  std::string text = formatTable(kinds) + "\n" + formatTable(rows) + "\n";
  if (report.backToBack.requests > 0)
    text += fmt::format(
        "back-to-back: {:.1f} requests/s, {:.1f} rows/s; the load has {:.1f} % of its rows/s\n",
        perSecond(report.backToBack.requests, report.backToBack.seconds),
        perSecond(report.backToBack.rows, report.backToBack.seconds),
        100 * shareOfBackToBack(report));
  if (const auto ratio = p99Ratio(report))
    text += fmt::format("p99 with swaps is {:.2f} times p99 without\n", *ratio);
  const std::string loop =
      report.rate > 0 ? fmt::format("open loop at {:g} requests/s", report.rate) : "closed loop";
  return text + fmt::format("\n{} s, {}; clients: {}, contexts: {}, devices: {}, tensors: {}\n{}\n",
                            fmt::format("{:.1f}", report.load.seconds), loop, report.clients,
                            report.contexts, report.devices, report.tensors, kDefinitions);
}

} // namespace cgc::tool

// Capturability: runs the passes that reject ops that cannot be captured, and prints their
// findings.
#include "tools/cgc/report/capturability.h"

#include "passes/pipeline.h"
#include "passes/specialize/specialize.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/specs.h"
#include "tools/cgc/report/offender_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace cgc::tool {

namespace {

/// CUDA graphs are captured for this device.
constexpr DeviceKind kTarget = DeviceKind::Cuda;

/// Adds the errors of one method to the result.
void add(Capturability &result, const std::string &method, const ir::Diagnostics &errors) {
  for (const ir::Diagnostic &error : errors.errors())
    result.offenders.error(error);
  result.methods.push_back({method, !errors.hasErrors()});
}

} // namespace

Result<Capturability> analyzeCapturability(ir::Module &root, const std::vector<InputSpec> &inputs,
                                           const std::vector<std::string> &entries) {
  Capturability result;
  result.hasShapes = !inputs.empty();
  std::vector<driver::BucketSpec> buckets;
  if (result.hasShapes) {
    auto chosen = driver::chooseBuckets(root, inputs, {}, entries);
    if (!chosen.isOk())
      return withOptionsToChange(chosen.status(), "--input or --entry");
    buckets = *std::move(chosen);
  } else {
    for (const std::string &entry : entries)
      if (!root.findGraph(entry))
        return Status(Code::Usage, fmt::format("the model has no method '{}'; it has {}", entry,
                                               driver::describeMethods(root)));
    for (const auto &method : root.graphs())
      if (entries.empty() || std::ranges::count(entries, method->name()) > 0)
        buckets.push_back({method->name(), {}});
  }
  passes::PipelineBuilder builder;
  CGC_ASSIGN_OR_RETURN(const passes::Pipeline pipeline,
                       builder.setPasses("inline,specialize,canonicalize").build());
  passes::PassContext context;
  context.target = kTarget;
  CGC_TRY(pipeline.prepare(root, context));
  for (const driver::BucketSpec &bucket : buckets) {
    const ir::Graph &method = *root.findGraph(bucket.entry);
    ir::Diagnostics errors;
    if (result.hasShapes) {
      context.diagnostics = &errors;
      const Status status =
          pipeline.specialize(method, bucket.entry, driver::typesOf(method, bucket), context)
              .status();
      if (!status.isOk() && status.code() != Code::Unsupported)
        return status;
    } else {
      passes::diagnose(*method.clone(bucket.entry), kTarget, errors);
    }
    add(result, bucket.entry, errors);
  }
  return result;
}

std::string capturabilityText(const Capturability &result) {
  std::string text = result.offenders.render();
  for (const auto &[name, capturable] : result.methods)
    text += fmt::format("{}: {}\n", name, capturable ? "can be captured" : "cannot be captured");
  if (!result.hasShapes)
    text += "Shape-dependent ops are not checked: give shapes with --input.\n";
  return text;
}

nlohmann::ordered_json capturabilityJson(const Capturability &result, const std::string &path) {
  auto methods = nlohmann::ordered_json::array();
  for (const auto &[name, capturable] : result.methods)
    methods.push_back({{"name", name}, {"capturable", capturable}});
  return {{"path", path},
          {"shapes", result.hasShapes},
          {"methods", std::move(methods)},
          {"offenders", offendersJson(result.offenders)}};
}

} // namespace cgc::tool

// cgc compare: compares a plan with LibTorch on the same random inputs.
#include "runtime/exec/bucket_choice.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/list_option.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/cli/specs.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/verbs/group_reference.h"
#include "tools/cgc/verbs/peers.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cgc::tool {

namespace {

/// The limit of the relative L2 distance to LibTorch in full precision.
constexpr double kTolerance = 1e-5;
/// In reduced precision, the limit is this factor times the distance of LibTorch's own run to the
/// fp32 reference, and at most kMostRoundoffs for a converted model.
constexpr double kReducedFactor = 1.2;
/// The largest limit of a converted model in unit roundoffs. Independent errors of n roundings add
/// up to sqrt(n / 3) roundoffs, which is 11 after the 8 roundings in each of 48 layers.
constexpr double kMostRoundoffs = 16;
/// A model in its own precision whose LibTorch run has a larger relative L2 distance to the fp32
/// reference is compared with that run.
constexpr double kMaxReferenceError = 0.1;
/// A comparison is weak if two random inputs change an output by less than this factor times its
/// limit.
constexpr double kMinEffect = 10;
/// The minimum number of elements to compare. Smaller outputs are compared over several inputs:
/// with few elements the ratio is noise.
constexpr uint64_t kElements = 512;

struct CompareFlags {
  std::string plan, model, executor = "graph";
  std::vector<std::string> entries; ///< Empty: all.
  std::vector<std::string> entryGroups;
  int threads = 0;
  std::vector<std::string> opLibraries;
  bool json = false;
};

/// The result for one output of one bucket.
struct Row {
  std::string entry, inputs, output;
  std::vector<int64_t> shape;
  Closeness closeness; ///< Distances to LibTorch's run, which is in fp32 if the plan is reduced.
  double limit = 0;    ///< Limit of the relative L2. 0 for integers and bools, which must be equal.
  bool passed = false;
  std::string degenerate =
      {};                 ///< What the plan's output is and LibTorch's is not; empty if nothing.
  double inputEffect = 0; ///< Relative L2 between the plan's outputs for two random inputs.

  /// Whether a plan that computes something else could also pass. An output that no input changes
  /// is a constant and not weak.
  bool hardlyDependsOnInput() const { return inputEffect > 0 && inputEffect < kMinEffect * limit; }
};

/// Whether the plan computes with any dtype narrower than fp32.
bool isReduced(const PlanData &plan) {
  if (roundsToTf32(plan))
    return true;
  const auto narrow = [](DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; };
  for (const Weight &weight : plan.weights)
    if (narrow(weight.dtype))
      return true;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const TensorRef &tensor : bucket.tensors)
        if (narrow(tensor.dtype))
          return true;
  return false;
}

/// The unit roundoff of the narrowest dtype that the plan computes with.
double roundoffOf(const PlanData &plan) {
  const auto isOf = [](DType dtype) {
    return [dtype](const auto &tensor) { return tensor.dtype == dtype; };
  };
  bool isBf16 = std::ranges::any_of(plan.weights, isOf(DType::BF16));
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      isBf16 = isBf16 || std::ranges::any_of(bucket.tensors, isOf(DType::BF16));
  return isBf16 ? 0x1p-8 : 0x1p-11; // f16 and tf32 have 10 bits of mantissa.
}

bool isFinite(const std::vector<double> &values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

bool isOneValue(const std::vector<double> &values) {
  return std::ranges::all_of(values, [&](double value) { return value == values[0]; });
}

/// What `actual`, the elements of an output in all runs, is and `expected` is not; empty if
/// nothing.
std::string degeneracy(const std::vector<double> &actual, const std::vector<double> &expected) {
  if (!isFinite(expected))
    return {};
  if (!isFinite(actual))
    return "holds NaN or infinities";
  if (actual.empty() || !isOneValue(actual) || isOneValue(expected))
    return {};
  return actual[0] == 0 ? "is zero everywhere" : fmt::format("is {} everywhere", actual[0]);
}

/// Compares one bucket at a time. Borrows all constructor arguments.
class Comparison {
public:
  /// `reference` runs the model in the plan's precision. `truth` runs it in fp32; it is null if the
  /// precision is not reduced.
  Comparison(Runner &runner, frontend::Reference &reference, frontend::Reference *truth)
      : runner_(runner), reference_(reference), truth_(truth),
        most_(kMostRoundoffs * roundoffOf(runner.plan())),
        isConverted_(runner.plan().precision.has_value()) {}

  Status compare(const Entry &entry, size_t index, std::vector<Row> &rows) {
    const Bucket &bucket = entry.buckets[index];
    // The elements of all runs, for each output.
    std::vector<std::vector<double>> actual(bucket.outputs.size()), own = actual, truth = actual;
    std::vector<bool> equal(bucket.outputs.size(), true);
    std::vector<HostTensor> first, second; // The outputs for two different inputs.
    bool hasOwn = true;
    for (size_t run = 0; run < runsOf(bucket); ++run) {
      auto inputs = randomInputs(bucket, run);
      CGC_ASSIGN_OR_RETURN(const auto outputs, runner_.run(entry, index, inputs));
      if (run < 2)
        (run == 0 ? first : second) = outputs;
      append(actual, outputs);
      std::vector<HostTensor> wide;
      if (truth_) {
        CGC_ASSIGN_OR_RETURN(wide, runReference(*truth_, entry, bucket, inputs));
        append(truth, wide);
      }
      auto expected = runReference(reference_, entry, bucket, inputs);
      // LibTorch may refuse what the model does in the plan's precision, such as a number that
      // overflows.
      hasOwn = hasOwn && (expected.isOk() || !isConverted_ || !truth_ ||
                          expected.status().code() != Code::Failed);
      if (hasOwn) {
        CGC_TRY(expected.status());
        append(own, *expected);
      }
      for (size_t i = 0; i < outputs.size(); ++i)
        equal[i] = equal[i] && outputs[i].bytes == (hasOwn ? *expected : wide)[i].bytes;
    }
    if (second.empty()) {
      auto inputs = randomInputs(bucket, 1);
      CGC_ASSIGN_OR_RETURN(second, runner_.run(entry, index, inputs));
    }
    for (size_t i = 0; i < actual.size(); ++i) {
      const bool exact = !isFloating(bucket.outputs[i].dtype);
      const std::vector<double> &expected = truth_ && (!exact || !hasOwn) ? truth[i] : own[i];
      Row row{entry.name,
              describeIo(bucket.inputs),
              bucket.outputs[i].name,
              bucket.outputs[i].sizes,
              compareValues(actual[i], expected),
              exact ? 0 : kTolerance};
      row.inputEffect = compareValues(toDoubles(second[i]), toDoubles(first[i])).relativeL2;
      if (truth_ && !exact)
        setReducedLimit(row, actual[i], hasOwn ? &own[i] : nullptr, expected);
      // A comparison with NaN is false.
      row.passed = exact ? equal[i] : row.closeness.relativeL2 <= row.limit;
      if (!row.passed) {
        row.degenerate = degeneracy(actual[i], expected);
      } else if (!exact && row.inputEffect == 0) {
        CGC_ASSIGN_OR_RETURN(const double effect, effectOfInput(entry, bucket, i));
        if (effect > 2 * row.limit) { // Each side of the difference may be off by the limit.
          row.degenerate = "is the same for two inputs";
          row.passed = false;
        }
      }
      rows.push_back(std::move(row));
    }
    return Status::ok();
  }

private:
  /// Sets the limit of an output of a plan in reduced precision. `own`, which may be null, is
  /// LibTorch's run in that precision.
  void setReducedLimit(Row &row, const std::vector<double> &actual, const std::vector<double> *own,
                       const std::vector<double> &truth) const {
    const double ownL2 =
        own ? compareValues(*own, truth).relativeL2 : std::numeric_limits<double>::quiet_NaN();
    if (!isConverted_ && ownL2 > kMaxReferenceError) {
      // Rounding does not explain the distance: in fp32 the model is a different function.
      row.closeness = compareValues(actual, *own);
      row.limit = kMaxReferenceError;
    } else if (std::isfinite(ownL2)) {
      const double limit = std::max(kTolerance, kReducedFactor * ownL2);
      row.limit = isConverted_ ? std::min(limit, most_) : limit;
    } else { // LibTorch's run overflows, or it refuses the precision.
      row.limit = most_;
    }
  }

  /// The relative L2 between LibTorch's outputs `i` for two random inputs.
  Result<double> effectOfInput(const Entry &entry, const Bucket &bucket, size_t i) {
    std::vector<double> outputs[2];
    for (size_t run : {0, 1}) {
      auto inputs = randomInputs(bucket, run);
      CGC_ASSIGN_OR_RETURN(const auto expected,
                           runReference(truth_ ? *truth_ : reference_, entry, bucket, inputs));
      outputs[run] = toDoubles(expected[i]);
    }
    return compareValues(outputs[1], outputs[0]).relativeL2;
  }

  static std::vector<HostTensor> randomInputs(const Bucket &bucket, size_t run) {
    std::vector<HostTensor> inputs;
    for (const IoTensor &input : bucket.inputs)
      inputs.push_back(randomInput(input, run * bucket.inputs.size() + inputs.size()));
    return inputs;
  }

  /// The number of runs after which the largest output has at least kElements elements in all.
  static size_t runsOf(const Bucket &bucket) {
    uint64_t largest = 1;
    for (const IoTensor &output : bucket.outputs)
      largest = std::max(largest, tensorBytes(output.dtype, output.sizes).value_or(0) /
                                      dtypeSize(output.dtype));
    return (kElements + largest - 1) / largest;
  }

  static void append(std::vector<std::vector<double>> &all,
                     const std::vector<HostTensor> &tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto values = toDoubles(tensors[i]);
      all[i].insert(all[i].end(), values.begin(), values.end());
    }
  }

  /// The outputs of LibTorch. Their number and shapes must be those of the plan; dtypes may be
  /// wider in the fp32 run and in a model that was converted to fp32, which keeps f64.
  Result<std::vector<HostTensor>> runReference(frontend::Reference &reference, const Entry &entry,
                                               const Bucket &bucket,
                                               std::vector<HostTensor> &inputs) {
    std::vector<std::string> names;
    for (const IoTensor &input : bucket.inputs)
      names.push_back(input.name);
    auto outputs = reference.run(entry.name, viewsOf(inputs), names);
    if (!outputs) // The model may take other inputs, or memory may have run out.
      return withThisModel(outputs.status());
    bool same = outputs->size() == bucket.outputs.size();
    for (size_t i = 0; same && i < outputs->size(); ++i)
      same = (*outputs)[i].sizes == bucket.outputs[i].sizes &&
             (&reference == truth_ || (*outputs)[i].dtype == bucket.outputs[i].dtype ||
              (bucket.outputs[i].dtype == DType::F32 && (*outputs)[i].dtype == DType::F64));
    if (!same)
      return Status(Code::Mismatch,
                    fmt::format("entry '{}': the model's outputs differ in number, "
                                "shape or dtype from the plan's ({}); {}",
                                entry.name, describeIo(bucket.outputs), kThisModel));
    return outputs;
  }

  Runner &runner_;
  frontend::Reference &reference_;
  frontend::Reference *truth_;
  double most_;      ///< The largest limit in reduced precision.
  bool isConverted_; ///< Whether --precision converted the model.
};

bool isWanted(const Entry &entry, const CompareFlags &options) {
  return options.entries.empty() || std::ranges::count(options.entries, entry.name) > 0;
}

/// The rows of all outputs, and the executor that ran the plan.
struct Report {
  std::vector<Row> rows;
  std::string executor;
};

Result<Report> compareAll(const CompareFlags &options) {
  CGC_ASSIGN_OR_RETURN(const auto groups, parseEntryGroups(options.entryGroups));
  CGC_TRY(MappedFile::open(options.model).status());
  // Problems of the plan are found before LibTorch is opened.
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan, Plan::Verify::Metadata));
  if (std::ranges::find(plan.data().states, StateRole::Parameter, &State::role) !=
      plan.data().states.end())
    return Status(Code::Usage, fmt::format("'{}' is a training plan; compare its steps with those "
                                           "of LibTorch by cgc train --against",
                                           options.plan));
  const ExecutorKind executor = executorOf(options.executor);
  CGC_TRY(checkThreads(plan.data(), options.threads, executor));
  for (const std::string &entry : options.entries)
    CGC_TRY(findEntry(plan.data(), entry).status());
  for (const driver::EntryGroup &group : groups)
    CGC_TRY(findEntry(plan.data(), group.name).status());
  const bool reduced = isReduced(plan.data());
  // LibTorch runs where the plan runs.
  const DeviceKind device =
      executor == ExecutorKind::Reference ? DeviceKind::Cpu : plan.data().target;

  // LibTorch runs the model with the conversion of --precision applied.
  const std::optional<DType> precision = plan.data().precision;
  size_t phases = reduced ? 3 : 2;
  for (const Entry &entry : plan.data().entries)
    if (isWanted(entry, options))
      phases += entry.buckets.size();
  Progress progress(phases);
  progress.begin("load " + options.plan);
  CGC_ASSIGN_OR_RETURN(
      const auto runner,
      Runner::create(options.plan, options.opLibraries,
                     {.executor = executor, .threads = options.threads, .poisonArena = true},
                     /*separateBuffers=*/false,
                     hasHostCalls(plan.data()) ? options.model : std::string()));
  progress.begin("load " + options.model);
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  CGC_ASSIGN_OR_RETURN(
      const auto reference,
      frontend->loadReference(options.model, device, precision, roundsToTf32(plan.data())));
  std::unique_ptr<frontend::Reference> truth;
  if (reduced) {
    progress.begin("load " + options.model + " in fp32");
    CGC_ASSIGN_OR_RETURN(truth, frontend->loadReference(options.model, device, DType::F32, false));
  }
  CGC_ASSIGN_OR_RETURN(const GroupSignatures signatures,
                       GroupSignatures::create(*frontend, options.model, groups));
  GroupReference own(*reference, signatures);
  std::optional<GroupReference> wide;
  if (truth)
    wide.emplace(*truth, signatures);
  Comparison comparison(*runner, own, wide ? &*wide : nullptr);
  const bool onlyStream = plan.data().target == DeviceKind::Cpu;
  Report report{{}, onlyStream ? "stream" : options.executor};
  for (const Entry &entry : runner->plan().entries) {
    if (!isWanted(entry, options))
      continue;
    for (size_t i = 0; i < entry.buckets.size(); ++i) {
      progress.begin(fmt::format("compare {} {}", entry.name, describeIo(entry.buckets[i].inputs)));
      CGC_TRY(comparison.compare(entry, i, report.rows));
    }
  }
  return report;
}

Status printRows(const CompareFlags &options, const Report &report) {
  const std::vector<Row> &rows = report.rows;
  if (options.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    bool passed = true;
    for (const Row &row : rows) {
      passed = passed && row.passed;
      list.push_back({{"entry", row.entry},
                      {"inputs", row.inputs},
                      {"output", row.output},
                      {"shape", row.shape},
                      {"max_abs", row.closeness.maxAbs},
                      {"relative_l2", row.closeness.relativeL2},
                      {"cosine", row.closeness.cosine},
                      {"limit", row.limit},
                      {"passed", row.passed},
                      {"degenerate", row.degenerate},
                      {"input_effect", row.inputEffect},
                      {"hardly_depends_on_input", row.hardlyDependsOnInput()}});
    }
    return printJson("compare", {{"plan", options.plan},
                                 {"model", options.model},
                                 {"executor", report.executor},
                                 {"passed", passed},
                                 {"outputs", std::move(list)}});
  }
  std::vector<std::vector<std::string>> table = {{"entry", "output", "max abs", "rel L2", "limit",
                                                  "two inputs", "cosine", "result", "inputs"}};
  bool isWeak = false;
  for (const Row &row : rows) {
    isWeak = isWeak || row.hardlyDependsOnInput();
    table.push_back({row.entry, row.output, fmt::format("{:.2e}", row.closeness.maxAbs),
                     fmt::format("{:.2e}", row.closeness.relativeL2),
                     fmt::format("{:.2e}", row.limit),
                     row.inputEffect == 0 ? "constant" : fmt::format("{:.2e}", row.inputEffect),
                     fmt::format("{:.7f}", row.closeness.cosine),
                     row.hardlyDependsOnInput() ? (row.passed ? "ok, weak" : "FAILED, weak")
                                                : (row.passed ? "ok" : "FAILED"),
                     row.inputs});
  }
  return printOut(formatTable(table) +
                  (isWeak ? fmt::format("\nweak: two random inputs change this output by less "
                                        "than {:g} times the limit, so that another computation "
                                        "could pass, too.\nThe weights may be random: compare with "
                                        "a trained checkpoint.\n",
                                        kMinEffect)
                          : ""));
}

/// Sets `printed` once the rows are on stdout.
Status compare(const CompareFlags &options, bool &printed) {
  CGC_ASSIGN_OR_RETURN(const Report report, compareAll(options));
  CGC_TRY(printRows(options, report));
  printed = true;
  const std::vector<Row> &rows = report.rows;
  const auto failed = std::ranges::count(rows, false, &Row::passed);
  if (failed == 0)
    return Status::ok();
  std::string why = kThisModel;
  const auto degenerate =
      std::ranges::find_if(rows, [](const Row &row) { return !row.degenerate.empty(); });
  if (degenerate != rows.end())
    why = fmt::format("output '{}' of entry '{}' {}, unlike LibTorch's in full precision: choose "
                      "another --precision, or report a fault of cgc",
                      degenerate->output, degenerate->entry, degenerate->degenerate);
  else if (std::ranges::any_of( // The distance is NaN if an output holds NaN or infinities.
               rows, [](const Row &row) { return std::isnan(row.closeness.relativeL2); }))
    why = "an output of LibTorch holds NaN or infinities, which nothing can be compared with";
  return Status(Code::Mismatch, fmt::format("{} of {} outputs are past the tolerance; {}", failed,
                                            rows.size(), why));
}

} // namespace

Verb addCompare(CLI::App &app) {
  auto options = std::make_shared<CompareFlags>();
  CLI::App *command =
      app.add_subcommand("compare", "Compare a plan with LibTorch on random inputs");
  command->add_option("plan", options->plan, "The plan")->type_name("PLAN")->required();
  command->add_option("model", options->model, "The TorchScript file that it was compiled from")
      ->type_name("MODEL.pt")
      ->required();
  addListOption(*command, "--entry", options->entries, "Compare just these entries [all]")
      ->type_name("NAME,...");
  command
      ->add_option("--entry-group", options->entryGroups,
                   "An entry group of the plan, as for compile; once for each group")
      ->type_name("NAME=ENTRY+ENTRY[+...]")
      ->allow_extra_args(false);
  addExecutorOption(*command, options->executor);
  addThreadsOption(*command, options->threads);
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Both run on the plan's target, or on the CPU with --executor "
                  "reference.\nIn fp32 the relative L2 distance may be 1e-5. In fp16 and bf16 "
                  "the distance\nto an fp32 run may be 1.2 times that of LibTorch's own run. NaN "
                  "never passes.\nIntegers and bools must be equal. Of a plan compiled with "
                  "--precision, LibTorch's own run is of\nthe model converted likewise.\n\n"
                  "Examples:\n"
                  "  cgc compare model.cgplan model.pt\n"
                  "  cgc compare model.cgplan model.pt --entry encode_text --json\n"
                  "  cgc compare model.cgplan model.pt --executor reference");
  // Failed rows are a result, so no JSON error object follows them.
  auto printed = std::make_shared<bool>(false);
  return {command, [=] { return compare(*options, *printed); },
          [=] { return options->json && !*printed; }};
}

} // namespace cgc::tool

// cgc diff: shows the ops that differ between two files of IR text, or two plans.
#include "runtime/base/file.h"
#include "runtime/plan/plan_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/diff/diff_lists.h"
#include "tools/cgc/io/file_kind.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

struct DiffFlags {
  std::string before, after;
  bool json = false;
};

Result<DiffLists> readLists(const std::string &path, FileKind kind) {
  if (kind == FileKind::Plan) {
    CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(path, Plan::Verify::Metadata));
    return diffListsOf(plan.data());
  }
  CGC_ASSIGN_OR_RETURN(const std::string text, readIrText(path));
  CGC_ASSIGN_OR_RETURN(const auto module, parseIrText(text, path));
  return diffListsOf(*module);
}

/// A fact that differs. A side that lacks it is empty.
struct FactPair {
  std::string name;
  std::optional<std::string> before, after;
};

std::vector<FactPair> differingFacts(const DiffLists &before, const DiffLists &after) {
  std::map<std::string, FactPair> pairs;
  for (const auto &[name, value] : before.facts)
    pairs[name].before = value;
  for (const auto &[name, value] : after.facts)
    pairs[name].after = value;
  std::vector<FactPair> differing;
  for (auto &[name, pair] : pairs)
    if (pair.before != pair.after)
      differing.push_back({name, pair.before, pair.after});
  return differing;
}

/// Two corresponding lists. A side that lacks the list has no title and no ops.
struct ListPair {
  std::optional<std::string> beforeTitle, afterTitle;
  std::vector<DiffOp> before, after;
  OpDiff diff = {};
};

std::vector<ListPair> differingLists(const DiffLists &before, const DiffLists &after) {
  std::map<std::string, ListPair> pairs;
  for (const auto &[title, ops] : before.lists) {
    pairs[title].beforeTitle = title;
    pairs[title].before = ops;
  }
  // Two single graphs correspond whatever their names, as in dumps of two buckets.
  const bool isOne = before.lists.size() == 1 && after.lists.size() == 1;
  for (const auto &[title, ops] : after.lists) {
    ListPair &pair = pairs[isOne ? before.lists.begin()->first : title];
    pair.afterTitle = title;
    pair.after = ops;
  }
  std::vector<ListPair> differing;
  for (auto &[title, pair] : pairs) {
    pair.diff = diffOps(pair.before, pair.after);
    if (!pair.diff.differences.empty() || !pair.beforeTitle || !pair.afterTitle)
      differing.push_back(std::move(pair));
  }
  return differing;
}

constexpr const char *kKindNames[] = {"removed", "added", "changed"};

std::string factText(const FactPair &fact) {
  if (!fact.after)
    return fmt::format("- {}: {}\n", fact.name, *fact.before);
  if (!fact.before)
    return fmt::format("+ {}: {}\n", fact.name, *fact.after);
  return fmt::format("~ {}: {}\n> {}: {}\n", fact.name, *fact.before, fact.name, *fact.after);
}

/// The differences under a heading: `-` and `+`, and for a changed op `~` with the old text, then
/// `>` with the new text.
std::string listText(const ListPair &pair) {
  const auto &[beforeTitle, afterTitle, before, after, diff] = pair;
  if (!afterTitle)
    return fmt::format("- {}, {} ops\n", *beforeTitle, before.size());
  if (!beforeTitle)
    return fmt::format("+ {}, {} ops\n", *afterTitle, after.size());
  size_t counts[std::size(kKindNames)] = {};
  std::string lines;
  std::map<std::string, std::pair<size_t, size_t>> ops; // Removed and added ops by name.
  for (const OpDifference &difference : diff.differences) {
    ++counts[difference.kind];
    switch (difference.kind) {
    case OpDifference::Removed:
      lines += "- " + before[difference.before].text + "\n";
      ++ops[before[difference.before].op].first;
      break;
    case OpDifference::Added:
      lines += "+ " + after[difference.after].text + "\n";
      ++ops[after[difference.after].op].second;
      break;
    case OpDifference::Changed:
      lines += "~ " + before[difference.before].text + "\n> " + after[difference.after].text + "\n";
      break;
    }
  }
  std::vector<std::vector<std::string>> table = {{"op", "removed", "added"}};
  for (const auto &[op, count] : ops)
    table.push_back({op, std::to_string(count.first), std::to_string(count.second)});
  return fmt::format(
      "{}: {} removed, {} added, {} changed, {} equal\n{}{}\n",
      beforeTitle == afterTitle ? *beforeTitle : fmt::format("{} -> {}", *beforeTitle, *afterTitle),
      counts[OpDifference::Removed], counts[OpDifference::Added], counts[OpDifference::Changed],
      diff.equal, lines, table.size() > 1 ? "\n" + formatTable(table) : "");
}

std::string diffText(const std::vector<FactPair> &facts, const std::vector<ListPair> &lists) {
  std::string text;
  for (const FactPair &fact : facts)
    text += factText(fact);
  if (!facts.empty())
    text += "\n";
  for (const ListPair &pair : lists)
    text += listText(pair);
  return text.empty() ? "no difference\n" : text;
}

Json optionalJson(const std::optional<std::string> &text) {
  return text ? Json(*text) : Json();
}

Json opJson(const DiffOp &op) {
  return {{"op", op.op}, {"module", op.path}, {"text", op.text}};
}

Json listJson(const ListPair &pair) {
  Json differences = Json::array();
  for (const auto &[kind, before, after] : pair.diff.differences)
    differences.push_back(
        {{"kind", kKindNames[kind]},
         {"before", kind == OpDifference::Added ? Json() : opJson(pair.before[before])},
         {"after", kind == OpDifference::Removed ? Json() : opJson(pair.after[after])}});
  return {{"before", optionalJson(pair.beforeTitle)},
          {"after", optionalJson(pair.afterTitle)},
          {"equal", pair.diff.equal},
          {"differences", std::move(differences)}};
}

Json diffJson(const DiffFlags &options, const std::vector<FactPair> &facts,
              const std::vector<ListPair> &lists) {
  Json factList = Json::array(), listList = Json::array();
  for (const FactPair &fact : facts)
    factList.push_back({{"name", fact.name},
                        {"before", optionalJson(fact.before)},
                        {"after", optionalJson(fact.after)}});
  for (const ListPair &pair : lists)
    listList.push_back(listJson(pair));
  return {{"before", options.before},
          {"after", options.after},
          {"facts", std::move(factList)},
          {"lists", std::move(listList)}};
}

/// Sets `printed` once the difference is on stdout.
Status diff(const DiffFlags &options, bool &printed) {
  const std::string use = "cgc diff compares two files of IR text, or two plans";
  CGC_ASSIGN_OR_RETURN(const FileKind kind, kindOf(options.before, use));
  CGC_ASSIGN_OR_RETURN(const FileKind otherKind, kindOf(options.after, use));
  for (const auto &[path, k] : {std::pair(&options.before, kind), {&options.after, otherKind}})
    if (k == FileKind::TorchScript || k == FileKind::Exported)
      return Status(Code::InvalidFile,
                    fmt::format("'{}' is {}; {}", *path, describeForeignFile(*path), use));
  if (kind != otherKind)
    return Status(Code::Usage, fmt::format("'{}' and '{}' are of two kinds; {}", options.before,
                                           options.after, use));
  CGC_ASSIGN_OR_RETURN(const DiffLists before, readLists(options.before, kind));
  CGC_ASSIGN_OR_RETURN(const DiffLists after, readLists(options.after, kind));
  const auto facts = differingFacts(before, after);
  const auto lists = differingLists(before, after);
  CGC_TRY(options.json ? printJson("diff", diffJson(options, facts, lists))
                       : printOut(diffText(facts, lists)));
  printed = true;
  if (facts.empty() && lists.empty())
    return Status::ok();
  return Status(Code::Mismatch, fmt::format("'{}' and '{}' differ", options.before, options.after));
}

} // namespace

Verb addDiff(CLI::App &app) {
  auto options = std::make_shared<DiffFlags>();
  CLI::App *command =
      app.add_subcommand("diff", "Show the ops that differ between two IR files or two plans");
  command->add_option("before", options->before, "IR text or a plan")->type_name("A")->required();
  command->add_option("after", options->after, "Another of the same kind")
      ->type_name("B")
      ->required();
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Ops correspond by what they do and in which module; names of values do not "
                  "matter.\n"
                  "-: only in A; +: only in B; ~ and >: in A and in B, changed. Exit status 5 if "
                  "something differs.\n\n"
                  "Examples:\n"
                  "  cgc diff model.cgir model.cgir\n"
                  "  cgc diff model.cgplan model.cgplan --json");
  // A difference is a result, so no JSON error object follows it.
  auto printed = std::make_shared<bool>(false);
  return {command, [=] { return diff(*options, *printed); },
          [=] { return options->json && !*printed; }};
}

} // namespace cgc::tool

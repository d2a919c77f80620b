// cgc diff: what became of the ops between two files of IR text, or two plans.
#include "runtime/plan/plan_file.h"
#include "tools/cgc/console.h"
#include "tools/cgc/diff_lists.h"
#include "tools/cgc/file_kind.h"
#include "tools/cgc/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <set>

namespace cgc::tool {

namespace {

struct Options {
  std::string before, after;
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

/// `-`, `+` and `~` (changed: what it was, and in the next line what it is) and a heading; empty if
/// nothing differs.
std::string diffText(const std::string &title, const std::vector<DiffOp> &before,
                     const std::vector<DiffOp> &after) {
  const OpDiff diff = diffOps(before, after);
  size_t counts[3] = {};
  std::string lines;
  std::map<std::string, std::pair<size_t, size_t>> ops; // How many of each that differs.
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
  if (lines.empty())
    return "";
  std::vector<std::vector<std::string>> table = {{"op", "removed", "added"}};
  for (const auto &[op, count] : ops)
    table.push_back({op, std::to_string(count.first), std::to_string(count.second)});
  return fmt::format("{}: {} removed, {} added, {} changed, {} equal\n{}{}\n", title,
                     counts[OpDifference::Removed], counts[OpDifference::Added],
                     counts[OpDifference::Changed], diff.equal, lines,
                     table.size() > 1 ? "\n" + formatTable(table) : "");
}

std::string diffFacts(const DiffLists &before, const DiffLists &after) {
  std::string lines;
  std::set<std::string> names;
  for (const auto *facts : {&before.facts, &after.facts})
    for (const auto &[name, value] : *facts)
      names.insert(name);
  for (const std::string &name : names) {
    const auto was = before.facts.find(name), is = after.facts.find(name);
    if (is == after.facts.end())
      lines += fmt::format("- {}: {}\n", name, was->second);
    else if (was == before.facts.end())
      lines += fmt::format("+ {}: {}\n", name, is->second);
    else if (was->second != is->second)
      lines += fmt::format("~ {}: {}\n> {}: {}\n", name, was->second, name, is->second);
  }
  return lines.empty() ? "" : lines + "\n";
}

std::string diffText(const DiffLists &before, const DiffLists &after) {
  std::string text = diffFacts(before, after);
  std::set<std::string> titles;
  for (const auto *lists : {&before.lists, &after.lists})
    for (const auto &[title, ops] : *lists)
      titles.insert(title);
  // One graph against one graph, whatever they are called: dumps of two buckets.
  if (before.lists.size() == 1 && after.lists.size() == 1 && titles.size() == 2)
    return text + diffText(fmt::format("{} -> {}", before.lists.begin()->first,
                                       after.lists.begin()->first),
                           before.lists.begin()->second, after.lists.begin()->second);
  for (const std::string &title : titles) {
    const auto was = before.lists.find(title), is = after.lists.find(title);
    if (is == after.lists.end())
      text += fmt::format("- {}, {} ops\n", title, was->second.size());
    else if (was == before.lists.end())
      text += fmt::format("+ {}, {} ops\n", title, is->second.size());
    else
      text += diffText(title, was->second, is->second);
  }
  return text;
}

Status diff(const Options &options) {
  const std::string use = "cgc diff compares two files of IR text, or two plans";
  CGC_ASSIGN_OR_RETURN(const FileKind kind, kindOf(options.before, use));
  CGC_ASSIGN_OR_RETURN(const FileKind otherKind, kindOf(options.after, use));
  for (const auto &[path, k] : {std::pair(&options.before, kind), {&options.after, otherKind}})
    if (k == FileKind::TorchScript)
      return Status(Code::InvalidFile, fmt::format("'{}' is a TorchScript module; {}", *path, use));
  if (kind != otherKind)
    return Status(Code::Usage, fmt::format("'{}' and '{}' are of two kinds; {}", options.before,
                                           options.after, use));
  CGC_ASSIGN_OR_RETURN(const DiffLists before, readLists(options.before, kind));
  CGC_ASSIGN_OR_RETURN(const DiffLists after, readLists(options.after, kind));
  const std::string text = diffText(before, after);
  if (text.empty())
    return printOut("no difference\n");
  CGC_TRY(printOut(text));
  return Status(Code::Mismatch, fmt::format("'{}' and '{}' differ", options.before, options.after));
}

} // namespace

Verb addDiff(CLI::App &app) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      app.add_subcommand("diff", "Show the ops that differ between two IR files or two plans");
  command->add_option("before", options->before, "IR text or a plan")->type_name("A")->required();
  command->add_option("after", options->after, "Another of the same kind")
      ->type_name("B")
      ->required();
  command->footer("Ops correspond by what they do and in which module; names of values do not "
                  "matter.\n"
                  "-: only in A; +: only in B; ~ and >: in A and in B, changed. Exit status 5 if "
                  "something differs.\n\n"
                  "Examples:\n"
                  "  cgc diff model.cgir model.cgir\n"
                  "  cgc diff model.cgplan model.cgplan");
  return {command, [options] { return diff(*options); }};
}

} // namespace cgc::tool

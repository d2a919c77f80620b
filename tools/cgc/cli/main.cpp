// cgc: the command-line tool. Parses arguments, runs one verb, and turns its Status into an exit
// status.
#include "support/did_you_mean.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/signals.h"
#include "tools/cgc/cli/version.h"
#include "tools/cgc/verbs/verbs.h"

#include "llvm/ADT/STLExtras.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <new>

namespace {

using namespace cgc;

/// "there is no option '--frobnicate'" with the nearest option name, if an argument of the chosen
/// verb looks like an option and is not one; else an empty string. CLI11 itself may report a
/// missing argument instead.
std::string describeUnknownOption(const CLI::App &app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty())
    return "";
  std::vector<std::string> names;
  for (const CLI::Option *option : chosen.front()->get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  for (const std::string &argument : app.remaining(/*recurse=*/true))
    if (argument.size() > 1 && argument.starts_with('-'))
      return fmt::format("there is no option '{}'{}", argument,
                         didYouMean(llvm::StringRef(argument).split('=').first,
                                    std::vector<llvm::StringRef>(names.begin(), names.end())));
  return "";
}

/// "-o,--output is given twice; give it once" if an option of the chosen verb takes one value and
/// has more; else an empty string. CLI11 itself would report that "At Most 1" is required.
std::string describeRepeatedOption(const CLI::App &app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty())
    return "";
  for (const CLI::Option *option : chosen.front()->get_options())
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      return fmt::format("{} is given {}; give it once",
                         option->get_name(/*positional=*/false, /*all_options=*/true),
                         option->count() == 2 ? "twice" : fmt::format("{} times", option->count()));
  return "";
}

/// Reports a usage error that CLI11 found and returns the exit status. CLI11 reports --help and
/// --version the same way; these are results.
int reportParse(const CLI::App &app, const CLI::ParseError &error, const std::string &unknownVerb,
                bool json) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream text;
    app.exit(error, text, text);
    const Status status = tool::printOut(text.str());
    if (!status.isOk())
      tool::reportError(status, /*json=*/false);
    return tool::exitStatus(status.code());
  }
  const auto chosen = app.get_subcommands();
  std::string message = unknownVerb.empty() ? describeUnknownOption(app) : unknownVerb;
  if (message.empty() &&
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch))
    message = describeRepeatedOption(app);
  tool::reportError(
      Status(Code::Usage,
             fmt::format("{}; see cgc {}--help", message.empty() ? error.what() : message,
                         chosen.empty() ? "" : chosen.front()->get_name() + " ")),
      json);
  return tool::exitStatus(Code::Usage);
}

/// "there is no verb 'compil'; did you mean 'compile'?" if the first argument is not a verb; else
/// an empty string. CLI11 itself would only report that a subcommand is missing.
std::string describeUnknownVerb(const std::string &first, llvm::ArrayRef<tool::Verb> verbs) {
  std::vector<std::string> names;
  for (const tool::Verb &verb : verbs)
    names.push_back(verb.command->get_name());
  if (first.starts_with('-') || llvm::is_contained(names, first))
    return "";
  const std::string nearest =
      didYouMean(first, std::vector<llvm::StringRef>(names.begin(), names.end()));
  return fmt::format("there is no verb '{}'{}", first,
                     nearest.empty() ? "; the verbs are " + tool::joinNames(names) : nearest);
}

Status runVerb(const tool::Verb &verb) {
  try {
    return verb.run();
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "out of host memory; compile fewer or smaller buckets, or "
                                     "free memory and try again");
  } catch (const std::exception &error) {
    return Status(Code::Failed, fmt::format("unexpected error: {}", error.what()));
  }
}

int report(const tool::Verb &verb, const Status &status) {
  if (!status.isOk())
    tool::reportError(status, verb.wantsJson(),
                      verb.failureFields ? verb.failureFields() : nlohmann::ordered_json::object());
  return tool::exitStatus(status.code());
}

} // namespace

int main(int argc, char **argv) {
  tool::setUpLog();
  tool::handleSignals();
  CLI::App app(
      "Compiles TorchScript OpenCLIP modules into launch plans and replays them as CUDA graphs.",
      "cgc");
  app.set_version_flag("--version", tool::versionText());
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  app.footer("Examples:\n"
             "  cgc compile model.pt -o model.cgplan --input 'image=f32[1,3,224,224]' --input "
             "'text=i64[1,77]'\n"
             "  cgc run model.cgplan --entry encode_text --input text=random:0 --output text.npy\n"
             "  cgc compare model.cgplan model.pt\n\n"
             "Exit status: 0 ok, 1 failed, 2 usage, 3 bad input file, 4 unsupported model,\n"
             "5 comparison failed, 6 device, 7 out of memory.");
  const tool::Verb verbs[] = {
#define CGC_VERB(function) tool::function(app),
#include "tools/cgc/verbs/verbs.def"
  };
  for (const tool::Verb &verb : verbs)
    verb.command->add_flag_callback(
        "--quiet", tool::setQuiet,
        "Print only warnings and errors on stderr: no progress, no notes");
  if (argc < 2) {
    fmt::print(stderr, "{}", app.help());
    return tool::exitStatus(Code::Usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // CLI11 stops at the error, so --json after it is searched for here.
    const bool json = std::count(argv + 1, argv + argc, std::string_view("--json")) > 0;
    return reportParse(app, error, describeUnknownVerb(argv[1], verbs), json);
  }
  for (const tool::Verb &verb : verbs)
    if (verb.command->parsed())
      return report(verb, runVerb(verb));
  return tool::exitStatus(Code::Usage);
}

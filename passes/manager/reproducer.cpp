// Reproducer: header comments before IR text.
#include "passes/manager/reproducer.h"

#include "passes/manager/pass_manager.h"
#include "runtime/base/write_file.h"

#include "llvm/ADT/StringExtras.h"

#include <filesystem>
#include <fstream>

namespace cgc::passes {
namespace {

constexpr llvm::StringLiteral kTitle = "; cgc reproducer; run it: cgc opt --run-reproducer FILE\n";
constexpr llvm::StringLiteral kPipeline = "; pipeline: ", kTarget = "; target: ",
                              kProducer = "; producer: ", kPlugin = "; pass plug-in: ";

/// "; pass plug-in: HASH PATH"
std::string pluginLine(const UsedPlugin &plugin) {
  return (kPlugin + llvm::utohexstr(plugin.hash, /*LowerCase=*/true, 16) + " " + plugin.path + "\n")
      .str();
}

std::optional<UsedPlugin> parsePlugin(llvm::StringRef text) {
  auto [hash, path] = text.split(' ');
  UsedPlugin plugin{path.str()};
  if (path.empty() || hash.getAsInteger(16, plugin.hash))
    return std::nullopt;
  return plugin;
}

/// Prefixes every line with `;`, since a comment ends with its line.
std::string commented(llvm::StringRef text) {
  std::string comments;
  llvm::SmallVector<llvm::StringRef> lines;
  text.rtrim('\n').split(lines, '\n');
  for (llvm::StringRef line : lines)
    comments += ";   " + line.str() + "\n";
  return comments;
}

struct State {
  std::string text; ///< Reproducer of the running pass.
  Status written;
  std::string refused; ///< Reproducer of the first Unsupported failure; any other failure takes
                       ///< precedence.
  bool failed = false; ///< A pass failed other than with Unsupported.
  bool began = false;
};

/// Returns true if `path` may be overwritten: it does not exist, or holds a reproducer.
bool isReplaceable(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
    return true;
  std::string begin(kTitle.size(), '\0');
  return std::filesystem::is_regular_file(path, ignored) &&
         std::ifstream(path, std::ios::binary).read(begin.data(), begin.size()) && begin == kTitle;
}

} // namespace

Result<PassCallbacks> writeReproducer(const std::string &path, const RunOrigin &origin) {
  if (!isReplaceable(path))
    return Status(Code::Usage, "'" + path +
                                   "' is no reproducer, and would be overwritten; choose another "
                                   "file for --crash-reproducer");
  auto state = std::make_shared<State>();
  std::string head = kTarget.str() + std::string(deviceName(origin.target)) + "\n" +
                     kProducer.str() + origin.producer + "\n";
  for (const UsedPlugin &plugin : origin.plugins)
    head += pluginLine(plugin);
  PassCallbacks callbacks;
  callbacks.before = [=](const PassRun &run) {
    if (state->failed)
      return;
    std::error_code ignored;
    if (!std::exchange(state->began, true))
      std::filesystem::remove(path, ignored); // Left by an earlier run.
    state->text = kTitle.str() + kPipeline.str() + run.manager->toString(run.position) + "\n" +
                  head + standaloneText(run);
    state->written = writeFile(path, state->text);
  };
  callbacks.after = [=](const PassRun &, Changed) { return state->written; };
  callbacks.failed = [=](const PassRun &run, const Status &status) {
    const bool isRefusal = status.code() == Code::Unsupported;
    if (state->failed || (isRefusal && !state->refused.empty()))
      return;
    const size_t ir = kTitle.size();
    state->text.insert(ir, "; pass '" + std::string(run.pass) + "' failed:\n" +
                               commented(status.message()));
    if (isRefusal)
      state->refused = state->text;
    state->failed = !isRefusal;
    // If this write fails, the text written before the pass ran stays.
    state->written = writeFile(path, state->text);
  };
  callbacks.finish = [=] {
    std::error_code ignored;
    if (state->began && !state->failed && state->refused.empty())
      std::filesystem::remove(path, ignored);
    else if (state->began && !state->failed) // Passes of another entry have run since.
      state->written = writeFile(path, state->refused);
  };
  return callbacks;
}

Result<Reproducer> parseReproducer(llvm::StringRef text, const std::string &fileName) {
  if (!text.starts_with(kTitle))
    return Status(Code::InvalidFile, "'" + fileName +
                                         "' is no reproducer: its first line is not '" +
                                         kTitle.rtrim('\n').str() +
                                         "'; cgc compile and cgc opt write one with "
                                         "--crash-reproducer");
  Reproducer reproducer;
  bool hasPipeline = false, hasTarget = false;
  for (text = text.drop_front(kTitle.size()); text.starts_with(";");) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.rtrim('\r');
    if (line.consume_front(kPipeline)) {
      reproducer.pipeline = line.str();
      hasPipeline = true;
    } else if (line.consume_front(kTarget)) {
      const auto target = parseDevice(line.str());
      if (!target)
        return Status(Code::InvalidFile, "'" + fileName + "': no target '" + line.str() + "'");
      reproducer.origin.target = *target;
      hasTarget = true;
    } else if (line.consume_front(kProducer)) {
      reproducer.origin.producer = line.str();
    } else if (line.consume_front(kPlugin)) {
      auto plugin = parsePlugin(line);
      if (!plugin)
        return Status(Code::InvalidFile,
                      "'" + fileName + "': expected a hash and a path, got '" + line.str() + "'");
      reproducer.origin.plugins.push_back(*std::move(plugin));
    }
  }
  if (!hasPipeline || !hasTarget)
    return Status(Code::InvalidFile, "'" + fileName + "' is a reproducer without a line '" +
                                         (hasPipeline ? kTarget : kPipeline).str() + "...'");
  return reproducer;
}

} // namespace cgc::passes

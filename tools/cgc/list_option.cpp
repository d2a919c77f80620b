// List options: splits at commas itself, because CLI11 drops what is empty between them.
#include "tools/cgc/list_option.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace cgc::tool {

namespace {

/// Calls `add` with each value; it says whether that is one.
template <class Add>
CLI::Option *addList(CLI::App &command, const std::string &name, const std::string &description,
                     const std::string &expected, Add add) {
  return command
      .add_option_function<std::vector<std::string>>(
          name,
          [=](const std::vector<std::string> &texts) {
            for (const std::string &text : texts) {
              llvm::SmallVector<llvm::StringRef> parts;
              llvm::StringRef(text).split(parts, ',');
              for (llvm::StringRef part : parts)
                if (part.empty() || !add(part))
                  throw CLI::ValidationError(
                      name, fmt::format("expected {} with commas between them, got '{}'", expected,
                                        text));
            }
          },
          description)
      ->allow_extra_args(false);
}

} // namespace

CLI::Option *addListOption(CLI::App &command, const std::string &name,
                           std::vector<std::string> &items, const std::string &description) {
  return addList(command, name, description, "names", [&items](llvm::StringRef part) {
    items.push_back(part.str());
    return true;
  });
}

CLI::Option *addListOption(CLI::App &command, const std::string &name, std::vector<int64_t> &items,
                           const std::string &description) {
  return addList(command, name, description, fmt::format("integers from 1 to {}", kMaxBatch),
                 [&items](llvm::StringRef part) {
                   return !part.getAsInteger(10, items.emplace_back()) && items.back() >= 1 &&
                          items.back() <= kMaxBatch;
                 });
}

} // namespace cgc::tool

// List options: splits at commas itself, because CLI11 drops what is empty between them.
#include "tools/cgc/list_option.h"

#include "llvm/ADT/STLExtras.h"
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
                 [name, &items](llvm::StringRef part) {
                   int64_t size = 0;
                   if (part.getAsInteger(10, size) || size < 1 || size > kMaxBatch)
                     return false;
                   if (llvm::is_contained(items, size))
                     throw CLI::ValidationError(
                         name, fmt::format("{} is there twice; give it once", size));
                   items.push_back(size);
                   return true;
                 });
}

} // namespace cgc::tool

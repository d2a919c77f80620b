// List options: splits at commas itself, because CLI11 drops empty items.
#include "tools/cgc/cli/list_option.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <optional>

namespace cgc::tool {

namespace {

/// `parse` converts the text of one item to its value, or returns nothing if the text is invalid.
template <class T, class Parse>
CLI::Option *addList(CLI::App &command, const std::string &name, std::vector<T> &items,
                     const std::string &description, const std::string &expected, Parse parse) {
  return command
      .add_option_function<std::vector<std::string>>(
          name,
          [=, &items](const std::vector<std::string> &texts) {
            for (const std::string &text : texts) {
              llvm::SmallVector<llvm::StringRef> parts;
              llvm::StringRef(text).split(parts, ',');
              for (llvm::StringRef part : parts) {
                const std::optional<T> item = part.empty() ? std::nullopt : parse(part);
                if (!item)
                  throw CLI::ValidationError(
                      name, fmt::format("expected {} with commas between them, got '{}'", expected,
                                        text));
                if (llvm::is_contained(items, *item))
                  throw CLI::ValidationError(name,
                                             fmt::format("{} is given twice; give it once", *item));
                items.push_back(*item);
              }
            }
          },
          description)
      ->allow_extra_args(false);
}

std::string sizesText() {
  return fmt::format("integers from 1 to {}", kMaxListedBatch);
}

std::optional<int64_t> parseSize(llvm::StringRef part) {
  int64_t size = 0;
  const bool ok = !part.getAsInteger(10, size) && size >= 1 && size <= kMaxListedBatch;
  return ok ? std::optional(size) : std::nullopt;
}

} // namespace

CLI::Option *addListOption(CLI::App &command, const std::string &name,
                           std::vector<std::string> &items, const std::string &description) {
  return addList(command, name, items, description, "names",
                 [](llvm::StringRef part) { return std::optional(part.str()); });
}

CLI::Option *addListOption(CLI::App &command, const std::string &name, std::vector<int64_t> &items,
                           const std::string &description) {
  return addList(command, name, items, description, sizesText(), parseSize);
}

CLI::Option *addBatchesOption(CLI::App &command, const std::string &name,
                              std::vector<int64_t> &items, const std::string &description) {
  return addList(command, name, items, description, sizesText() + " or auto alone",
                 [&items](llvm::StringRef part) -> std::optional<int64_t> {
                   if (llvm::is_contained(items, kAutoBatch) || (part == "auto" && !items.empty()))
                     return std::nullopt;
                   return part == "auto" ? kAutoBatch : parseSize(part);
                 });
}

} // namespace cgc::tool

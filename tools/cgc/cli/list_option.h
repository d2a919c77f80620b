// List options: command-line options that take a list, as `--batch 1,4`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cgc::tool {

/// The largest value of --batch.
inline constexpr int64_t kMaxListedBatch = int64_t(1) << 30;
/// The value `auto` of --batch.
inline constexpr int64_t kAutoBatch = 0;

/// Adds an option that takes names separated by commas and may be given again for more names. An
/// empty name or a duplicate is a usage error. `items` must outlive `command`.
CLI::Option *addListOption(CLI::App &command, const std::string &name,
                           std::vector<std::string> &items, const std::string &description);
/// Adds an option that takes sizes of dimension 0: integers from 1 to kMaxListedBatch.
CLI::Option *addListOption(CLI::App &command, const std::string &name, std::vector<int64_t> &items,
                           const std::string &description);
/// Adds such an option that takes `auto`, too, as kAutoBatch and the only item.
CLI::Option *addBatchesOption(CLI::App &command, const std::string &name,
                              std::vector<int64_t> &items, const std::string &description);

} // namespace cgc::tool

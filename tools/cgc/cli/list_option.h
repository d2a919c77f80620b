// Options that take a list: `--batch 1,4`, `--entry encode_image,encode_text`.
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
inline constexpr int64_t kMaxBatch = int64_t(1) << 30;

/// Adds an option with names between commas; given again, it takes more of them. An empty name and
/// one that is given twice are usage errors. `items` must outlive `command`.
CLI::Option *addListOption(CLI::App &command, const std::string &name,
                           std::vector<std::string> &items, const std::string &description);
/// The same for sizes of dimension 0: integers from 1 to kMaxBatch.
CLI::Option *addListOption(CLI::App &command, const std::string &name, std::vector<int64_t> &items,
                           const std::string &description);

} // namespace cgc::tool

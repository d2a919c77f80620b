// Specs: the syntax of --input, for compile (`image=f32[1,3,224,224]`) and for run
// (`image=@x.npy`).
#pragma once

#include "driver/buckets.h"
#include "driver/entry_groups.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

using driver::InputSpec;

/// The source of an input's values: .npy files or random numbers.
struct InputSource {
  std::string name;
  std::string file;  ///< An .npy file, or a pattern that matches several; empty: random values.
  uint64_t seed = 0; ///< Seed of the random values.
};

/// Parses `NAME=DTYPE[D0,D1,...]`. The dtype has cgc's name or PyTorch's (`float32`, `half`).
/// Usage, stating the expected form, if the text is malformed.
Result<InputSpec> parseInputSpec(std::string_view text);
/// Parses `NAME=@FILE.npy` or `NAME=random:SEED`. Usage, stating the expected form, if the text is
/// malformed.
Result<InputSource> parseInputSource(std::string_view text);

/// Parses each of `texts`. Usage if one is malformed or a name occurs twice.
Result<std::vector<InputSpec>> parseInputSpecs(const std::vector<std::string> &texts);
Result<std::vector<InputSource>> parseInputSources(const std::vector<std::string> &texts);

/// Parses each of `texts`, `NAME=ENTRY+ENTRY[+...]`. Usage, stating the expected form, if one is
/// malformed or a name occurs twice.
Result<std::vector<driver::EntryGroup>> parseEntryGroups(const std::vector<std::string> &texts);

/// Adds the line "to do: add or change `options`" to an error of driver::chooseBuckets, which names
/// no option of the command line.
Status withOptionsToChange(const Status &status, std::string_view options);

/// The item with this name; null if there is none. Borrows from `items`.
template <class T> const T *findByName(const std::vector<T> &items, std::string_view name) {
  for (const T &item : items)
    if (item.name == name)
      return &item;
  return nullptr;
}

} // namespace cgc::tool

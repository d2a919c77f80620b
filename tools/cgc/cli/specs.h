// Specs: the small languages of --input, for compile (`image=f32[1,3,224,224]`) and for run
// (`image=@x.npy`).
#pragma once

#include "driver/buckets.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

using driver::InputSpec;

/// Where the values of an input come from.
struct InputSource {
  std::string name;
  std::string file;  ///< A .npy file, or a pattern of some; empty: random values.
  uint64_t seed = 0; ///< Of the random values.
};

/// `NAME=DTYPE[D0,D1,...]`; the dtype by cgc's name or by that of PyTorch (`float32`, `half`).
/// Usage says what was expected.
Result<InputSpec> parseInputSpec(std::string_view text);
/// `NAME=@FILE.npy` or `NAME=random:SEED`.
Result<InputSource> parseInputSource(std::string_view text);

/// Parses each of `texts`; Usage if a name occurs twice.
Result<std::vector<InputSpec>> parseInputSpecs(const std::vector<std::string> &texts);
Result<std::vector<InputSource>> parseInputSources(const std::vector<std::string> &texts);

/// The entry of a name in `specs` or `sources`; null if there is none.
template <class T> const T *findByName(const std::vector<T> &items, std::string_view name) {
  for (const T &item : items)
    if (item.name == name)
      return &item;
  return nullptr;
}

} // namespace cgc::tool

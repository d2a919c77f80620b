// Names: which texts a plan may use as names.
#pragma once

#include <cstddef>
#include <string_view>

namespace cgc {

inline constexpr size_t kMaxNameBytes = 4096;

/// Whether `s` is a name that can be looked up in a table of kernels, libraries or ops: 1 to 256
/// letters, digits and underscores.
bool isIdentifier(std::string_view s);

} // namespace cgc

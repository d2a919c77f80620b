// Printable text: what terminals and logs may show of text that came from a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cgc {

/// Whether `s` is UTF-8 without control characters and without those that change the direction of
/// text. Names are printed in terminals and JSON.
bool isPrintableUtf8(std::string_view s);

/// `text`, which came from a file, for a message: each byte that is no part of printable UTF-8 as
/// \x and two digits, and what is longer than `most` bytes cut, with its length.
std::string printable(std::string_view text, size_t most = 200);

} // namespace cgc

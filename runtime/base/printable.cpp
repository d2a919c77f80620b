// Printable text: UTF-8 that changes nothing but the place of the cursor, and escapes for other
// text.
#include "runtime/base/printable.h"

namespace cgc {
namespace {

/// Whether the character changes the order in which a terminal shows text: Unicode's property
/// Bidi_Control.
bool isBidiControl(unsigned point) {
  return point == 0x061c || point == 0x200e || point == 0x200f ||
         (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

} // namespace

bool isPrintableUtf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned char lead = byte(i);
    const int extra = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (extra < 0 || lead > 0xf4 || i + extra >= s.size() || (lead < 0x20) || lead == 0x7f)
      return false;
    for (int k = 1; k <= extra; ++k)
      if ((byte(i + k) & 0xc0) != 0x80)
        return false;
    // Overlong forms, surrogates and code points above U+10FFFF are invalid.
    if (extra >= 2) {
      const unsigned char second = byte(i + 1);
      if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
          (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return false;
    }
    if (lead == 0xc2 && byte(i + 1) < 0xa0) // U+0080 to U+009F are control characters.
      return false;
    if (extra == 1 || extra == 2) {
      const unsigned first = lead & (extra == 1 ? 0x1f : 0x0f), last = byte(i + extra) & 0x3f;
      const unsigned point =
          extra == 1 ? first << 6 | last : first << 12 | (byte(i + 1) & 0x3fu) << 6 | last;
      if (isBidiControl(point))
        return false;
    }
    i += extra + 1;
  }
  return true;
}

std::string printable(std::string_view text, size_t most) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    if (shown.size() >= most)
      return shown + "... (" + std::to_string(text.size()) + " bytes)";
    size_t length = 1; // Of the character at `i`.
    while (length <= 4 && (length > text.size() - i || !isPrintableUtf8(text.substr(i, length))))
      ++length;
    if (length <= 4) {
      shown += text.substr(i, length);
      i += length;
    } else {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(text[i++]);
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return shown;
}

} // namespace cgc

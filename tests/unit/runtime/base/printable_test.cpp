// Tests of printable text: direction marks, escapes and cuts. Validate.NamesAreUtf8 has the limits
// of UTF-8.
#include "runtime/base/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cgc::test {
namespace {

/// The second list has neighbors of the marks, and letters.
TEST(Printable, RefusesWhatChangesTheDirectionOfText) {
  for (const char *name : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"})
    EXPECT_FALSE(isPrintableUtf8(name)) << name;
  for (const char *name :
       {"\u061b", "\u200d", "\u2010", "\u2029", "\u202f", "\u2065", "\u206a", "\u05d0", "\u00e9"})
    EXPECT_TRUE(isPrintableUtf8(name)) << name;
}

TEST(Printable, EscapesAndCutsNamesOfFiles) {
  EXPECT_EQ(printable("visual.w \u00e9"), "visual.w \u00e9");
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("a\x1b[31m\nb"), "a\\x1b[31m\\x0ab");
  EXPECT_EQ(printable("\xc2\x9b|\u202e|\xff|\xe2"), "\\xc2\\x9b|\\xe2\\x80\\xae|\\xff|\\xe2");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef... (7 bytes)");
  EXPECT_EQ(printable(std::string(100000, '\n')).size(),
            200 + std::string("... (100000 bytes)").size());
}

} // namespace
} // namespace cgc::test

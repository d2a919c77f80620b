// Op choices: the choices of arguments in the `; shapes` and `; let` lines of the file tests.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>
#include <vector>

namespace cgc::test {

/// Texts of arguments.
using Choices = std::vector<std::string>;
using Sets = std::map<std::string, Choices>;

/// Splits at `separator` outside brackets and strings, and trims.
llvm::SmallVector<llvm::StringRef> splitOutside(llvm::StringRef text, char separator);

/// The sets that every file can name.
Sets commonSets();

/// Returns the choices of `a | b | ...`: each is a set, a set in another dtype (`layouts:i64`), a
/// tensor of each dtype (`each[2,2]`), or a choice itself.
Choices choicesOf(llvm::StringRef text, const Sets &sets);

} // namespace cgc::test

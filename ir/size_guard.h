// Size guards: conditions on the sizes of inputs under which an exported program is valid.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace cgc::ir {

/// The size of dimension `dim` of an input; nothing if there is none.
using SizeOfInput = llvm::function_ref<std::optional<int64_t>(llvm::StringRef input, unsigned dim)>;

/// Whether a guard holds, in the text of Python that torch.export writes into guards_code:
/// comparisons, `and`, `or`, `not`, `+`, `-`, `*`, `//`, `%`, `max` and `min` of whole numbers and
/// of `L['x'].size()[1]`. An element of a tuple or dict, `L['pair'][0]`, is the input "pair_0".
/// Nothing if the text has something else, or a number does not fit into 64 bits.
std::optional<bool> guardHolds(llvm::StringRef guard, SizeOfInput sizeOf);

} // namespace cgc::ir

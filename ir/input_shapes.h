// InputShapes: the dtypes and sizes of inputs that an exported program accepts.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cgc::ir {

/// factor * symbol + offset; the number `offset` if `symbol` is empty.
struct LinearSize {
  std::string symbol;
  int64_t factor = 0, offset = 0;
  bool operator==(const LinearSize &) const = default;
};

struct InputShape {
  std::string name;
  DType dtype = DType::F32;
  std::vector<LinearSize> sizes;
  std::vector<int64_t> example; ///< The sizes that the program was exported with.
};

struct InputShapes {
  /// The values of a symbol, ends included; none: no end.
  struct Range {
    std::optional<int64_t> least, most;
  };
  std::vector<InputShape> inputs;
  llvm::StringMap<Range> ranges;   ///< By symbol. Never iterated.
  std::vector<std::string> guards; ///< What must hold for the sizes: guardHolds().
};

/// By the method that has the inputs.
using ShapesOfMethods = std::map<std::string, InputShapes, std::less<>>;

/// The type of an input of a bucket.
struct GivenInput {
  std::string name;
  DType dtype = DType::F32;
  llvm::ArrayRef<int64_t> sizes;
};

/// Usage, naming input and dimension, if the program was not exported for these inputs, which may
/// be some of its own: a dtype or a rank differs, a size is another number or out of its range, or
/// two sizes contradict each other. The same for a guard that does not hold, where an input that is
/// not given has its example's sizes, and for one that cannot be computed, unless all sizes are
/// those of the examples.
Status checkInputs(const InputShapes &shapes, llvm::ArrayRef<GivenInput> inputs);

} // namespace cgc::ir

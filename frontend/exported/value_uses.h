// ValueUses: where each value of a program is made and read.
#pragma once

#include "frontend/exported/program.h"
#include "frontend/exported/scopes.h"
#include "runtime/base/status.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace cgc::exported {

/// The uses of the values of a program.
class ValueUses final {
public:
  /// InvalidFile if a node reads a value that is neither an input nor a result of a node before it,
  /// or if two have one name.
  static Result<ValueUses> of(const Program &program);

  bool isRead(llvm::StringRef name) const { return values_.lookup(name).end > 0; }
  /// The values that a node of `scope` reads and that are made before it, in the order of their
  /// first use.
  std::vector<std::string> inputsOf(const Program &program, const Scope &scope) const;
  /// The values that a node of `scope` makes and that are read after it.
  std::vector<std::string> outputsOf(const Program &program, const Scope &scope) const;

private:
  struct Value {
    size_t begin = 0; ///< The node that makes it, plus 1; 0 for an input of the program.
    size_t end = 0;   ///< The last node that reads it, plus 1. Outputs are read after all nodes.
  };
  llvm::StringMap<Value> values_; ///< Never iterated.
};

} // namespace cgc::exported

// PassOptions: the options in the braces after a pass's name in a pipeline.
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// The options of one pass. The pass takes each option that it knows; a leftover option is an error
/// in the pipeline text.
class PassOptions final {
public:
  /// Parses `name=value,name=value`. Usage if the text is malformed or an option is given twice.
  static Result<PassOptions> parse(llvm::StringRef pass, llvm::StringRef text);

  /// Returns the option's text; nullopt if it is not given.
  std::optional<std::string> take(llvm::StringRef name);
  /// Returns a nonnegative number; nullopt if it is not given. Usage if it is not such a number.
  Result<std::optional<uint64_t>> takeNumber(llvm::StringRef name);
  /// Returns one of `values`; nullopt if it is not given. Usage, with the nearest value, if it is
  /// none of them.
  Result<std::optional<std::string>> takeOneOf(llvm::StringRef name,
                                               llvm::ArrayRef<llvm::StringRef> values);

  /// Returns Usage, with the nearest known option, if an option was not taken.
  Status checkAllTaken() const;

private:
  struct Option {
    std::string name, value;
  };
  std::string pass_;
  std::vector<Option> options_;
  std::vector<std::string> known_;
};

} // namespace cgc::passes

// PassOption: an option of a pass in a pipeline. PassOptions: a pass reads its options.
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// One of the options in the braces after a pass's name.
struct PassOption {
  std::string name, value;
};

/// The options of one pass. The pass takes each option that it knows; a leftover option is an error
/// in the pipeline.
class PassOptions final {
public:
  PassOptions(llvm::StringRef pass, std::vector<PassOption> options)
      : pass_(pass), options_(std::move(options)) {}

  /// Returns the option's text; nullopt if it is not given.
  std::optional<std::string> take(llvm::StringRef name);
  /// Returns a nonnegative number; nullopt if it is not given. Usage if it is not such a number.
  Result<std::optional<uint64_t>> takeNumber(llvm::StringRef name);
  /// Replaces `value` by that number, if it is given. Usage if it is 0.
  Status takePositive(llvm::StringRef name, uint64_t &value);
  /// Returns one of `values`; nullopt if it is not given. Usage, with the nearest value, if it is
  /// none of them.
  Result<std::optional<std::string>> takeOneOf(llvm::StringRef name,
                                               llvm::ArrayRef<llvm::StringRef> values);

  /// Returns Usage, with the nearest known option, if an option was not taken.
  Status checkAllTaken() const;

private:
  std::string pass_;
  std::vector<PassOption> options_;
  std::vector<std::string> known_;
};

} // namespace cgc::passes

// PassOptions: what stands in the braces behind a pass's name in a pipeline.
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// The options of one pass. The pass takes each that it knows; what is left over is a mistake of
/// whoever wrote the pipeline.
class PassOptions final {
public:
  /// Parses `name=value,name=value`. Usage if it is malformed or an option is there twice.
  static Result<PassOptions> parse(llvm::StringRef pass, llvm::StringRef text);

  /// The option's text, if it is given.
  std::optional<std::string> take(llvm::StringRef name);
  /// A number that is not negative, if it is given. Usage if it is none.
  Result<std::optional<uint64_t>> takeNumber(llvm::StringRef name);
  /// One of `values`, if it is given. Usage, with the nearest, if it is none of them.
  Result<std::optional<std::string>> takeOneOf(llvm::StringRef name,
                                               llvm::ArrayRef<llvm::StringRef> values);

  /// Usage, with the nearest that the pass takes, if there is an option that it did not take.
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

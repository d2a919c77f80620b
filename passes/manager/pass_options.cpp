// PassOptions: values of options, and errors about unknown options.
#include "passes/manager/pass_options.h"

#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::passes {

std::optional<std::string> PassOptions::take(llvm::StringRef name) {
  known_.push_back(name.str());
  auto found =
      llvm::find_if(options_, [&](const PassOption &option) { return option.name == name; });
  if (found == options_.end())
    return std::nullopt;
  std::string value = std::move(found->value);
  options_.erase(found);
  return value;
}

Result<std::optional<uint64_t>> PassOptions::takeNumber(llvm::StringRef name) {
  const std::optional<std::string> text = take(name);
  if (!text)
    return std::optional<uint64_t>();
  uint64_t number = 0;
  if (llvm::StringRef(*text).getAsInteger(10, number))
    return Status(Code::Usage, "option '" + name.str() + "' of pass '" + pass_ +
                                   "' is a number, not '" + *text + "'");
  return std::optional(number);
}

Status PassOptions::takePositive(llvm::StringRef name, uint64_t &value) {
  CGC_ASSIGN_OR_RETURN(const auto given, takeNumber(name));
  if (given == 0)
    return {Code::Usage,
            "option '" + name.str() + "' of pass '" + pass_ + "' has to be at least 1"};
  value = given.value_or(value);
  return Status::ok();
}

Result<std::optional<std::string>> PassOptions::takeOneOf(llvm::StringRef name,
                                                          llvm::ArrayRef<llvm::StringRef> values) {
  std::optional<std::string> text = take(name);
  if (text && !llvm::is_contained(values, *text))
    return Status(Code::Usage, "option '" + name.str() + "' of pass '" + pass_ + "' is one of " +
                                   llvm::join(values, ", ") + ", not '" + *text + "'" +
                                   didYouMean(*text, values));
  return text;
}

Status PassOptions::checkAllTaken() const {
  if (options_.empty())
    return Status::ok();
  const std::string &name = options_.front().name;
  const std::string what = "pass '" + pass_ + "' has no option '" + name + "'";
  if (known_.empty())
    return Status(Code::Usage, what + "; it takes none");
  const std::vector<llvm::StringRef> known(known_.begin(), known_.end());
  const std::string nearest = didYouMean(name, known);
  return Status(Code::Usage,
                what +
                    (nearest.empty() ? "; its options are " + llvm::join(known, ", ") : nearest));
}

} // namespace cgc::passes

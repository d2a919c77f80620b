// PassList: parsing and printing.
#include "passes/manager/pass_list.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::passes {
namespace {

/// Splits at commas outside braces: `fold{limit=1},cse` gives `fold{limit=1}` and `cse`.
std::vector<llvm::StringRef> splitPasses(llvm::StringRef text) {
  std::vector<llvm::StringRef> passes;
  size_t begin = 0, depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '{';
    depth -= text[i] == '}' && depth > 0;
    if (text[i] == ',' && depth == 0) {
      passes.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    }
  }
  passes.push_back(text.drop_front(begin).trim());
  return passes;
}

/// Parses `name=value,name=value`.
Result<std::vector<PassOption>> parseOptions(llvm::StringRef pass, llvm::StringRef text) {
  std::vector<PassOption> options;
  if (text.trim().empty())
    return options;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [name, value] = part.split('=');
    name = name.trim();
    if (name.empty() || !part.contains('='))
      return Status(Code::Usage, "'" + part.trim().str() + "' is no option of pass '" + pass.str() +
                                     "': expected name=value");
    if (llvm::any_of(options, [&](const PassOption &other) { return other.name == name; }))
      return Status(Code::Usage,
                    "option '" + name.str() + "' of pass '" + pass.str() + "' is there twice");
    options.push_back({name.str(), value.trim().str()});
  }
  return options;
}

/// Parses `name` or `name{options}`.
Result<PassEntry> parsePass(llvm::StringRef text) {
  auto [name, options] = text.split('{');
  name = name.rtrim();
  if (text.contains('{') &&
      (!options.consume_back("}") || options.find_first_of("{}") != llvm::StringRef::npos))
    return Status(Code::Usage, "'" + text.str() +
                                   "': expected options in one pair of braces behind the pass's "
                                   "name, as in fold{limit=1024}");
  CGC_ASSIGN_OR_RETURN(auto parsed, parseOptions(name, options));
  return PassEntry{name.str(), std::move(parsed)};
}

} // namespace

Result<PassList> parsePassList(llvm::StringRef text) {
  PassList passes;
  if (text.trim().empty())
    return passes;
  for (llvm::StringRef pass : splitPasses(text)) {
    if (pass.empty())
      return Status(Code::Usage, "the pipeline '" + text.str() +
                                     "' lacks a name between two commas, or at an end of it; "
                                     "write a pass there, or take a comma away");
    CGC_ASSIGN_OR_RETURN(PassEntry entry, parsePass(pass));
    passes.push_back(std::move(entry));
  }
  return passes;
}

std::string toString(llvm::ArrayRef<PassEntry> passes) {
  const auto optionText = [](const PassOption &option) { return option.name + "=" + option.value; };
  const auto entryText = [&](const PassEntry &entry) {
    return entry.options.empty()
               ? entry.pass
               : entry.pass + "{" + llvm::join(llvm::map_range(entry.options, optionText), ",") +
                     "}";
  };
  return llvm::join(llvm::map_range(passes, entryText), ",");
}

} // namespace cgc::passes

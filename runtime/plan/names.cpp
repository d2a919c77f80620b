// Names: what is printable text, an identifier, and the name of an entry, input or output.
#include "runtime/plan/names.h"

#include "runtime/base/printable.h"
#include "runtime/plan/plan_file.h"

#include <algorithm>

namespace cgc {

bool isIdentifier(std::string_view s) {
  return !s.empty() && s.size() <= 256 && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool isPlanName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && isPrintableUtf8(name);
}

} // namespace cgc

// didYouMean: picks the nearest candidate by edit distance.
#include "support/did_you_mean.h"

#include <algorithm>
#include <utility>

namespace cgc {

std::string didYouMean(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> candidates,
                       llvm::StringRef sigil) {
  const unsigned limit = 2;
  std::pair<unsigned, llvm::StringRef> best{limit + 1, ""};
  if (text.size() < 64)
    for (llvm::StringRef candidate : candidates)
      best = std::min(best, {text.edit_distance(candidate, true, limit), candidate});
  return best.first > limit ? "" : "; did you mean '" + sigil.str() + best.second.str() + "'?";
}

} // namespace cgc

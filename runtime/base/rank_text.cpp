// Texts of messages about ranks.
#include "runtime/base/rank_text.h"

namespace cgc {

std::string secondsText(std::chrono::milliseconds time) {
  const std::string seconds = std::to_string(time.count() / 1000);
  return time.count() % 1000 == 0
             ? seconds + " s"
             : seconds + "." + std::to_string(time.count() % 1000 / 100) + " s";
}

std::string ranksText(const std::vector<int> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    text += (i ? ", " : "") + std::to_string(ranks[i]);
    if (last > i)
      text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

} // namespace cgc

// Texts of messages about ranks.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace cgc {

/// "rank 4" or "ranks 0, 2-5" of ascending numbers.
std::string ranksText(const std::vector<int> &ranks);

/// "600 s" or "0.5 s", rounded down to tenths.
std::string secondsText(std::chrono::milliseconds time);

} // namespace cgc

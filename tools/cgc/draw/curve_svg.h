// Curve: draws the loss of a training over its steps, as SVG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cgc::tool {

/// The loss of one step.
struct CurvePoint {
  uint64_t step = 0;
  double loss = 0;
};

/// A line chart of `points`, which are in the order of their steps, with the title `title`, and a
/// second line of `validation`, with a legend, if there are such points. The vertical axis is
/// logarithmic if all losses are positive and the largest is at least a hundred times the smallest.
/// Losses that are NaN or infinite are gaps. If there are more points than the chart can show, the
/// line is that of means, above a band from the least to the most. Deterministic.
std::string curveSvg(const std::vector<CurvePoint> &points, const std::string &title,
                     const std::vector<CurvePoint> &validation = {});

} // namespace cgc::tool

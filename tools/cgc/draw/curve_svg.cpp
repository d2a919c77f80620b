// Curve: scales the points, draws the axes with round ticks, and the line.
#include "tools/cgc/draw/curve_svg.h"

#include "support/dot_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cgc::tool {
namespace {

// All sizes are in pixels.
constexpr double kWidth = 800, kHeight = 450;
constexpr double kLeft = 80, kRight = 24, kTop = 52, kBottom = 58;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr size_t kMaxBins = 350; ///< Points of the line: one for each second pixel.
constexpr double kLogarithmicFrom =
    100; ///< The ratio of losses from which the axis is logarithmic.
constexpr const char *kLineColor = "#1f77b4", *kValidationColor = "#d62728";

/// Consecutive points as one.
struct Bin {
  double step = 0, least = 0, mean = 0, most = 0;
};

std::vector<Bin> binsOf(const std::vector<CurvePoint> &points) {
  std::vector<Bin> bins;
  const size_t width = (points.size() + kMaxBins - 1) / kMaxBins;
  for (size_t begin = 0; begin < points.size(); begin += width) {
    const size_t end = std::min(begin + width, points.size());
    Bin bin{0, points[begin].loss, 0, points[begin].loss};
    for (size_t i = begin; i < end; ++i) {
      const auto count = static_cast<double>(end - begin);
      bin.step += static_cast<double>(points[i].step) / count;
      bin.mean += points[i].loss / count;
      bin.least = std::min(bin.least, points[i].loss);
      bin.most = std::max(bin.most, points[i].loss);
    }
    bins.push_back(bin);
  }
  return bins;
}

/// A step of 1, 2 or 5 times a power of ten that divides `range` into at most `steps` steps.
double roundStep(double range, double steps) {
  const double power = std::pow(10, std::floor(std::log10(range / steps)));
  for (const double factor : {1, 2, 5})
    if (range <= steps * factor * power)
      return factor * power;
  return 10 * power;
}

/// An axis from `least` to `most` with ticks at round numbers.
class Axis {
public:
  /// Extends the range to whole ticks if `whole`.
  static Axis linear(double least, double most, double steps, bool whole) {
    if (!(most > least)) {
      const double margin = std::max(std::abs(least) * 0.1, 1e-12);
      least -= margin;
      most += margin;
    }
    const double step = roundStep(most - least, steps);
    Axis axis;
    if (whole) {
      least = std::floor(least / step + 1e-9) * step;
      most = std::ceil(most / step - 1e-9) * step;
    }
    for (double i = std::ceil(least / step - 1e-9); i * step <= most + step * 1e-9; ++i)
      axis.ticks_.push_back(i * step);
    axis.least_ = least;
    axis.most_ = most;
    return axis;
  }
  /// Ticks at powers of ten. Both ends are positive.
  static Axis logarithmic(double least, double most) {
    Axis axis;
    axis.isLogarithmic_ = true;
    axis.least_ = std::floor(std::log10(least));
    axis.most_ = std::ceil(std::log10(most));
    const double step = std::max(1.0, std::ceil((axis.most_ - axis.least_) / 8));
    for (double power = axis.least_; power <= axis.most_; power += step)
      axis.ticks_.push_back(std::pow(10, power));
    return axis;
  }

  /// The place of a value: 0 at the least, 1 at the most.
  double place(double value) const {
    const double at = isLogarithmic_ ? std::log10(value) : value;
    return (at - least_) / (most_ - least_);
  }
  const std::vector<double> &ticks() const { return ticks_; }
  bool isLogarithmic() const { return isLogarithmic_; }

private:
  double least_ = 0, most_ = 1;
  std::vector<double> ticks_;
  bool isLogarithmic_ = false;
};

Axis stepAxis(const std::vector<CurvePoint> &finite) {
  const auto [first, last] =
      std::ranges::minmax(finite, {}, [](const CurvePoint &point) { return point.step; });
  return Axis::linear(static_cast<double>(first.step), static_cast<double>(last.step), 8,
                      /*whole=*/false);
}

Axis lossAxis(const std::vector<CurvePoint> &finite) {
  const auto [least, most] =
      std::ranges::minmax(finite, {}, [](const CurvePoint &point) { return point.loss; });
  if (least.loss > 0 && most.loss >= kLogarithmicFrom * least.loss)
    return Axis::logarithmic(least.loss, most.loss);
  return Axis::linear(least.loss, most.loss, 6, /*whole=*/true);
}

class Chart {
public:
  /// Axes for `finite`, which is not empty.
  Chart(const std::vector<CurvePoint> &finite, std::string title)
      : title_(std::move(title)), steps_(stepAxis(finite)), losses_(lossAxis(finite)) {
    drawAxes();
  }

  void draw(const std::vector<CurvePoint> &points, const char *color) {
    const bool binned = points.size() > kMaxBins;
    for (size_t begin = 0; begin < points.size();) {
      size_t end = begin;
      while (end < points.size() && std::isfinite(points[end].loss))
        ++end;
      if (end > begin)
        drawLine({points.begin() + static_cast<std::ptrdiff_t>(begin),
                  points.begin() + static_cast<std::ptrdiff_t>(end)},
                 color, binned);
      begin = std::max(end, begin + 1);
    }
  }

  void drawLegend() {
    text(kWidth - kRight, 20, 12, fmt::format("text-anchor=\"end\" fill=\"{}\"", kLineColor),
         "training");
    text(kWidth - kRight, 36, 12, fmt::format("text-anchor=\"end\" fill=\"{}\"", kValidationColor),
         "validation");
  }

  std::string take() { return std::move(svg_); }

private:
  double x(double step) const { return kLeft + kPlotWidth * steps_.place(step); }
  double y(double loss) const { return kTop + kPlotHeight * (1 - losses_.place(loss)); }

  void text(double x, double y, double size, std::string_view more, const std::string &content) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" {}>{}</text>\n", x, y,
                        size, more, markupText(content));
  }

  void drawAxes() {
    text(kLeft, 28, 16, "fill=\"#222222\"", title_);
    for (const double tick : losses_.ticks()) {
      svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#e4e4e4\"/>\n", kLeft,
                          y(tick), kPlotWidth);
      text(kLeft - 8, y(tick) + 4, 12, "text-anchor=\"end\" fill=\"#444444\"",
           fmt::format("{:g}", std::abs(tick) < 1e-14 ? 0 : tick));
    }
    for (const double tick : steps_.ticks()) {
      if (tick != std::floor(tick))
        continue; // There is no half step.
      svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#444444\"/>\n", x(tick),
                          kTop + kPlotHeight);
      text(x(tick), kTop + kPlotHeight + 19, 12, "text-anchor=\"middle\" fill=\"#444444\"",
           fmt::format("{:.0f}", tick));
    }
    svg_ += fmt::format("<path d=\"M{0:.1f} {1:.1f}v{2:.1f}h{3:.1f}\" fill=\"none\" "
                        "stroke=\"#444444\"/>\n",
                        kLeft, kTop, kPlotHeight, kPlotWidth);
    text(kLeft + kPlotWidth / 2, kHeight - 14, 13, "text-anchor=\"middle\" fill=\"#222222\"",
         "step");
    svg_ += fmt::format("<text transform=\"translate(20 {:.1f}) rotate(-90)\" font-size=\"13\" "
                        "text-anchor=\"middle\" fill=\"#222222\">loss{}</text>\n",
                        kTop + kPlotHeight / 2, losses_.isLogarithmic() ? " (logarithmic)" : "");
  }

  void drawLine(const std::vector<CurvePoint> &points, const char *color, bool binned) {
    const std::vector<Bin> bins = binsOf(points);
    if (binned) {
      std::string band;
      for (const Bin &bin : bins)
        band += fmt::format("{:.1f},{:.1f} ", x(bin.step), y(bin.most));
      for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin)
        band += fmt::format("{:.1f},{:.1f} ", x(bin->step), y(bin->least));
      svg_ += fmt::format("<polygon points=\"{}\" fill=\"#c6dbef\"/>\n", band);
    }
    std::string line;
    for (const Bin &bin : bins)
      line += fmt::format("{:.1f},{:.1f} ", x(bin.step), y(bin.mean));
    if (bins.size() == 1)
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n",
                          x(bins[0].step), y(bins[0].mean), color);
    else
      svg_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
                          "stroke-width=\"1.5\" stroke-linejoin=\"round\"/>\n",
                          line, color);
  }

  const std::string title_;
  const Axis steps_, losses_;
  std::string svg_;
};

} // namespace

std::string curveSvg(const std::vector<CurvePoint> &points, const std::string &title,
                     const std::vector<CurvePoint> &validation) {
  std::vector<CurvePoint> finite;
  for (const auto *line : {&points, &validation})
    std::ranges::copy_if(*line, std::back_inserter(finite),
                         [](const CurvePoint &point) { return std::isfinite(point.loss); });
  std::string chart;
  if (finite.empty()) {
    chart = fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"16\">{}: no finite loss</text>\n",
                        kLeft, kTop, markupText(title));
  } else {
    Chart drawing(finite, title);
    drawing.draw(points, kLineColor);
    if (!validation.empty()) {
      drawing.draw(validation, kValidationColor);
      drawing.drawLegend();
    }
    chart = drawing.take();
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
                     "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                     "font-family=\"Helvetica,Arial,sans-serif\">\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                     kWidth, kHeight) +
         chart + "</svg>\n";
}

} // namespace cgc::tool

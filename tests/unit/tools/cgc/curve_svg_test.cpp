// Tests of the loss curve: axes, gaps and long trainings.
#include "tools/cgc/draw/curve_svg.h"

#include <gmock/gmock.h>

#include <cmath>

namespace cgc::tool {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

std::vector<CurvePoint> curve(size_t steps, double (*loss)(double)) {
  std::vector<CurvePoint> points;
  for (size_t i = 1; i <= steps; ++i)
    points.push_back({i, loss(static_cast<double>(i))});
  return points;
}

TEST(CurveSvg, HasTitleAxesAndALine) {
  const std::string svg = curveSvg(curve(100, [](double i) { return 2 - i / 100; }), "a < b");
  EXPECT_THAT(svg, HasSubstr(">a &lt; b</text>"));
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
  EXPECT_THAT(svg, HasSubstr(">loss</text>"));
  for (const char *tick : {">1</text>", ">1.2</text>", ">2</text>", ">20</text>", ">100</text>"})
    EXPECT_THAT(svg, HasSubstr(tick));
  EXPECT_EQ(count(svg, "<polyline"), 1u);
  EXPECT_EQ(count(svg, "<polygon"), 0u);
}

TEST(CurveSvg, IsLogarithmicOverTwoDecades) {
  const std::string svg = curveSvg(curve(50, [](double i) { return std::pow(0.8, i); }), "t");
  EXPECT_THAT(svg, HasSubstr("loss (logarithmic)"));
  EXPECT_THAT(svg, HasSubstr(">1e-05</text>"));
}

TEST(CurveSvg, DrawsMeansOfALongTrainingAboveABand) {
  const std::string svg = curveSvg(curve(10000, [](double i) { return std::sin(i); }), "t");
  EXPECT_EQ(count(svg, "<polygon"), 1u);
  EXPECT_LT(svg.size(), 30000u);
}

TEST(CurveSvg, LeavesGapsWhereTheLossIsNotFinite) {
  auto points = curve(9, [](double i) { return i; });
  points[4].loss = NAN;
  const std::string svg = curveSvg(points, "t");
  EXPECT_EQ(count(svg, "<polyline"), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(CurveSvg, DrawsValidationBesideTraining) {
  const auto points = curve(1000, [](double i) { return 1 + i / 1000; });
  EXPECT_THAT(curveSvg(points, "t"), Not(HasSubstr(">validation</text>")));
  const std::string svg = curveSvg(points, "t", {{500, 3}, {1000, 4}});
  EXPECT_THAT(svg, HasSubstr(">training</text>"));
  EXPECT_THAT(svg, HasSubstr(">validation</text>"));
  EXPECT_EQ(count(svg, "<polyline"), 2u);
  EXPECT_EQ(count(svg, "<polygon"), 1u) << "only the line of training has a band";
  EXPECT_THAT(svg, HasSubstr(">4</text>")) << "the axis has room for both";
  EXPECT_THAT(curveSvg({}, "t", {{1, 2}}), HasSubstr("<circle"));
}

TEST(CurveSvg, TakesAnyNumberOfPoints) {
  EXPECT_THAT(curveSvg({}, "t"), HasSubstr("t: no finite loss"));
  EXPECT_THAT(curveSvg({{1, NAN}}, "t"), HasSubstr("t: no finite loss"));
  const std::string one = curveSvg({{7, 0}}, "t");
  EXPECT_THAT(one, HasSubstr("<circle"));
  EXPECT_THAT(one, Not(HasSubstr("nan")));
}

} // namespace
} // namespace cgc::tool

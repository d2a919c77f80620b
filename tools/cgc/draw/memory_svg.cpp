// Memory chart: draws the charts, their axes, and the SVG around them.
#include "tools/cgc/draw/memory_svg.h"

#include "ir/text/op_class.h"
#include "support/dot_graph.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/draw/plan_flow.h"
#include "tools/cgc/report/plan_summary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace cgc::tool {
namespace {

// All sizes are in pixels. kChartHeight includes the heading and the axes of a chart.
constexpr double kMinWidth = 1400, kChartHeight = 560;
constexpr double kMapLeft = 90, kMapRight = 20, kMapTop = 46, kMapBottom = 66;
constexpr double kMapHeight = kChartHeight - kMapTop - kMapBottom;
constexpr double kCharWidth = 5.2; ///< Approximate width of a character of a label.
constexpr double kTickWidth = 64;  ///< Minimum distance between two numbers of the time axis.
constexpr double kMinHeight = 0.1; ///< An SVG rectangle of height 0 is invisible.

/// `text`, truncated to `width`. Empty if fewer than six characters would be left.
std::string fitted(std::string text, double width) {
  const auto room = static_cast<size_t>(std::max(0.0, width / kCharWidth));
  if (text.size() <= room)
    return text;
  return room < 6 ? "" : text.substr(0, room - 1) + "\u2026";
}

/// A step of 1, 2 or 5 times a power of ten that divides `range` into about `steps` steps.
double niceStep(double range, double steps) {
  const double power = std::pow(10, std::floor(std::log10(std::max(range / steps, 1.0))));
  for (double factor : {1, 2, 5})
    if (range <= steps * factor * power)
      return factor * power;
  return 10 * power;
}

/// The part of a module path up to and including its first number: the block that a record belongs
/// to.
std::string blockOf(llvm::StringRef path) {
  std::string block;
  for (llvm::StringRef part : llvm::split(path, '.')) {
    block += (block.empty() ? "" : ".") + part.str();
    if (llvm::all_of(part, llvm::isDigit))
      break;
  }
  return block;
}

class MemoryChart {
public:
  MemoryChart(const PlanData &plan, const Entry &entry, const Bucket &bucket, double y,
              double width)
      : plan_(plan), entry_(entry), bucket_(bucket), buffers_(arenaBuffers(bucket)),
        y_(y + kMapTop), plotWidth_(width - kMapLeft - kMapRight) {}

  std::string draw() {
    const uint64_t live = peakLiveBytes();
    text(kMapLeft, y_ - 28, 15,
         fmt::format("{} ({}): arena {}, of which at most {} are in use at once; {} records, {} "
                     "buffers",
                     entry_.name, describeIo(bucket_.inputs), formatBytes(bucket_.arenaBytes),
                     formatBytes(live), bucket_.records.size(), buffers_.size()));
    drawLegend();
    drawBlocks();
    for (const ArenaBuffer &buffer : buffers_)
      drawBuffer(buffer);
    drawAxes();
    return std::move(svg_);
  }

private:
  double x(double record) const {
    return kMapLeft + plotWidth_ * record / std::max<double>(1, bucket_.records.size());
  }
  double y(double byte) const {
    return y_ + kMapHeight * (1 - byte / std::max<double>(1, bucket_.arenaBytes));
  }
  std::string moduleOf(size_t record) const {
    const LocationId location = bucket_.records[record].location;
    return location == kNoLocation ? "" : plan_.locations[static_cast<uint32_t>(location)].module;
  }
  ir::OpClass classOf(size_t record) const {
    const LaunchRecord &r = bucket_.records[record];
    return ir::classOfRecord(std::holds_alternative<AtenCall>(r.op) ? std::get<AtenCall>(r.op).op
                                                                    : recordName(r));
  }

  /// The largest number of bytes in buffers that are alive during one record.
  uint64_t peakLiveBytes() const {
    std::vector<uint64_t> born(bucket_.records.size() + 1), died(born.size());
    for (const ArenaBuffer &buffer : buffers_) {
      born[buffer.first] += buffer.end - buffer.begin;
      died[buffer.last + 1] += buffer.end - buffer.begin;
    }
    uint64_t live = 0, most = 0;
    for (size_t i = 0; i < born.size(); ++i) {
      live += born[i] - died[i];
      most = std::max(most, live);
    }
    return most;
  }

  void text(double x, double y, double size, const std::string &content,
            std::string_view more = "") {
    if (!content.empty())
      svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\"{}>{}</text>\n", x, y,
                          size, more, markupText(content));
  }

  void drawLegend() {
    std::set<ir::OpClass> used;
    for (const ArenaBuffer &buffer : buffers_)
      used.insert(classOf(buffer.first));
    double at = kMapLeft;
    for (ir::OpClass opClass : used) {
      const std::string name = ir::styleOf(opClass).legend.str();
      svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"10\" fill=\"{}\" "
                          "stroke=\"#666666\" stroke-width=\"0.5\"/>\n",
                          at, y_ - 18, std::string_view(ir::styleOf(opClass).fill));
      text(at + 16, y_ - 9, 10, name);
      at += 30 + 5.6 * static_cast<double>(name.size());
    }
  }

  /// Draws bands behind the buffers that show which block of the model runs when.
  void drawBlocks() {
    const size_t records = bucket_.records.size();
    double labeledEnd = 0; // Right end of the last label.
    for (size_t begin = 0, band = 0; begin < records; ++band) {
      const std::string block = blockOf(moduleOf(begin));
      size_t end = begin + 1;
      while (end < records && blockOf(moduleOf(end)) == block)
        ++end;
      svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                          "fill=\"{}\"><title>{}</title></rect>\n",
                          x(begin), y_, x(end) - x(begin), kMapHeight,
                          band % 2 ? "#f3f3f3" : "#fafafa", markupText(block));
      // Labels keep the end of the path, which distinguishes blocks best.
      const double width = x(end) - x(begin);
      const llvm::StringRef path = block;
      const size_t room = static_cast<size_t>(width / 5.2);
      llvm::StringRef label = path;
      while (label.size() > room && label.contains('.'))
        label = label.split('.').second;
      if (label.size() <= room && x(begin) >= labeledEnd) {
        text(x(begin) + 1, y_ + kMapHeight + 12, 9, label.str(), " fill=\"#555555\"");
        labeledEnd = x(begin) + 5.2 * static_cast<double>(label.size());
      }
      begin = end;
    }
  }

  void drawBuffer(const ArenaBuffer &buffer) {
    const LaunchRecord &writer = bucket_.records[buffer.first];
    const TensorRef &tensor = tensorOf(bucket_, buffer.tensor);
    const std::string shape = formatShape(dtypeName(tensor.dtype), tensor.sizes);
    const double left = x(static_cast<double>(buffer.first));
    const double width = x(static_cast<double>(buffer.last + 1)) - left;
    const double bottom = y(static_cast<double>(buffer.begin));
    const double height = std::max(kMinHeight, bottom - y(static_cast<double>(buffer.end)));
    const double top = bottom - height;
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" "
        "fill=\"{}\" stroke=\"#444444\" stroke-width=\"0.5\"><title>{}</title>"
        "</rect>\n",
        left, top, width, height, std::string_view(ir::styleOf(classOf(buffer.first)).fill),
        markupText(fmt::format("{} {}\n{} at offset {}\nrecords {} to {}\n{}", recordName(writer),
                               shape, formatBytes(buffer.end - buffer.begin), buffer.begin,
                               buffer.first, buffer.last, moduleOf(buffer.first))));
    const std::string name = recordName(writer);
    labelBuffer(left, top, width, height, name.substr(name.rfind(' ') + 1), shape);
  }

  /// Draws the label of a buffer along its longer side, if there is room.
  void labelBuffer(double left, double top, double width, double height, const std::string &name,
                   const std::string &shape) {
    if (width < 60 && height >= 60 && width >= 11) {
      const std::string both = fitted(name + " " + shape, height - 6);
      if (!both.empty())
        svg_ += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" "
                            "font-size=\"9\">{}</text>\n",
                            left + width / 2 + 3, top + height - 3, markupText(both));
      return;
    }
    if (height >= 11)
      text(left + 2, top + std::min(height / 2 + 3, 12.0), 9, fitted(shape, width - 4));
    if (height >= 24)
      text(left + 2, top + std::min(height / 2 + 14, 23.0), 9, fitted(name, width - 4));
  }

  void drawAxes() {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                        "fill=\"none\" stroke=\"#222222\"/>\n",
                        kMapLeft, y_, plotWidth_, kMapHeight);
    const double bytes = static_cast<double>(bucket_.arenaBytes);
    if (bytes > 0)
      for (double at = 0, step = niceStep(bytes, 8); at <= bytes; at += step)
        text(kMapLeft - 6, y(at) + 3, 10, formatBytes(static_cast<uint64_t>(at)),
             " text-anchor=\"end\"");
    const double records = static_cast<double>(bucket_.records.size());
    for (double at = 0, step = niceStep(records, plotWidth_ / kTickWidth); at < records; at += step)
      text(x(at + 0.5), y_ + kMapHeight + 26, 10, fmt::format("{:.0f}", at),
           " text-anchor=\"middle\"");
    text(kMapLeft + plotWidth_ / 2, y_ + kMapHeight + 44, 11, "time: record of the bucket",
         " text-anchor=\"middle\"");
    svg_ += fmt::format("<text transform=\"translate(16 {:.1f}) rotate(-90)\" font-size=\"11\" "
                        "text-anchor=\"middle\">offset in the arena</text>\n",
                        y_ + kMapHeight / 2);
  }

  const PlanData &plan_;
  const Entry &entry_;
  const Bucket &bucket_;
  const std::vector<ArenaBuffer> buffers_;
  const double y_; ///< Top of the plot.
  const double plotWidth_;
  std::string svg_;
};

/// An SVG file written by Graphviz, to be nested in another one.
struct Drawing {
  llvm::StringRef box, content;
  double width = 0, height = 0;
};

Drawing parseDrawing(llvm::StringRef svg) {
  // <svg width="62pt" height="116pt" viewBox="0.00 0.00 62.00 116.00" ...>
  Drawing drawing;
  drawing.box = svg.split("viewBox=\"").second.split('"').first;
  drawing.content = svg.split("<svg").second.split('>').second;
  llvm::SmallVector<llvm::StringRef> numbers;
  drawing.box.split(numbers, ' ');
  if (numbers.size() != 4 || numbers[2].getAsDouble(drawing.width) ||
      numbers[3].getAsDouble(drawing.height))
    return {};
  return drawing;
}

/// The SVG element that shows `drawing` at `y`, at its own size.
std::string nested(const Drawing &drawing, double y) {
  if (drawing.content.empty())
    return "";
  return fmt::format("<svg x=\"0\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                     "viewBox=\"{}\">{}",
                     y, drawing.width, drawing.height, std::string_view(drawing.box),
                     std::string_view(drawing.content));
}

} // namespace

std::string planSvg(const PlanData &plan, std::string_view entry, const std::string &drawing) {
  const Drawing graph = parseDrawing(drawing);
  const double width = std::max(kMinWidth, graph.width);
  std::string charts;
  double height = 0;
  for (const Entry &e : plan.entries)
    for (const Bucket &bucket : e.buckets) {
      if (!entry.empty() && e.name != entry)
        continue;
      charts += MemoryChart(plan, e, bucket, height, width).draw();
      height += kChartHeight;
    }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                     "xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"{0:.0f}\" "
                     "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                     "font-family=\"Helvetica,Arial,sans-serif\">\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                     width, height + graph.height) +
         charts + nested(graph, height) + "</svg>\n";
}

} // namespace cgc::tool

// Source lines: reads the source range that saved modules keep for each node; for traced code its
// text is the Python stack.
#include "frontend/source_lines.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::frontend {

using torch::jit::SourceRange;

namespace {

/// Parses "model.py(12): forward", a line of the Python stack that tracing records.
std::optional<ir::Loc> parseFrame(llvm::StringRef text) {
  auto [place, function] = text.rsplit("): ");
  auto [file, number] = place.rsplit('(');
  unsigned line = 0;
  if (function.empty() || file.empty() || number.getAsInteger(10, line))
    return std::nullopt;
  return ir::Loc{file.str(), line, ""};
}

/// Returns the range of the original source that a node with `range` in the saved code comes from,
/// or `range` itself if it is not in saved code. The range of a call of a function is the
/// function's name, for which torch records no origin; the parenthesis after it has that of the
/// call.
SourceRange originOf(const SourceRange &range) {
  std::optional<SourceRange> origin = range.findSourceRangeThatGenerated();
  if (!origin)
    return range;
  const auto place = origin->file_line_col();
  if ((!place || std::get<0>(*place).empty()) && range.end() < range.source()->size())
    origin =
        SourceRange(range.source(), range.end(), range.end() + 1).findSourceRangeThatGenerated();
  return origin.value_or(range);
}

} // namespace

std::vector<ir::Loc> framesOf(const torch::jit::Node &node) {
  const SourceRange range = originOf(node.sourceRange());
  auto position = range.file_line_col();
  // Nodes created by tracing have an empty file name.
  if (!position || std::get<0>(*position).empty() || std::get<1>(*position) == 0)
    return {};
  std::vector<ir::Loc> frames = {
      {std::get<0>(*position), static_cast<unsigned>(std::get<1>(*position)), ""}};
  std::string text = range.source()->text_str().str();
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  if (parseFrame(lines.front()) != frames.front())
    return frames; // The text is source code.
  for (llvm::StringRef line : llvm::drop_begin(lines)) {
    std::optional<ir::Loc> frame = parseFrame(line);
    if (!frame || llvm::StringRef(frame->file).ends_with("/torch/jit/_trace.py"))
      break;
    frames.push_back(std::move(*frame));
  }
  return frames;
}

} // namespace cgc::frontend

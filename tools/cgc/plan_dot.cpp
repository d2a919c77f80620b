// DOT of a launch plan.
#include "tools/cgc/plan_dot.h"

#include "tools/cgc/console.h"

#include <fmt/format.h>

#include <set>

namespace cgc::tool {

namespace {

/// The bytes of a buffer that a tensor can touch.
struct Extent {
  BufferKind buffer;
  uint32_t index;
  uint64_t begin, end;

  bool overlaps(const Extent &other) const {
    return buffer == other.buffer && index == other.index && begin < other.end && other.begin < end;
  }
  bool covers(const Extent &other) const { return begin <= other.begin && other.end <= end; }
};

Extent extentOf(const TensorRef &tensor) {
  uint64_t last = 0;
  for (size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] == 0)
      return {tensor.slot.buffer, tensor.slot.index, tensor.slot.offset, tensor.slot.offset};
    last += static_cast<uint64_t>((tensor.sizes[d] - 1) * tensor.strides[d]);
  }
  const uint64_t begin = tensor.slot.offset;
  return {tensor.slot.buffer, tensor.slot.index, begin,
          begin + (last + 1) * dtypeSize(tensor.dtype)};
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\')
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string describe(const TensorRef &tensor) {
  return formatShape(dtypeName(tensor.dtype), tensor.sizes);
}

/// Draws one bucket; node ids begin with `prefix`.
class BucketDrawing {
public:
  BucketDrawing(const PlanData &plan, const Bucket &bucket, std::string prefix)
      : plan_(plan), bucket_(bucket), prefix_(std::move(prefix)) {}

  std::string draw() {
    for (size_t i = 0; i < bucket_.inputs.size(); ++i)
      drawIo("in", i, bucket_.inputs[i]);
    for (size_t i = 0; i < bucket_.records.size(); ++i)
      drawRecord(i);
    for (size_t i = 0; i < bucket_.outputs.size(); ++i) {
      drawIo("out", i, bucket_.outputs[i]);
      const Extent whole{BufferKind::Output, static_cast<uint32_t>(i), 0, UINT64_MAX};
      for (const std::string &writer : writersOf(whole, bucket_.records.size()))
        edge(writer, fmt::format("{}out{}", prefix_, i));
    }
    return std::move(text_);
  }

private:
  void drawIo(std::string_view kind, size_t i, const IoTensor &io) {
    text_ += fmt::format("    \"{}{}{}\" [shape=ellipse, label=\"{}\\n{}\"];\n", prefix_, kind, i,
                         escape(io.name), formatShape(dtypeName(io.dtype), io.sizes));
  }

  void drawRecord(size_t i) {
    const LaunchRecord &record = bucket_.records[i];
    std::string label = escape(recordName(record));
    const auto writes = recordWrites(record);
    if (!writes.empty())
      label += "\\n" + describe(tensor(writes[0]));
    std::string tooltip;
    if (record.location != kNoLocation) {
      const SourceLocation &where = plan_.locations[static_cast<uint32_t>(record.location)];
      tooltip = fmt::format("{}:{} {}", where.file, where.line, where.module);
      label += "\\n" + escape(where.module);
    }
    const std::string id = fmt::format("{}r{}", prefix_, i);
    text_ +=
        fmt::format("    \"{}\" [label=\"{}\", tooltip=\"{}\"];\n", id, label, escape(tooltip));
    for (TensorId read : recordReads(record)) {
      const Extent extent = extentOf(tensor(read));
      if (extent.buffer == BufferKind::Input)
        edge(fmt::format("{}in{}", prefix_, extent.index), id);
      for (const std::string &writer : writersOf(extent, i))
        edge(writer, id);
    }
  }

  /// The records before `end` whose writes are visible in `extent`, latest first.
  std::vector<std::string> writersOf(const Extent &extent, size_t end) const {
    std::vector<std::string> writers;
    for (size_t i = end; i-- > 0;) {
      for (TensorId write : recordWrites(bucket_.records[i])) {
        const Extent written = extentOf(tensor(write));
        if (!written.overlaps(extent))
          continue;
        writers.push_back(fmt::format("{}r{}", prefix_, i));
        if (written.covers(extent))
          return writers;
      }
    }
    return writers;
  }

  const TensorRef &tensor(TensorId id) const { return bucket_.tensors[static_cast<uint32_t>(id)]; }

  void edge(const std::string &from, const std::string &to) {
    if (edges_.emplace(from, to).second)
      text_ += fmt::format("    \"{}\" -> \"{}\";\n", from, to);
  }

  const PlanData &plan_;
  const Bucket &bucket_;
  const std::string prefix_;
  std::set<std::pair<std::string, std::string>> edges_;
  std::string text_;
};

} // namespace

std::string planDot(const PlanData &plan, std::string_view entry) {
  std::string text = "digraph \"plan\" {\n  rankdir=TB;\n"
                     "  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n";
  for (const Entry &e : plan.entries) {
    if ((!entry.empty() && e.name != entry) || e.buckets.empty())
      continue;
    text += fmt::format("  subgraph \"cluster_{0}\" {{\n    label=\"{0}\";\n", escape(e.name));
    text += BucketDrawing(plan, e.buckets[0], e.name + ".").draw();
    text += "  }\n";
  }
  return text + "}\n";
}

} // namespace cgc::tool

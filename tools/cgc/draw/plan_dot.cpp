// DOT of a plan: makes nodes of records and edges of the bytes that they touch.
#include "tools/cgc/draw/plan_dot.h"

#include "ir/text/op_class.h"
#include "support/dot_graph.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/draw/plan_flow.h"

#include <fmt/format.h>

namespace cgc::tool {

namespace {

std::string describe(const TensorRef &tensor) {
  return formatShape(dtypeName(tensor.dtype), tensor.sizes);
}

/// Draws one bucket. Paths and node ids begin with the entry's name.
class BucketDrawing {
public:
  BucketDrawing(const PlanData &plan, const Entry &entry, DotGraph &drawing)
      : plan_(plan), entry_(entry.name), bucket_(entry.buckets[0]), drawing_(drawing),
        writers_(bucket_) {}

  void draw() {
    for (size_t i = 0; i < bucket_.inputs.size(); ++i)
      inputs_.push_back(drawIo("in", i, bucket_.inputs[i]));
    for (size_t i = 0; i < bucket_.records.size(); ++i)
      drawRecord(i);
    for (size_t i = 0; i < bucket_.outputs.size(); ++i) {
      const IoTensor &io = bucket_.outputs[i];
      const unsigned node = drawIo("out", i, io);
      const Extent whole{BufferKind::Output, static_cast<uint32_t>(i), 0, UINT64_MAX};
      for (size_t writer : writers_.of(whole))
        drawing_.addEdge(records_[writer], node, formatShape(dtypeName(io.dtype), io.sizes));
    }
  }

private:
  unsigned drawIo(std::string_view kind, size_t i, const IoTensor &io) {
    std::string label = fmt::format("{}\n{}", io.name, formatShape(dtypeName(io.dtype), io.sizes));
    return drawing_.addNode({.id = fmt::format("{}.{}{}", entry_, kind, i),
                             .label = label,
                             .path = entry_,
                             .style = ir::styleOf(ir::OpClass::Io),
                             .signature = label});
  }

  void drawRecord(size_t i) {
    const LaunchRecord &record = bucket_.records[i];
    DotGraph::Node node{
        .id = fmt::format("{}.r{}", entry_, i), .label = recordName(record), .path = entry_};
    node.style = ir::styleOf(ir::classOfRecord(std::holds_alternative<AtenCall>(record.op)
                                                   ? std::get<AtenCall>(record.op).op
                                                   : node.label));
    node.signature = node.label;
    for (TensorId write : recordWrites(record))
      node.signature += " " + describe(tensorOf(bucket_, write));
    node.tooltip = fmt::format("record {}", i);
    if (record.branch > 0)
      node.tooltip += fmt::format(" in branch {}", record.branch);
    if (record.location != kNoLocation) {
      const SourceLocation &where = plan_.locations[static_cast<uint32_t>(record.location)];
      node.tooltip += fmt::format(": {}:{} {}", where.file, where.line, where.module);
      if (!where.module.empty())
        node.path += "." + where.module;
    }
    records_.push_back(drawing_.addNode(std::move(node)));
    for (TensorId read : recordReads(record)) {
      if (read == kNoTensor)
        continue;
      const TensorRef &tensor = tensorOf(bucket_, read);
      const Extent extent = extentOf(tensor);
      if (extent.buffer == BufferKind::Input)
        drawing_.addEdge(inputs_[extent.index], records_.back(), describe(tensor));
      for (size_t writer : writers_.of(extent))
        drawing_.addEdge(records_[writer], records_.back(), describe(tensor));
    }
    writers_.add(i);
  }

  const PlanData &plan_;
  const std::string entry_;
  const Bucket &bucket_;
  DotGraph &drawing_;
  Writers writers_;                        ///< The writers among the records drawn so far.
  std::vector<unsigned> inputs_, records_; ///< Node numbers.
};

} // namespace

std::string planDot(const PlanData &plan, std::string_view entry) {
  DotGraph drawing("plan");
  for (const Entry &e : plan.entries)
    if ((entry.empty() || e.name == entry) && !e.buckets.empty())
      BucketDrawing(plan, e, drawing).draw();
  std::string text;
  llvm::raw_string_ostream os(text);
  drawing.write(os);
  return text;
}

} // namespace cgc::tool

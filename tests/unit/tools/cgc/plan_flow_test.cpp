// Tests of plan flow: the lifetimes of arena buffers, derived from the records, and their drawing.
#include "tools/cgc/draw/plan_flow.h"

#include "tools/cgc/draw/memory_svg.h"

#include "gmock/gmock.h"

#include <regex>

namespace cgc::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Builds a bucket whose records access bytes of the arena. Input 0 and output 0 have 8 bytes.
class Builder {
public:
  Builder() {
    bucket.inputs = {{.name = "x", .dtype = DType::U8, .sizes = {8}}};
    bucket.outputs = {{.name = "y", .dtype = DType::U8, .sizes = {8}}};
    input = tensor(BufferKind::Input, 0, {8}, {1});
    output = tensor(BufferKind::Output, 0, {8}, {1});
  }

  TensorId tensor(BufferKind buffer, uint64_t offset, std::vector<int64_t> sizes,
                  std::vector<int64_t> strides) {
    bucket.tensors.push_back({{buffer, 0, offset}, DType::U8, sizes, strides});
    return TensorId(bucket.tensors.size() - 1);
  }
  TensorId arena(uint64_t begin, uint64_t end) {
    bucket.arenaBytes = std::max(bucket.arenaBytes, end);
    return tensor(BufferKind::Arena, begin, {static_cast<int64_t>(end - begin)}, {1});
  }
  void record(std::vector<TensorId> reads, std::vector<TensorId> writes) {
    bucket.records.push_back(
        {.op = KernelLaunch{.kernel = "copy", .reads = reads, .writes = writes}});
  }

  /// Each buffer as "begin-end@first-last".
  std::vector<std::string> buffers() const {
    std::vector<std::string> texts;
    for (const ArenaBuffer &b : arenaBuffers(bucket))
      texts.push_back(std::to_string(b.begin) + "-" + std::to_string(b.end) + "@" +
                      std::to_string(b.first) + "-" + std::to_string(b.last));
    return texts;
  }

  Bucket bucket;
  TensorId input, output;
};

TEST(ArenaBuffers, LiveFromTheWriterToTheLastReader) {
  Builder b;
  const TensorId p = b.arena(0, 8), q = b.arena(8, 16);
  b.record({b.input}, {p});
  b.record({p}, {q});
  b.record({p, q}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-2", "8-16@1-2"));
}

TEST(ArenaBuffers, MemoryThatIsUsedAgainIsAnotherBuffer) {
  Builder b;
  const TensorId p = b.arena(0, 8), q = b.arena(8, 16);
  b.record({b.input}, {p});
  b.record({p}, {q});
  b.record({q}, {p});
  b.record({p}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-1", "8-16@1-2", "0-8@2-3"));
}

TEST(ArenaBuffers, PartsThatAreReadAsOneAreOne) {
  Builder b;
  const TensorId left = b.arena(0, 4), right = b.arena(4, 8), both = b.arena(0, 8);
  b.record({b.input}, {left});
  b.record({b.input}, {right});
  b.record({both}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-2"));
}

TEST(ArenaBuffers, InterleavedPartsAreOne) {
  Builder b;
  const TensorId even = b.tensor(BufferKind::Arena, 0, {4}, {2});
  const TensorId odd = b.tensor(BufferKind::Arena, 1, {4}, {2});
  const TensorId both = b.arena(0, 8);
  b.record({b.input}, {even});
  b.record({b.input}, {odd});
  b.record({both}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-2"));
}

TEST(ArenaBuffers, WhatIsUpdatedInPlaceStaysOne) {
  Builder b;
  const TensorId p = b.arena(0, 8);
  b.record({b.input}, {p});
  b.record({p}, {p});
  b.record({p}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-2"));
}

TEST(ArenaBuffers, AResultThatNobodyReadsIsOne) {
  Builder b;
  b.record({b.input}, {b.arena(0, 8)});
  b.record({b.input}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-0"));
}

TEST(ArenaBuffers, ReadsInPiecesAndPartlyOverlappingAreOne) {
  Builder b;
  for (const auto &[begin, end] : {std::pair(4, 6), {0, 2}, {2, 4}, {6, 8}})
    b.record({b.input}, {b.arena(begin, end)});
  b.record({b.arena(0, 5), b.arena(4, 8)}, {b.output});
  b.record({b.input}, {b.arena(8, 12)});
  b.record({b.arena(8, 12), b.arena(2, 3)}, {b.output});
  EXPECT_THAT(b.buffers(), ElementsAre("0-8@0-6", "8-12@5-6"));
}

TEST(Writers, AreThoseWhoseBytesAreStillThere) {
  Builder b;
  b.record({b.input}, {b.arena(0, 8)});
  b.record({b.input}, {b.arena(2, 4)});
  b.record({b.input}, {b.arena(6, 10)});
  b.record({b.input}, {b.output});
  Writers writers(b.bucket);
  const auto of = [&](uint64_t begin, uint64_t end) {
    return writers.of({BufferKind::Arena, 0, begin, end});
  };
  EXPECT_THAT(of(0, 8), ElementsAre());
  writers.add(0);
  EXPECT_THAT(of(0, UINT64_MAX), ElementsAre(0));
  writers.add(1);
  writers.add(2);
  writers.add(3);
  EXPECT_THAT(of(0, 10), ElementsAre(2, 1, 0));
  EXPECT_THAT(of(4, 6), ElementsAre(0));
  EXPECT_THAT(of(2, 4), ElementsAre(1));
  EXPECT_THAT(of(3, 7), ElementsAre(2, 1, 0));
  EXPECT_THAT(of(10, 20), ElementsAre());
  EXPECT_THAT(writers.of({BufferKind::Output, 0, 0, UINT64_MAX}), ElementsAre(3));
}

/// A plan may have a million records, for which quadratic time is too slow.
TEST(PlanSvg, ManyRecordsWithLongLivesAreDrawn) {
  constexpr uint64_t kRecords = 200'000;
  Builder b;
  for (uint64_t i = 0; i < kRecords; ++i)
    b.record({i == 0 ? b.input : TensorId(2)}, {b.arena(8 * i, 8 * i + 8)});
  std::vector<TensorId> all(b.bucket.tensors.size() - 2);
  for (uint32_t i = 0; i < all.size(); ++i)
    all[i] = TensorId(i + 2);
  b.record(all, {b.output});
  Writers writers(b.bucket);
  for (uint64_t i = 0; i <= kRecords; ++i)
    writers.add(i);
  EXPECT_EQ(writers.of({BufferKind::Arena, 0, 0, UINT64_MAX}).size(), kRecords);
  EXPECT_EQ(arenaBuffers(b.bucket).size(), kRecords);
  PlanData plan;
  plan.entries = {{.name = "a", .buckets = {b.bucket}}};
  EXPECT_THAT(planSvg(plan, "a", ""), HasSubstr("of which at most 1.6 MB are in use at once"));
}

TEST(PlanSvg, HasARectangleForEachBufferAndIsTheSameEachTime) {
  Builder b;
  const TensorId p = b.arena(0, 4000), q = b.arena(4096, 8096);
  b.record({b.input}, {p});
  b.record({p}, {q});
  b.record({q}, {b.output});
  PlanData plan;
  plan.entries = {{.name = "a<b", .buckets = {b.bucket}}, {.name = "other", .buckets = {b.bucket}}};
  const std::string drawing = "<?xml?>\n<svg width=\"62pt\" height=\"116pt\" "
                              "viewBox=\"0.00 0.00 62.00 116.00\">\n<g/>\n</svg>\n";
  const std::string svg = planSvg(plan, "a<b", drawing);
  // The chart begins at record 0 at the bottom left: 1290 by 448 pixels are 3 records by 8096
  // bytes.
  EXPECT_THAT(svg, HasSubstr("<rect x=\"90.0\" y=\"272.66\" width=\"860.0\" height=\"221.34\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"520.0\" y=\"46.00\" width=\"860.0\" height=\"221.34\""));
  EXPECT_THAT(svg, HasSubstr("of which at most 8.0 kB are in use at once"));
  EXPECT_THAT(svg, HasSubstr("kernel copy u8[4000]\n4.0 kB at offset 0\nrecords 0 to 1\n"));
  EXPECT_THAT(svg, HasSubstr("at offset 4096\nrecords 1 to 2\n"));
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("other"))) << "one entry was asked for";
  EXPECT_THAT(svg,
              HasSubstr("width=\"62.0\" height=\"116.0\" viewBox=\"0.00 0.00 62.00 116.00\">"));
  EXPECT_EQ(svg, planSvg(plan, "a<b", drawing));
}

/// An SVG rectangle of height 0 is invisible.
TEST(PlanSvg, ShowsABufferOf8BytesInAGigabyte) {
  Builder b;
  const TensorId small = b.arena(0, 8), large = b.arena(256, 1'000'000'000);
  b.record({b.input}, {small});
  b.record({small}, {large});
  b.record({large}, {b.output});
  PlanData plan;
  plan.entries = {{.name = "main", .buckets = {b.bucket}}};
  const std::string svg = planSvg(plan, "", "");
  EXPECT_THAT(svg, HasSubstr("8 B at offset 0\nrecords 0 to 1\n"));
  const std::regex flat("<rect [^>]*height=\"0\\.?0*\"[^>]*>");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(svg, found, flat)) << found[0];
}

TEST(PlanSvg, ChartsAreAsWideAsTheDrawing) {
  Builder b;
  const TensorId p = b.arena(0, 4000);
  b.record({b.input}, {p});
  b.record({p}, {b.output});
  PlanData plan;
  plan.entries = {{.name = "a", .buckets = {b.bucket}}};
  const std::string svg =
      planSvg(plan, "", "<svg viewBox=\"0.00 0.00 3110.00 116.00\">\n<g/>\n</svg>\n");
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 3110 676\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"90.0\" y=\"46.0\" width=\"3000.0\""));
}

} // namespace
} // namespace cgc::tool

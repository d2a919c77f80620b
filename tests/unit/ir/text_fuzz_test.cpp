// Text fuzzing: on mutated IR text the parser never crashes or hangs, and any module it accepts
// round-trips and can be verified and drawn.
#include "ir_test_util.h"

#include "ir/text/dot.h"

#include <random>

namespace cgc::ir {
namespace {

constexpr llvm::StringLiteral kSeed = R"(module @CLIP class="CLIP" {
  param @w : f32[4,3,2,2]
  const @c0 : i64[]
  attr heads = [8, 1.5, "a\n", none, true, f16, cuda, -inf]
  module @visual {
    graph @forward(%x: f16[1,3,8,8]@cuda, %"a b": dynamic) -> (out: dynamic) {
      %0 = aten.relu_(%x) : f16[1,3,8,8]@cuda loc("m.py":3 "visual")
      %a, %b = aten.chunk(%0) {chunks=2} : dynamic, f32[2,3][1,2]
      %n = aten.size(%"a b") {dim=0} : dynamic
      %1 = aten.view(%a) {size=[%n, -1, [1]]} : dynamic ; comment
      output [%1, [%b]] loc("":0 "m")
    }
  }
  graph @forward(%x: f32[1,3,8,8]) {
    %w = get_attr @w : f32[4,3,2,2]
    %0 = aten.conv2d(%x, %w, none) {stride=[2, 2]} : f32[1,4,4,4]
    %1 = aten.fallback "aten::foo(Tensor self) -> Tensor" (%0, 3e5) : dynamic
    %2 = call_module @visual.forward(%1, 0) : dynamic
    output %2
  }
}
)";

void check(const std::string &text) {
  Diagnostics diagnostics;
  auto module = parseModule(text, "fuzz", diagnostics);
  ASSERT_EQ(module == nullptr, diagnostics.hasErrors()) << text;
  if (!module) {
    EXPECT_FALSE(diagnostics.render().empty());
    return;
  }
  std::string printed = toString(*module);
  Diagnostics again;
  auto back = parseModule(printed, "printed", again);
  ASSERT_TRUE(back) << again.render() << text;
  ASSERT_EQ(toString(*back), printed) << text;
  Diagnostics verifying;
  verify(*module, verifying);
  llvm::raw_null_ostream os;
  for (const auto &graph : module->graphs())
    writeDot(os, *graph);
}

TEST(TextFuzz, SeedIsGood) {
  std::string text = kSeed.str();
  parsed(text);
  check(text);
}

TEST(TextFuzz, EveryPrefix) {
  for (size_t length = 0; length <= kSeed.size(); ++length)
    check(kSeed.take_front(length).str());
}

TEST(TextFuzz, EveryLineRemovedOrDoubled) {
  llvm::SmallVector<llvm::StringRef> lines;
  kSeed.split(lines, '\n');
  for (size_t victim = 0; victim < lines.size(); ++victim)
    for (unsigned copies : {0u, 2u}) {
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i)
        for (unsigned n = 0; n < (i == victim ? copies : 1); ++n)
          text += lines[i].str() + "\n";
      check(text);
    }
}

TEST(TextFuzz, RandomEdits) {
  std::mt19937 random(1); // The C++ standard fixes its sequence.
  auto below = [&](size_t n) { return random() % n; };
  constexpr llvm::StringLiteral kBytes = "(){}[],:=%@\"\\;-.eE019 \n\tx_\x80";
  for (int round = 0; round < 5000; ++round) {
    std::string text = kSeed.str();
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      size_t at = below(text.size());
      switch (below(4)) {
      case 0:
        text[at] = kBytes[below(kBytes.size())];
        break;
      case 1:
        text.insert(at, 1, kBytes[below(kBytes.size())]);
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3: { // Copies a piece of the text elsewhere.
        size_t from = below(text.size());
        text.insert(at, text.substr(from, 1 + below(20)));
        break;
      }
      }
    }
    check(text);
    if (HasFatalFailure())
      return;
  }
}

TEST(TextFuzz, RandomBytes) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string text(random() % 300, '\0');
    for (char &c : text)
      c = static_cast<char>(random());
    check(text);
  }
}

} // namespace
} // namespace cgc::ir

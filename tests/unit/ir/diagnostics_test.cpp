// Diagnostics: what a terminal gets of text from a model's file.
#include "ir_test_util.h"

#include <gmock/gmock.h>

namespace cgc::ir {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(DiagnosticsText, EscapesWhatComesFromTheModel) {
  Graph graph("f");
  Node *const node = graph.call(OpKind::Fallback, {Arg(std::vector<Arg>())}, 1,
                                {"a\x1b[31m.py", 3, "block\x1b]0;owned\x07"});
  node->setTarget("my::op\x1b[2J(Tensor self) -> Tensor");
  Diagnostics diagnostics;
  diagnostics.error(*node, "first line\nthe model says \x1b[1mroot\xe2\x80\xae");
  EXPECT_THAT(diagnostics.render(),
              AllOf(HasSubstr("a\\x1b[31m.py:3: error: first line\nthe model says \\x1b[1mroot"
                              "\\xe2\\x80\\xae\n"),
                    HasSubstr("in module 'block\\x1b]0;owned\\x07'"), Not(HasSubstr("\x1b"))));
}

TEST(DiagnosticsText, LongMessagesAreCut) {
  Graph graph("f");
  Diagnostics diagnostics;
  diagnostics.error(graph, "the model raises " + std::string(1 << 20, 'x'));
  EXPECT_LT(diagnostics.render().size(), 20000u);
  EXPECT_THAT(diagnostics.render(), HasSubstr("... (1048600 bytes)"));
}

} // namespace
} // namespace cgc::ir

// fallback: the op that an aten.fallback's schema names.
#include "ir_test_util.h"

#include "ir/fallback.h"

namespace cgc::ir {
namespace {

/// Checks the name parts of a node with this schema.
void expectName(const std::string &schema, llvm::StringRef full, llvm::StringRef op,
                llvm::StringRef overload) {
  Graph graph("f");
  Node *const node = graph.call(OpKind::Fallback, {Arg(std::vector<Arg>())}, 1, Loc::unknown());
  node->setTarget(schema);
  const FallbackName name = fallbackName(*node);
  EXPECT_EQ(name.full, full);
  EXPECT_EQ(name.op, op);
  EXPECT_EQ(name.overload, overload);
}

TEST(Fallback, OverloadsAreApart) {
  expectName("aten::add.Tensor(Tensor self, Tensor other) -> Tensor", "aten::add.Tensor",
             "aten::add", "Tensor");
  expectName("aten::i0(Tensor self) -> Tensor", "aten::i0", "aten::i0", "");
}

/// A dot or parenthesis inside the arguments belongs to no name.
TEST(Fallback, ArgumentsBelongToNoName) {
  expectName("aten::normal_(Tensor(a!) self, float mean=0.5, str s=\"(.\") -> Tensor(a!)",
             "aten::normal_", "aten::normal_", "");
}

TEST(Fallback, ATextWithoutArgumentsIsTheName) {
  expectName("my::op.out", "my::op.out", "my::op", "out");
  expectName("", "", "", "");
}

} // namespace
} // namespace cgc::ir

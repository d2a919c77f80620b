// Schemas: parses every form, checks arguments, and checks that every op's schema is well formed.
#include "ir_test_util.h"

#include "ir/op_def.h"

#include <set>

namespace cgc::ir {
namespace {

TEST(OpKind, EnumeratorsFollowTheText) {
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kRows[] = {
#define CGC_OP(Enum, text) {#Enum, text},
#include "ir/ops.def"
  };
  for (const auto &[enumerator, text] : kRows) {
    const auto [space, name] = llvm::StringRef(text).split('.');
    std::string expected = space == "prim" ? "prim" : space == "cgc" ? "cgc" : "";
    for (const char c : name)
      if (c != '_')
        expected += c;
    EXPECT_EQ(enumerator.lower(), expected) << text.str();
  }
}

TEST(Schema, ParsesEveryForm) {
  Schema schema =
      parseSchema("(Tensor self, Tensor? mask=none, Tensor[] list, Tensor?[] indices, "
                  "Tensor|number other, number alpha=1, int[] size=[1,-2], int? dim=none, "
                  "float eps=1e-05, bool flag=true, str mode=\"none\", dtype? dtype=none, "
                  "device? device=none, any x) -> (Tensor, Tensor)");
  ASSERT_EQ(schema.args.size(), 14u);
  EXPECT_EQ(schema.numResults, 2u);
  EXPECT_FALSE(schema.listResult);
  EXPECT_EQ(schema.find("size"), 6u);
  EXPECT_FALSE(schema.find("nothing"));
  auto arg = [&](llvm::StringRef name) { return schema.args[*schema.find(name)]; };
  EXPECT_FALSE(arg("self").isOptional || arg("self").isList || arg("self").defaultValue);
  EXPECT_TRUE(arg("mask").isOptional && arg("mask").defaultValue->isNone());
  EXPECT_TRUE(arg("list").isList && !arg("list").isOptional);
  EXPECT_TRUE(arg("indices").isList && arg("indices").isOptional);
  EXPECT_EQ(arg("other").kind, ArgKind::TensorOrNumber);
  EXPECT_EQ(arg("alpha").kind, ArgKind::Number);
  EXPECT_EQ(*arg("size").defaultValue, Arg::ints(std::vector<int64_t>{1, -2}));
  EXPECT_EQ(*arg("eps").defaultValue, Arg(1e-5));
  EXPECT_EQ(*arg("flag").defaultValue, Arg(true));
  EXPECT_EQ(*arg("mode").defaultValue, Arg("none"));
  EXPECT_EQ(arg("dtype").kind, ArgKind::DType);
  EXPECT_EQ(arg("device").kind, ArgKind::Device);
  EXPECT_EQ(arg("x").kind, ArgKind::Any);
}

TEST(Schema, Results) {
  EXPECT_EQ(parseSchema("() -> Tensor").numResults, 1u);
  EXPECT_TRUE(parseSchema("() -> Tensor[]").listResult);
  EXPECT_EQ(parseSchema("() -> (Tensor, Tensor, Tensor)").numResults, 3u);
  EXPECT_TRUE(parseSchema("() -> (Tensor, Tensor?)").listResult);
  EXPECT_EQ(parseSchema("() -> (Tensor, Tensor?)").numResults, 1u);
  EXPECT_EQ(parseSchema("() -> any").numResults, 1u);
}

TEST(Schema, CheckArgs) {
  Schema schema = parseSchema("(Tensor self, int[] size, float? scale=none) -> Tensor");
  Graph graph("f");
  Value *x = graph.placeholder("x", Type(), Loc::unknown())->result();
  auto list = [](std::vector<Arg> items) { return Arg(std::move(items)); };
  EXPECT_TRUE(checkArgs(schema, {x, list({1, 2}), Arg()}).isOk());
  EXPECT_TRUE(checkArgs(schema, {x, list({x, 2}), 1.5}).isOk());
  EXPECT_TRUE(checkArgs(schema, {x, x, 1}).isOk());
  EXPECT_FALSE(checkArgs(schema, {x, list({1})}).isOk());
  EXPECT_FALSE(checkArgs(schema, {x, list({Arg()}), Arg()}).isOk());
  EXPECT_FALSE(checkArgs(schema, {x, list({1.5}), Arg()}).isOk());
  EXPECT_FALSE(checkArgs(schema, {1, list({1}), Arg()}).isOk());
  Status status = checkArgs(schema, {x, list({1}), "s"});
  EXPECT_THAT(status.message(), testing::HasSubstr("argument 'scale'"));
}

TEST(OpTable, NamesAreUniqueAndReadBack) {
  std::set<std::string> names;
  for (unsigned i = 0; i < kNumOps; ++i) {
    auto op = static_cast<OpKind>(i);
    EXPECT_TRUE(names.insert(opName(op).str()).second) << opName(op).str();
    EXPECT_EQ(parseOpName(opName(op)), op);
  }
  EXPECT_FALSE(parseOpName("aten.nothing"));
}

TEST(OpTable, EverySchemaParsesAndEveryOpIsDocumented) {
  for (unsigned i = 0; i < kNumOps; ++i) {
    auto op = static_cast<OpKind>(i);
    const Schema &schema = opSchema(op);
    std::set<std::string> names;
    for (const SchemaArg &arg : schema.args) {
      EXPECT_TRUE(isalpha(arg.name[0])) << opName(op).str();
      EXPECT_TRUE(names.insert(arg.name).second) << opName(op).str() << " " << arg.name;
      if (arg.defaultValue && !arg.defaultValue->isNone()) {
        std::vector<Arg> args{*arg.defaultValue};
        Schema single;
        single.args = {arg};
        EXPECT_TRUE(checkArgs(single, args).isOk()) << opName(op).str() << " " << arg.name;
      }
    }
    EXPECT_GT(std::strlen(opDef(op).doc), 10u) << opName(op).str();
  }
}

TEST(OpTable, NoOpsNameEndsInTheInPlaceMark) {
  for (unsigned i = 0; i < kNumOps; ++i)
    EXPECT_FALSE(opName(static_cast<OpKind>(i)).ends_with("_"));
}

} // namespace
} // namespace cgc::ir

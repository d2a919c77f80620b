// Host ops: lists, dicts, and reads of a tensor's type.
#include "ir/graph.h"
#include "ir/op_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::ir {
namespace {

class HostOps : public ::testing::Test {
protected:
  Value *tensor(llvm::StringRef type) {
    return graph.placeholder("t", *parseTensorType(type), Loc::unknown())->result();
  }
  static Result<Arg> evaluate(OpKind op, std::vector<Arg> args) {
    EXPECT_EQ(args.size(), opSchema(op).args.size());
    return opDef(op).evaluate(args);
  }
  static std::string errorOf(OpKind op, std::vector<Arg> args) {
    return evaluate(op, std::move(args)).status().message();
  }

  Graph graph{"g"};
};

TEST_F(HostOps, ListsKeepTensorsAndConstants) {
  Value *x = tensor("f32[2]");
  Arg list(Arg::List{x, 2, Arg()});
  EXPECT_TRUE(*evaluate(OpKind::PrimList, {list}) == list);
  EXPECT_TRUE(*evaluate(OpKind::PrimUnpack, {list}) == list);
  EXPECT_TRUE(*evaluate(OpKind::PrimGetItem, {list, 0}) == Arg(x));
  EXPECT_TRUE(*evaluate(OpKind::PrimGetItem, {list, -2}) == Arg(2));
  EXPECT_TRUE(*evaluate(OpKind::PrimLen, {list}) == Arg(3));
  EXPECT_EQ(errorOf(OpKind::PrimGetItem, {list, 3}),
            "expected 'index' to be inside a list of 3, got 3");
  EXPECT_EQ(errorOf(OpKind::PrimGetItem, {list, -4}),
            "expected 'index' to be inside a list of 3, got -4");
  EXPECT_THAT(errorOf(OpKind::PrimGetItem, {x, 0}), ::testing::HasSubstr("expected a list"));
  EXPECT_THAT(errorOf(OpKind::PrimUnpack, {x}), ::testing::HasSubstr("expected a list"));
}

TEST_F(HostOps, DictsAreReadByKey) {
  Value *x = tensor("f32[2]");
  auto dict = evaluate(OpKind::PrimDict, {Arg::List{"a", "b"}, Arg::List{x, 2}});
  ASSERT_TRUE(dict.isOk());
  EXPECT_TRUE(*evaluate(OpKind::PrimGetItem, {*dict, "a"}) == Arg(x));
  EXPECT_TRUE(*evaluate(OpKind::PrimGetItem, {*dict, "b"}) == Arg(2));
  EXPECT_TRUE(*evaluate(OpKind::PrimLen, {*dict}) == Arg(2));
  EXPECT_EQ(errorOf(OpKind::PrimGetItem, {*dict, "c"}), "the dict has no key \"c\"");
  EXPECT_EQ(errorOf(OpKind::PrimDict, {Arg::List{"a"}, Arg::List{}}),
            "expected as many 'keys' as 'values', got 1 and 0");
}

TEST_F(HostOps, TensorsTellTheirType) {
  Value *x = tensor("f16[2,3,4]"), *scalar = tensor("i64[]");
  EXPECT_TRUE(*evaluate(OpKind::Size, {x, Arg()}) == Arg::ints(Dims{2, 3, 4}));
  EXPECT_TRUE(*evaluate(OpKind::Size, {x, -1}) == Arg(4));
  EXPECT_TRUE(*evaluate(OpKind::Size, {scalar, Arg()}) == Arg(Arg::List{}));
  EXPECT_TRUE(*evaluate(OpKind::Dim, {x}) == Arg(3));
  EXPECT_TRUE(*evaluate(OpKind::Numel, {x}) == Arg(24));
  EXPECT_TRUE(*evaluate(OpKind::PrimLen, {x}) == Arg(2));
  EXPECT_TRUE(*evaluate(OpKind::PrimDType, {x}) == Arg(DType::F16));
  EXPECT_TRUE(*evaluate(OpKind::PrimDevice, {x}) == Arg(DeviceKind::Cpu));
  EXPECT_EQ(errorOf(OpKind::Size, {x, 3}), "expected 'dim' to be in [-3, 2], got 3");
  EXPECT_EQ(errorOf(OpKind::Size, {scalar, 0}),
            "expected 'self' to be of rank 1 or more, got i64[]");
  EXPECT_THAT(errorOf(OpKind::PrimLen, {scalar}), ::testing::HasSubstr("got i64[]"));
}

TEST_F(HostOps, DynamicValuesAreRefused) {
  Value *unknown = graph.placeholder("d", Type(), Loc::unknown())->result();
  EXPECT_THAT(errorOf(OpKind::Size, {unknown, Arg()}),
              ::testing::HasSubstr("known at compile time"));
  EXPECT_THAT(errorOf(OpKind::Size, {tensor("f32[2]"), unknown}),
              ::testing::HasSubstr("known at compile time"));
  EXPECT_THAT(errorOf(OpKind::PrimInt, {unknown}), ::testing::HasSubstr("known at compile time"));
  EXPECT_THAT(errorOf(OpKind::PrimLen, {unknown}), ::testing::HasSubstr("known at compile time"));
}

} // namespace
} // namespace cgc::ir

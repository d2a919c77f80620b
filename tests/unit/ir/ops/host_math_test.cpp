// host_math: Python arithmetic on numbers, and errors where Python or int64 has no answer.
#include "ir/op_def.h"
#include "ir/ops/host_math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace cgc::ir {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

/// Evaluates `op` with these arguments, and the schema's defaults for the others.
Result<Arg> evaluate(OpKind op, std::vector<Arg> args) {
  const Schema &schema = opSchema(op);
  for (size_t i = args.size(); i < schema.args.size(); ++i)
    args.push_back(schema.args[i].defaultValue.value_or(Arg()));
  return opDef(op).evaluate(args);
}

void expectValue(OpKind op, std::vector<Arg> args, Arg expected) {
  auto result = evaluate(op, std::move(args));
  ASSERT_TRUE(result.isOk()) << opName(op).str() << ": " << result.status().message();
  EXPECT_TRUE(*result == expected) << opName(op).str();
}

void expectError(OpKind op, std::vector<Arg> args, const std::string &message) {
  auto result = evaluate(op, std::move(args));
  ASSERT_FALSE(result.isOk()) << opName(op).str();
  EXPECT_THAT(result.status().message(), ::testing::HasSubstr(message));
}

TEST(HostMath, IntsStayInts) {
  expectValue(OpKind::Add, {3, 4}, 7);
  expectValue(OpKind::Add, {3, 4, 2}, 11);
  expectValue(OpKind::Sub, {3, 4, 2}, -5);
  expectValue(OpKind::Rsub, {3, 4, 2}, -2);
  expectValue(OpKind::Mul, {-3, 4}, -12);
  expectValue(OpKind::Neg, {5}, -5);
  expectValue(OpKind::Pow, {3, 4}, 81);
  expectValue(OpKind::Pow, {-2, 63}, kMin);
  expectValue(OpKind::Maximum, {3, 4}, 4);
  expectValue(OpKind::Minimum, {3, 4}, 3);
}

TEST(HostMath, AFloatMakesFloats) {
  expectValue(OpKind::Add, {3, 0.5}, 3.5);
  expectValue(OpKind::Mul, {2.0, 4}, 8.0);
  expectValue(OpKind::Pow, {4, 0.5}, 2.0);
  expectValue(OpKind::Pow, {2, -1}, 0.5);
  expectValue(OpKind::Neg, {2.5}, -2.5);
}

TEST(HostMath, FloorAndCeilOfPythonGiveInts) {
  expectValue(OpKind::PrimFloor, {-2.5}, -3);
  expectValue(OpKind::PrimCeil, {-2.5}, -2);
  expectValue(OpKind::PrimFloor, {7}, 7);
  expectValue(OpKind::PrimFloor, {100 * 0.29}, 28); // 28.999999999999996
  expectError(OpKind::PrimCeil, {1e300}, "does not fit in 64 bits");
}

TEST(HostMath, ATensorOfOneNumberIsRounded) {
  expectValue(OpKind::Floor, {-2.5}, -3.0);
  expectValue(OpKind::Ceil, {-2.5}, -2.0);
  expectValue(OpKind::Trunc, {-2.5}, -2.0);
  expectValue(OpKind::Round, {2.5}, 2.0);
  expectValue(OpKind::Round, {3.5}, 4.0);
  expectValue(OpKind::Floor, {7}, 7);
  expectValue(OpKind::Sqrt, {16}, 4.0);
  // Below 29, and 29 in f32.
  expectError(OpKind::Floor, {100 * double(0.29F)}, "is 29.000000 in f32 and 28.000000 in f64");
}

TEST(HostMath, ToConvertsAsATensor) {
  expectValue(OpKind::To, {4.75, DType::I64}, 4);
  expectValue(OpKind::To, {-4.75, DType::I32}, -4);
  expectError(OpKind::To, {100 * 0.29, DType::I64}, "is 29.000000 in f32 and 28.000000 in f64");
  expectValue(OpKind::To, {0.29, DType::F32}, double(0.29F));
  expectValue(OpKind::To, {0.29, DType::F64}, 0.29);
  expectValue(OpKind::To, {2049, DType::F16}, 2048.0);
  expectValue(OpKind::To, {257, DType::BF16}, 256.0);
  expectValue(OpKind::To, {3, DType::Bool}, true);
  expectValue(OpKind::To, {255, DType::U8}, 255);
  expectValue(OpKind::To, {0.5}, 0.5);
  expectError(OpKind::To, {256, DType::U8}, "256 does not fit in u8");
  expectError(OpKind::To, {-1, DType::U8}, "-1 does not fit in u8");
  expectError(OpKind::To, {128, DType::I8}, "128 does not fit in i8");
}

TEST(HostMath, DivisionIsPythons) {
  expectValue(OpKind::Div, {7, 2}, 3.5);
  expectValue(OpKind::Div, {8, 2}, 4.0);
  expectValue(OpKind::Div, {-7, 2, "floor"}, -4);
  expectValue(OpKind::Div, {-7, 2, "trunc"}, -3);
  expectValue(OpKind::Div, {7, -2.0, "floor"}, -4.0);
  for (auto [a, b, quotient, remainder] :
       {std::tuple(7, 2, 3, 1), std::tuple(-7, 2, -4, 1), std::tuple(7, -2, -4, -1),
        std::tuple(-7, -2, 3, -1), std::tuple(6, -3, -2, 0)}) {
    expectValue(OpKind::FloorDivide, {a, b}, quotient);
    expectValue(OpKind::Remainder, {a, b}, remainder);
    expectValue(OpKind::FloorDivide, {double(a), b}, double(quotient));
    expectValue(OpKind::Remainder, {a, double(b)}, double(remainder));
  }
}

TEST(HostMath, WhatHasNoAnswerIsAnError) {
  expectError(OpKind::Add, {kMax, 1}, "does not fit in 64 bits");
  expectError(OpKind::Add, {0, kMax, 2}, "does not fit in 64 bits");
  expectError(OpKind::Sub, {kMin, 1}, "does not fit in 64 bits");
  expectError(OpKind::Mul, {kMax, 2}, "does not fit in 64 bits");
  expectError(OpKind::Neg, {kMin}, "does not fit in 64 bits");
  expectError(OpKind::FloorDivide, {kMin, -1}, "does not fit in 64 bits");
  expectError(OpKind::Pow, {10, 19}, "does not fit in 64 bits");
  for (OpKind op : {OpKind::Div, OpKind::FloorDivide, OpKind::Remainder}) {
    expectError(op, {1, 0}, "division of a number by zero");
    expectError(op, {1.5, 0.0}, "division of a number by zero");
  }
  expectError(OpKind::Pow, {0, -1}, "by zero");
  expectError(OpKind::Pow, {-8, 0.5}, "no finite value");
  expectError(OpKind::Pow, {10.0, 400}, "no finite value");
  expectError(OpKind::Add, {"a", 1}, "expected a number");
  expectError(OpKind::Div, {7, 2, "up"}, "rounding_mode");
  expectError(OpKind::PrimInt, {1e300}, "does not fit in 64 bits");
  expectError(OpKind::PrimInt, {std::numeric_limits<double>::quiet_NaN()}, "does not fit");
}

TEST(HostMath, Comparisons) {
  const OpKind ops[] = {OpKind::Lt, OpKind::Le, OpKind::Eq, OpKind::Ne, OpKind::Ge, OpKind::Gt};
  const bool less[] = {true, true, false, true, false, false};
  const bool equal[] = {false, true, true, false, true, false};
  const bool unordered[] = {false, false, false, true, false, false};
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < 6; ++i) {
    expectValue(ops[i], {1, 2}, less[i]);
    expectValue(ops[i], {1, 1.5}, less[i]);
    expectValue(ops[i], {2, 2.0}, equal[i]);
    expectValue(ops[i], {true, 1}, equal[i]);
    expectValue(ops[i], {nan, nan}, unordered[i]);
    // Converted to doubles, these two would be equal.
    expectValue(ops[i], {kMax - 1, kMax}, less[i]);
  }
}

TEST(HostMath, BitsAndBools) {
  expectValue(OpKind::BitwiseAnd, {6, 3}, 2);
  expectValue(OpKind::BitwiseOr, {6, 3}, 7);
  expectValue(OpKind::BitwiseAnd, {true, false}, false);
  expectValue(OpKind::BitwiseOr, {true, false}, true);
  expectValue(OpKind::BitwiseAnd, {true, 3}, 1);
  expectValue(OpKind::BitwiseNot, {5}, -6);
  expectValue(OpKind::BitwiseNot, {true}, false);
  expectError(OpKind::BitwiseAnd, {1.0, 2}, "got a float");
  expectValue(OpKind::PrimNot, {0}, true);
  expectValue(OpKind::PrimNot, {0.5}, false);
}

TEST(HostMath, Conversions) {
  expectValue(OpKind::PrimInt, {2.9}, 2);
  expectValue(OpKind::PrimInt, {-2.9}, -2);
  expectValue(OpKind::PrimInt, {true}, 1);
  expectValue(OpKind::PrimFloat, {2}, 2.0);
  expectValue(OpKind::PrimBool, {0.0}, false);
  expectValue(OpKind::PrimBool, {3}, true);
  expectValue(OpKind::PrimNumToTensor, {3}, 3);
}

} // namespace
} // namespace cgc::ir

// Lowering: builds the table of lowerings from aten_calls.def; the compiler checks that no op is
// missing.
#include "backend/lowering.h"

#include "runtime/plan/aten_ops.h"

#include <array>

namespace cgc::backend {
namespace {

// Each row is a template specialization, so that an op of ir/ops.def without a row in
// aten_calls.def is a compile error here.
template <ir::OpKind> struct RowOf;

#define CGC_HOST(Enum)                                                                             \
  template <> struct RowOf<ir::OpKind::Enum> {                                                     \
    static constexpr Lowering row{Lowering::Kind::Host};                                           \
  };
#define CGC_VIEW(Enum)                                                                             \
  template <> struct RowOf<ir::OpKind::Enum> {                                                     \
    static constexpr Lowering row{Lowering::Kind::View};                                           \
  };
#define CGC_CALL(Kind_, Enum, op, overload, ...)                                                   \
  static_assert(isAllowedAtenOp(op), op " is not in runtime/plan/aten_ops.h");                     \
  template <> struct RowOf<ir::OpKind::Enum> {                                                     \
    static std::vector<AtenArg> extra() {                                                          \
      return {__VA_ARGS__};                                                                        \
    }                                                                                              \
    static constexpr Lowering row{Lowering::Kind::Kind_, op, overload, &extra};                    \
  };
#define CGC_INTO(Enum, op, ...) CGC_CALL(Into, Enum, op, __VA_ARGS__)
#define CGC_COPIED(Enum, op, ...) CGC_CALL(Copied, Enum, op, __VA_ARGS__)
#define CGC_SPECIAL(Enum, function)                                                                \
  template <> struct RowOf<ir::OpKind::Enum> {                                                     \
    static constexpr Lowering row{Lowering::Kind::Special, "", "", nullptr, &function};            \
  };
#include "backend/aten_calls.def"

constexpr std::array<const Lowering *, ir::kNumOps> kRows = {
#define CGC_OP(Enum, text) &RowOf<ir::OpKind::Enum>::row,
#include "ir/ops.def"
};

} // namespace

const Lowering &lowering(ir::OpKind op) {
  return *kRows[static_cast<unsigned>(op)];
}

std::vector<AtenArg> callArgs(const ir::Node &node, BucketBuilder &builder) {
  std::vector<AtenArg> args;
  for (const ir::Arg &arg : node.args())
    args.push_back(builder.arg(arg));
  return args;
}

Place scalarTensor(const ir::Arg &number, DType dtype, BucketBuilder &builder) {
  Place place = builder.temporary(dtype, {});
  builder.fill(place, number);
  return place;
}

} // namespace cgc::backend

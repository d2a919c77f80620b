// cgc.center_rows: by LibTorch. Weights are known while a module is compiled, so that `fold`
// computes this, and no plan has it.
#include "backend/lowering.h"

#include <algorithm>

namespace cgc::backend {
namespace {

/// How many columns take what a row's rounded elements sum to. Of 1024 elements that is some 9
/// units of the last place: one for each of these columns, which leaves less than one.
constexpr int64_t kColumns = 8;

} // namespace

Status lowerCenterRows(const ir::Node &node, BucketBuilder &builder) {
  const Place weight = builder.place(node.arg("weight").value());
  const Place result = builder.allocate(*node.result());
  const std::vector<int64_t> rows = {1};
  const auto column = [&] { return builder.temporary(DType::F32, {weight.sizes[0], 1}); };
  const Place mean = column(), rest = column(), share = column();
  const auto less = [&](const Place &from, const Place &what, const Place &to) {
    builder.callInto("aten::sub", "out", {builder.tensor(from), builder.tensor(what), int64_t{1}},
                     to);
  };
  builder.callInto("aten::mean", "out", {builder.tensor(weight), rows, true, DType::F32}, mean);
  less(weight, mean, result);

  Place first = result;
  first.sizes[1] = std::min(first.sizes[1], kColumns);
  builder.callInto("aten::sum", "IntList_out", {builder.tensor(result), rows, true, DType::F32},
                   rest);
  builder.callInto("aten::div", "out", {builder.tensor(rest), double(first.sizes[1])}, share);
  less(first, share, first);
  return Status::ok();
}

} // namespace cgc::backend

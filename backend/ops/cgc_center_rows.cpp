// cgc.center_rows: usually the pass `fold` has computed it; this lowering serves pipelines that end
// before it (--pass-limit). The record that reads the result rounds each element by itself.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerCenterRows(const ir::Node &node, BucketBuilder &builder) {
  const Place weight = builder.place(node.arg("weight").value());
  const Place result = builder.allocate(*node.result());
  const Place mean = builder.temporary(DType::F32, {weight.sizes[0], 1});
  builder.callInto("aten::mean", "out",
                   {builder.tensor(weight), std::vector<int64_t>{1}, true, NoneArg{}}, mean);
  builder.callInto("aten::sub", "out", {builder.tensor(weight), builder.tensor(mean), int64_t{1}},
                   result);
  return Status::ok();
}

} // namespace cgc::backend

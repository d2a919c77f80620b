// cgc.convolution_backward: a call of LibTorch that computes the results that are asked for.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerConvolutionBackward(const ir::Node &node, BucketBuilder &builder) {
  std::vector<std::optional<Place>> outputs;
  unsigned next = 0;
  for (const ir::Arg &wanted : node.arg("output_mask").list())
    outputs.push_back(*wanted.asInt() ? std::optional(builder.allocate(*node.result(next++)))
                                      : std::nullopt);
  std::vector<AtenArg> args = callArgs(node, builder);
  // LibTorch also takes the sizes of the bias.
  args.insert(args.begin() + 3,
              std::vector<int64_t>{node.arg("grad_output").value()->tensor().sizes[1]});
  builder.callThenCopy("aten::convolution_backward", "", std::move(args), outputs);
  return Status::ok();
}

} // namespace cgc::backend

// Loaded TorchScript modules: the depth of their source, and their attributes for another
// precision.
#include "runtime/script/retarget.h"
#include "runtime/script/source_depth.h"

#include <ATen/ops/ones.h>

#include <gtest/gtest.h>

namespace cgc::test {
namespace {

TEST(SourceDepth, ABlockThatHasEndedDoesNotCount) {
  const std::string begin = "def f(x):\n", choice = "  if x:\n    y\n  elif x:\n    y\n",
                    nested = "  if x:\n    if x:\n      y\n    elif x:\n      y\n    elif x:\n"
                             "      y\n",
                    loop = "  for i in x:\n    y\n", sum = "  z = (x + x) * [x, x][0]\n";
  for (const std::string &block : {choice, nested, loop, sum}) {
    const size_t depth = script::sourceDepth(begin + block);
    EXPECT_GT(depth, script::sourceDepth(begin + "  y\n")) << block;
    EXPECT_EQ(script::sourceDepth(begin + block + block + block), depth) << block;
  }
}

TEST(Retarget, ConvertsTheTensorsOfAttributesOfEveryKind) {
  const at::Tensor tensor = at::ones({2});
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("x", tensor.clone());
  const auto tuple = c10::ivalue::Tuple::create({tensor.clone(), int64_t{1}});
  torch::jit::Module module("M");
  module.register_buffer("buffer", tensor.clone());
  module.register_attribute("list", c10::ListType::ofTensors(),
                            c10::List<at::Tensor>({tensor.clone()}));
  module.register_attribute(
      "dict", c10::DictType::create(c10::StringType::get(), c10::TensorType::get()), dict);
  module.register_attribute("tuple", tuple->type(), tuple);
  script::retarget(module, {.device = at::kCPU, .precision = at::kHalf});
  EXPECT_EQ(module.attr("buffer").toTensor().scalar_type(), at::kHalf);
  EXPECT_EQ(module.attr("list").toTensorVector()[0].scalar_type(), at::kHalf);
  EXPECT_EQ(module.attr("dict").toGenericDict().at("x").toTensor().scalar_type(), at::kHalf);
  EXPECT_EQ(module.attr("tuple").toTupleRef().elements()[0].toTensor().scalar_type(), at::kHalf);
}

} // namespace
} // namespace cgc::test

// Frontend: the content that an import keeps, and the IR of TorchScript's constructs.
#include "frontend/frontend.h"
#include "ir/text/text.h"
#include "tests/numerics/imported.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/test_models.h"
#include "tests/paths.h"

#include <ATen/Functions.h>
#include <torch/csrc/jit/serialization/import.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace cgc::frontend {
namespace {

using test::floats;
using test::import;
using test::openclipModel;
using test::smallModel;
using test::specialize;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string mainBranchModel() {
  return test::sourceDir() / "tests/data/openclip_main_tiny.pt";
}

template <class Fn> void forEachModule(const ir::Module &module, Fn fn) {
  fn(module);
  for (const auto &child : module.submodules())
    forEachModule(*child, fn);
}

/// Counts each op in the whole tree; in-place forms have an underscore.
std::map<std::string, int> countOps(const ir::Module &root) {
  std::map<std::string, int> counts;
  forEachModule(root, [&](const ir::Module &module) {
    for (const auto &graph : module.graphs())
      for (const ir::Node &node : *graph)
        if (node.kind() == ir::NodeKind::CallFunction)
          ++counts[ir::opName(node.op()).str() + (node.isInPlace() ? "_" : "")];
  });
  return counts;
}

std::string graphText(const ir::Module &module, const char *name = "forward") {
  const ir::Graph *graph = module.findGraph(name);
  return graph ? ir::toString(*graph, {.locations = false}) : "no such graph";
}

/// Returns the attribute paths, from the root, that some graph reads.
std::set<std::string> readParameters(const ir::Module &root) {
  std::set<std::string> read;
  forEachModule(root, [&](const ir::Module &module) {
    std::string prefix = module.path().empty() ? "" : module.path() + ".";
    for (const auto &graph : module.graphs())
      for (const ir::Node &node : *graph)
        if (node.kind() == ir::NodeKind::GetAttr)
          read.insert(prefix + node.target());
  });
  return read;
}

// The hierarchy.

TEST(Frontend, KeepsModulesClassesAndParameterNames) {
  auto root = import(openclipModel("tiny", "fp32"));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->className(), "CLIP");
  const ir::Module *visual = root->findSubmodule("visual");
  ASSERT_TRUE(visual);
  EXPECT_EQ(visual->className(), "VisionTransformer");
  auto [block, method] = root->resolve("visual.transformer.resblocks.1.forward");
  ASSERT_TRUE(block);
  EXPECT_EQ(block->className(), "ResidualAttentionBlock");
  EXPECT_EQ(block->path(), "visual.transformer.resblocks.1");
  EXPECT_EQ(method, "forward");
  ASSERT_TRUE(block->findParameter("attn.in_proj_weight"));
  EXPECT_EQ(ir::toString(block->findParameter("attn.in_proj_weight")->type), "f32[192,64]");
  EXPECT_EQ(root->findParameter("attn_mask")->kind, ir::Parameter::Kind::Buffer);
  EXPECT_EQ(root->findParameter("logit_scale")->kind, ir::Parameter::Kind::Parameter);
  ASSERT_FALSE(root->attributes().empty());
  EXPECT_EQ(root->attributes()[0].name, "training");
  EXPECT_EQ(root->attributes()[0].value, ir::Arg(false));
}

TEST(Frontend, ImportsTheThreeMethodsWithTheirInputNames) {
  auto root = import(openclipModel("tiny", "fp32"));
  ASSERT_TRUE(root);
  auto names = [&](const char *method) {
    std::vector<std::string> names;
    for (const ir::Value *input : root->findGraph(method)->inputs())
      names.push_back(input->name());
    return names;
  };
  EXPECT_THAT(names("forward"), ElementsAre("image", "text"));
  EXPECT_THAT(names("encode_image"), ElementsAre("image"));
  EXPECT_THAT(names("encode_text"), ElementsAre("text"));
}

TEST(Frontend, EveryParameterIsReadBySomeGraph) {
  for (const std::string &path : {openclipModel("tiny", "fp32"), mainBranchModel()}) {
    auto root = import(path);
    ASSERT_TRUE(root);
    std::set<std::string> read = readParameters(*root);
    forEachModule(*root, [&](const ir::Module &module) {
      std::string prefix = module.path().empty() ? "" : module.path() + ".";
      for (const ir::Parameter &parameter : module.parameters())
        EXPECT_TRUE(read.count(prefix + parameter.name)) << prefix + parameter.name;
    });
  }
}

TEST(Frontend, LocationsNameTheModelsSourceAndModule) {
  auto root = import(mainBranchModel());
  ASSERT_TRUE(root);
  auto [block, method] = root->resolve("visual.conv1.forward");
  for (const ir::Node &node : *block->findGraph("forward"))
    if (node.is(ir::OpKind::Conv2d)) {
      // conv.py of torch called it; the expected line called that one.
      EXPECT_THAT(ir::toString(node.loc()),
                  ::testing::MatchesRegex("transformer\\.py:[0-9]+ \\(visual\\.conv1\\)"));
    }
  forEachModule(*root, [&](const ir::Module &module) {
    for (const auto &graph : module.graphs())
      for (const ir::Node &node : *graph)
        EXPECT_EQ(node.loc().module, module.path());
  });
}

TEST(Frontend, ParametersHoldTheFilesBytes) {
  auto root = import(smallModel("casts"));
  ASSERT_TRUE(root);
  const ir::Parameter *table = root->findParameter("table");
  ASSERT_TRUE(table && table->data);
  std::vector<int64_t> values(8);
  ASSERT_EQ(table->data->bytes().size(), values.size() * sizeof(int64_t));
  std::memcpy(values.data(), table->data->bytes().data(), table->data->bytes().size());
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  // Saved as a transposed view, held dense.
  const ir::Parameter *permuted = root->findParameter("permuted");
  EXPECT_EQ(ir::toString(permuted->type), "f32[3,2]");
  std::vector<float> floats(6);
  std::memcpy(floats.data(), permuted->data->bytes().data(), permuted->data->bytes().size());
  EXPECT_THAT(floats, ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Frontend, ParametersOnOneStorageKeepTheirStrides) {
  auto root = import(smallModel("shared_storage"));
  ASSERT_TRUE(root);
  auto values = [&](const char *name) {
    std::vector<float> floats(4);
    std::memcpy(floats.data(), root->findParameter(name)->data->bytes().data(), sizeof(float) * 4);
    return floats;
  };
  EXPECT_THAT(values("weight"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values("transposed"), ElementsAre(0, 2, 1, 3));
}

TEST(Frontend, SharedParametersShareTheirData) {
  auto root = import(smallModel("called_twice"));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->findParameter("first.weight")->data, root->findParameter("second.weight")->data);
  EXPECT_NE(root->findParameter("first.bias")->data, root->findParameter("second.bias")->data);
}

// The three forms of attention.

class FrontendPrecision : public ::testing::TestWithParam<std::pair<const char *, DType>> {};

TEST_P(FrontendPrecision, ImportsBothFormsOfAttentionOfReleasedOpenClip) {
  auto root = import(openclipModel("tiny", GetParam().first));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->findParameter("visual.conv1.weight")->type.dtype, GetParam().second);
  auto ops = countOps(*root);
  // Two layers for each tower, each traced twice: alone and inside forward.
  EXPECT_EQ(ops["aten._native_multi_head_attention"], 4) << "image tower";
  EXPECT_EQ(ops["aten.scaled_dot_product_attention"], 4) << "text tower";
  EXPECT_EQ(ops["aten.unflatten"], 4);
  EXPECT_EQ(ops["aten.fallback"] + ops["prim.refused"], 0);
}

INSTANTIATE_TEST_SUITE_P(Tiny, FrontendPrecision,
                         ::testing::Values(std::pair("fp32", DType::F32),
                                           std::pair("fp16", DType::F16),
                                           std::pair("bf16", DType::BF16)),
                         [](const auto &info) { return std::string(info.param.first); });

TEST(Frontend, ImportsAttentionOfTheMainBranch) {
  auto root = import(mainBranchModel());
  ASSERT_TRUE(root);
  auto ops = countOps(*root);
  EXPECT_EQ(ops["aten._native_multi_head_attention"], 0);
  EXPECT_EQ(ops["aten.scaled_dot_product_attention"], 8);
  EXPECT_EQ(ops["aten.chunk"], 16);
  EXPECT_EQ(ops["prim.unpack"], 2)
      << "lists are unpacked at import; calls that return tuples are not";
  EXPECT_EQ(ops["aten.fallback"], 0);
}

TEST(Frontend, ImportsQuickGelu) {
  auto quick = import(openclipModel("tiny_quickgelu", "fp32"));
  ASSERT_TRUE(quick);
  EXPECT_EQ(countOps(*quick)["aten.sigmoid"], 8);
}

// Single constructs.

TEST(Frontend, CallsAModuleTwice) {
  auto root = import(smallModel("called_twice"));
  ASSERT_TRUE(root);
  std::vector<std::string> calls;
  for (const ir::Node &node : *root->findGraph("forward"))
    if (node.kind() == ir::NodeKind::CallModule)
      calls.push_back(node.target());
  EXPECT_THAT(calls, ElementsAre("first.forward", "first.forward1", "second.forward"));
}

TEST(Frontend, KeepsTupleAndDictOutputs) {
  auto tuple = import(smallModel("tuple_output"));
  ASSERT_TRUE(tuple);
  EXPECT_THAT(graphText(*tuple), HasSubstr("prim.list("));
  EXPECT_THAT(graphText(*tuple), HasSubstr("prim.unpack("));
  auto dict = import(smallModel("dict_output"));
  ASSERT_TRUE(dict);
  EXPECT_THAT(graphText(*dict), HasSubstr("prim.dict"));
  EXPECT_THAT(graphText(*dict), HasSubstr("\"doubled\", \"rows\""));
}

TEST(Frontend, MarksInPlaceOps) {
  auto root = import(smallModel("in_place"));
  ASSERT_TRUE(root);
  auto ops = countOps(*root);
  EXPECT_EQ(ops["aten.relu_"], 1);
  EXPECT_EQ(ops["aten.masked_fill_"], 1);
  EXPECT_EQ(ops["aten.add_"], 1);
  EXPECT_EQ(ops["aten.add"], 1);
  EXPECT_THAT(graphText(*root), HasSubstr("alpha=2"));
}

TEST(Frontend, TellsDtypesFromInts) {
  auto root = import(smallModel("casts"));
  ASSERT_TRUE(root);
  std::string text = graphText(*root);
  EXPECT_THAT(text, HasSubstr("dtype=f16"));
  EXPECT_THAT(text, HasSubstr("dtype=f32"));
  EXPECT_THAT(text, HasSubstr("prim.dtype("));        // type_as
  EXPECT_THAT(text, HasSubstr("get_attr @constant")); // torch.tensor([...])
  EXPECT_EQ(countOps(*root)["aten.fallback"], 0);
}

TEST(Frontend, PromotesPythonNumbersAsLibTorchDoes) {
  std::ifstream file(std::filesystem::path(smallModel("numbers")).replace_extension("txt"));
  std::vector<std::string> expected{std::istream_iterator<std::string>(file), {}};
  ASSERT_GE(expected.size(), 20u);
  std::vector<ir::Type> types;
  for (DType dtype : {DType::U8, DType::I64, DType::F32})
    types.push_back(ir::TensorType::dense(dtype, {4}));

  ir::Diagnostics diagnostics;
  auto graph = specialize(smallModel("numbers"), "forward", types, diagnostics);
  ASSERT_TRUE(graph) << diagnostics.render();
  std::vector<std::string> dtypes;
  for (const ir::Arg &output : graph->output()->args())
    dtypes.emplace_back(dtypeName(output.value()->tensor().dtype));
  EXPECT_EQ(dtypes, expected);

  // The reference of `cgc compare` must agree, although it runs without the JIT's optimizations.
  auto reference = loadReference(smallModel("numbers"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk());
  int64_t sizes[] = {4};
  std::vector<std::byte> bytes(4 * sizeof(int64_t), std::byte(1));
  std::vector<TensorView> inputs;
  for (const ir::Type &type : types)
    inputs.push_back({bytes.data(), type.tensor().dtype, DeviceKind::Cpu, sizes, {}});
  auto outputs = (*reference)->run("forward", inputs);
  ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
  dtypes.clear();
  for (const HostTensor &output : *outputs)
    dtypes.emplace_back(dtypeName(output.dtype));
  EXPECT_EQ(dtypes, expected);
}

TEST(Frontend, ImportsInPlaceDropoutAndMatrixTranspose) {
  ir::Diagnostics diagnostics;
  auto graph = specialize(smallModel("small_forms"), "forward", {floats({3, 4})}, diagnostics);
  ASSERT_TRUE(graph) << diagnostics.render();
  EXPECT_THAT(graph->outputs().front().value()->tensor().sizes, ElementsAre(4, 3));
}

TEST(Frontend, MakesTensorsOfNumbersWithTheirDtypes) {
  ir::Diagnostics diagnostics;
  auto graph = specialize(smallModel("tensors_of_numbers"), "forward", {floats({3})}, diagnostics);
  ASSERT_TRUE(graph) << diagnostics.render();
  std::string types;
  for (const ir::Arg &output : graph->output()->args())
    types += ir::toString(output.value()->tensor()) + " ";
  EXPECT_EQ(types, "f32[] i64[] bool[] f16[] f32[3] ");
}

TEST(Frontend, TakesFromTheEndOfListsAndCopiesWhereAsked) {
  ir::Diagnostics diagnostics;
  auto graph = specialize(smallModel("lists_and_copies"), "forward", {floats({3, 4})}, diagnostics);
  ASSERT_TRUE(graph) << diagnostics.render();
  const ir::Node &add = *graph->outputs().front().value()->node();
  ASSERT_TRUE(add.is(ir::OpKind::Add));
  EXPECT_TRUE(add.arg("self").value()->node()->is(ir::OpKind::Cos));
  EXPECT_TRUE(add.arg("other").value()->node()->is(ir::OpKind::Clone))
      << "relu_ would change the input";
}

TEST(Frontend, ComputesWeightsOfOtherParametersAsLibTorchDoes) {
  for (const char *model : {"weight_norm", "old_weight_norm", "spectral_norm", "old_spectral_norm",
                            "rotation", "fixed_function"}) {
    SCOPED_TRACE(model);
    auto root = import(smallModel(model));
    ASSERT_TRUE(root);
    ir::Diagnostics diagnostics;
    auto graph = specialize(*root, "forward", {floats({3, 4})}, diagnostics);
    ASSERT_TRUE(graph) << diagnostics.render();
    test::LoweredGraph lowered(*graph);
    ASSERT_TRUE(lowered.isOk());
    const at::Tensor x = at::linspace(-1, 1, 12).reshape({3, 4});
    auto outputs = lowered.run(graph->name(), {x});
    ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
    const at::Tensor expected = torch::jit::load(smallModel(model)).forward({x}).toTensor();
    EXPECT_TRUE(at::allclose(outputs->front(), expected, 1e-5, 1e-6)) << outputs->front();
  }
}

TEST(Frontend, UnknownOpsBecomeFallbacksWithTheirSchema) {
  auto root = import(smallModel("unknown_op"));
  ASSERT_TRUE(root);
  bool found = false;
  for (const ir::Node &node : *root->findGraph("forward"))
    if (node.is(ir::OpKind::Fallback)) {
      found = true;
      EXPECT_EQ(node.target(), "aten::i0(Tensor self) -> Tensor");
      EXPECT_EQ(node.args().size(), 1u);
      EXPECT_THAT(node.loc().file, HasSubstr("small_models.py"));
      EXPECT_GT(node.loc().line, 0u);
    }
  EXPECT_TRUE(found);
}

TEST(Frontend, ResolvesConstantBranchesLoopsAndFunctions) {
  auto root = import(smallModel("constant_flow"));
  ASSERT_TRUE(root);
  auto ops = countOps(*root);
  EXPECT_EQ(ops["aten.fallback"], 0) << "the branch for training is not taken";
  EXPECT_EQ(ops["aten.add"], 1);
  EXPECT_EQ(ops["aten.mul"], 3) << "three trips, the function inlined";
  std::string text = graphText(*root);
  EXPECT_THAT(text, HasSubstr("aten.mul(%x1, 1)"));
  EXPECT_THAT(text, HasSubstr(", 3) : dynamic"));
  EXPECT_THAT(text, HasSubstr("call_module @helper("));
  const ir::Node *previous = nullptr;
  for (const ir::Node &node : *root->findGraph("forward"))
    if (node.is(ir::OpKind::Add) || node.is(ir::OpKind::Mul)) {
      if (previous) {
        EXPECT_EQ(node.arg("self").value()->node(), previous)
            << "a trip starts where the last ended";
      }
      previous = &node;
    }
}

} // namespace
} // namespace cgc::frontend

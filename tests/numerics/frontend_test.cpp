// Frontend: what an imported TorchScript file keeps, what is refused and how, and the LibTorch
// reference.
#include "frontend/frontend.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "runtime/base/file.h"
#include "tests/numerics/test_models.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace cgc::frontend {
namespace {

using test::openclipModel;
using test::smallModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string mainBranchModel() {
  return CGC_SOURCE_DIR "/tests/data/openclip_main_tiny.pt";
}

/// Imports a file that must be fine, and verifies it.
std::unique_ptr<ir::Module> import(const std::string &path) {
  ir::Diagnostics diagnostics;
  auto module = importTorchScript(path, diagnostics);
  EXPECT_TRUE(module.isOk()) << module.status().message();
  if (!module)
    return nullptr;
  EXPECT_TRUE(ir::verify(**module, diagnostics)) << diagnostics.render();
  return *std::move(module);
}

Status importError(const std::string &path) {
  ir::Diagnostics diagnostics;
  return importTorchScript(path, diagnostics).status();
}

template <class Fn> void forEachModule(const ir::Module &module, Fn fn) {
  fn(module);
  for (const auto &child : module.submodules())
    forEachModule(*child, fn);
}

/// How often each op occurs, in the whole tree; in-place forms with an underscore.
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

/// The attribute paths, from the root, that some graph reads.
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

// The hierarchy

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
      EXPECT_EQ(ir::toString(node.loc()), "conv.py:548 (visual.conv1)");
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
  // Saved as a transposed view; held dense.
  const ir::Parameter *permuted = root->findParameter("permuted");
  EXPECT_EQ(ir::toString(permuted->type), "f32[3,2]");
  std::vector<float> floats(6);
  std::memcpy(floats.data(), permuted->data->bytes().data(), permuted->data->bytes().size());
  EXPECT_THAT(floats, ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Frontend, SharedParametersShareTheirData) {
  auto root = import(smallModel("called_twice"));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->findParameter("first.weight")->data, root->findParameter("second.weight")->data);
  EXPECT_NE(root->findParameter("first.bias")->data, root->findParameter("second.bias")->data);
}

// The three forms of attention

TEST(Frontend, ImportsAttentionOfReleasedOpenClip) {
  auto root = import(openclipModel("tiny", "fp32"));
  ASSERT_TRUE(root);
  auto ops = countOps(*root);
  // Two layers for each tower, each traced twice: alone and inside forward.
  EXPECT_EQ(ops["aten._native_multi_head_attention"], 4);
  EXPECT_EQ(ops["aten.scaled_dot_product_attention"], 4);
  EXPECT_EQ(ops["aten.unflatten"], 4);
  EXPECT_EQ(ops["aten.fallback"], 0);
}

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

TEST(Frontend, ImportsReducedPrecisionAndQuickGelu) {
  for (const char *precision : {"fp16", "bf16"}) {
    auto root = import(openclipModel("tiny", precision));
    ASSERT_TRUE(root);
    EXPECT_EQ(root->findParameter("visual.conv1.weight")->type.dtype,
              precision[0] == 'f' ? DType::F16 : DType::BF16);
    EXPECT_EQ(countOps(*root)["aten.fallback"], 0);
  }
  auto quick = import(openclipModel("tiny_quickgelu", "fp32"));
  ASSERT_TRUE(quick);
  EXPECT_EQ(countOps(*quick)["aten.sigmoid"], 8);
}

// Single constructs

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

TEST(Frontend, UnknownOpsBecomeFallbacksWithTheirSchema) {
  auto root = import(smallModel("unknown_op"));
  ASSERT_TRUE(root);
  bool found = false;
  for (const ir::Node &node : *root->findGraph("forward"))
    if (node.is(ir::OpKind::Fallback)) {
      found = true;
      EXPECT_EQ(node.target(), "aten::erfinv(Tensor self) -> Tensor");
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
}

// Refusals

/// The 1-based line of small_models.py that ends in `# LINE: tag`.
unsigned lineOf(const std::string &tag) {
  std::ifstream file(CGC_SOURCE_DIR "/tests/numerics/small_models.py");
  std::string line;
  for (unsigned number = 1; std::getline(file, line); ++number)
    if (line.ends_with("# LINE: " + tag))
      return number;
  return 0;
}

TEST(Frontend, RefusesDataDependentFlowByLineAndCollectsAll) {
  ir::Diagnostics diagnostics;
  auto module = importTorchScript(smallModel("data_dependent"), diagnostics);
  ASSERT_FALSE(module.isOk());
  EXPECT_EQ(module.status().code(), Code::Unsupported);
  ASSERT_EQ(diagnostics.errors().size(), 2u) << diagnostics.render();
  EXPECT_THAT(diagnostics.errors()[0].message, HasSubstr("data-dependent control flow"));
  EXPECT_EQ(diagnostics.errors()[0].loc.line, lineOf("branch"));
  EXPECT_EQ(diagnostics.errors()[1].loc.line, lineOf("loop"));
  EXPECT_THAT(module.status().message(), HasSubstr("small_models.py"));
}

TEST(Frontend, RefusesOptionalInputsThatDecide) {
  Status status = importError(smallModel("optional"));
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(), HasSubstr("depends on the caller"));
}

TEST(Frontend, RefusesTransposedConvolutionAndComplexDtype) {
  Status status = importError(smallModel("transposed"));
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(), HasSubstr("'transposed' of aten::_convolution"));
  EXPECT_THAT(status.message(), HasSubstr("no dtype ComplexFloat"));
}

// Wrong files

TEST(Frontend, SaysWhatAForeignFileIs) {
  test::TempFolder temporary;
  const std::string folder = temporary / "cgc_foreign";
  std::filesystem::create_directories(folder);
  auto write = [&](const char *name, const std::string &bytes) {
    std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {folder + "/missing.pt", "missing.pt"},
      {folder, "cgc_foreign"},
      {write("empty.pt", ""), "empty"},
      {write("image.pt", "\x89PNG\r\n\x1a\n0000"), "PNG"},
      {smallModel("state_dict"), "torch.save"},
      {smallModel("truncated"), "truncated"},
      {smallModel("bad_code"), "LibTorch cannot read this as TorchScript"},
  };
  for (const auto &[path, expected] : cases) {
    Status status = importError(path);
    EXPECT_EQ(status.code(), Code::InvalidFile) << path;
    EXPECT_THAT(status.message(), HasSubstr(expected));
    EXPECT_THAT(status.message(), Not(HasSubstr("\n"))) << "LibTorch's frames stay out";
  }
}

// The reference

struct Input {
  std::vector<float> values;
  std::vector<int64_t> sizes;
  TensorView view() { return {values.data(), DType::F32, DeviceKind::Cpu, sizes, {}}; }
};

std::vector<float> asFloats(const HostTensor &tensor) {
  EXPECT_EQ(tensor.dtype, DType::F32);
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(Reference, RunsAMethodAndNamesDictOutputs) {
  auto reference = loadReference(smallModel("dict_output"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk()) << reference.status().message();
  Input x{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 4}};
  TensorView inputs[] = {x.view()};
  auto outputs = (*reference)->run("forward", inputs);
  ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].name, "doubled");
  EXPECT_EQ((*outputs)[1].name, "rows");
  EXPECT_THAT((*outputs)[1].sizes, ElementsAre(3));
  EXPECT_THAT(asFloats((*outputs)[1]), ElementsAre(10, 26, 42));
}

TEST(Reference, LeavesInputsAlone) {
  auto reference = loadReference(smallModel("in_place"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk());
  Input x{{-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {3, 4}};
  std::vector<float> before = x.values;
  TensorView inputs[] = {x.view()};
  auto outputs = (*reference)->run("forward", inputs);
  ASSERT_TRUE(outputs.isOk());
  EXPECT_EQ(x.values, before);
  EXPECT_FLOAT_EQ(asFloats((*outputs)[0])[0], 0.5f - 2.0f);
}

TEST(Reference, WidensParametersAndBakedCasts) {
  // The file computes in fp16 and returns fp16; widened, nothing of that is left.
  Input x{{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 1.1f, 1.2f}, {3, 4}};
  TensorView inputs[] = {x.view()};
  auto plain = loadReference(smallModel("casts"), DeviceKind::Cpu, std::nullopt);
  auto wide = loadReference(smallModel("casts"), DeviceKind::Cpu, DType::F64);
  ASSERT_TRUE(plain.isOk() && wide.isOk());
  auto narrowOutput = (*plain)->run("forward", inputs);
  auto wideOutput = (*wide)->run("forward", inputs);
  ASSERT_TRUE(narrowOutput.isOk()) << narrowOutput.status().message();
  ASSERT_TRUE(wideOutput.isOk()) << wideOutput.status().message();
  EXPECT_EQ((*narrowOutput)[0].dtype, DType::F16);
  ASSERT_EQ((*wideOutput)[0].dtype, DType::F64);
  double row[4];
  std::memcpy(row, (*wideOutput)[0].bytes.data(), sizeof(row));
  // A softmax that rounds to fp16 anywhere misses one by far more.
  EXPECT_NEAR(row[0] + row[1] + row[2] + row[3], 1.0, 1e-14);
}

TEST(Reference, ReportsMisuse) {
  auto reference = loadReference(smallModel("dict_output"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk());
  auto noMethod = (*reference)->run("encode", {});
  EXPECT_EQ(noMethod.status().code(), Code::Usage);
  EXPECT_THAT(noMethod.status().message(), HasSubstr("encode"));
  EXPECT_EQ((*reference)->run("forward", {}).status().code(), Code::Usage);
  auto narrowed = loadReference(smallModel("dict_output"), DeviceKind::Cpu, DType::F16);
  EXPECT_EQ(narrowed.status().code(), Code::Unsupported);
  // A shape that does not fit is LibTorch's to report: one line, no frames.
  auto linear = loadReference(smallModel("called_twice"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(linear.isOk());
  Input x{{1, 2, 3}, {1, 3}};
  TensorView inputs[] = {x.view()};
  auto failed = (*linear)->run("forward", inputs);
  EXPECT_EQ(failed.status().code(), Code::Failed);
  EXPECT_THAT(failed.status().message(), HasSubstr("shapes"));
  EXPECT_THAT(failed.status().message(), Not(HasSubstr("\n")));
}

} // namespace
} // namespace cgc::frontend

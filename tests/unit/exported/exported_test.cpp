// importExported: what a program becomes, and the refusal of each kind of damage.
#include "frontend/exported/exported.h"

#include "ir/text/text.h"
#include "ir/verifier.h"
#include "tests/temp_folder.h"
#include "tests/unit/exported/sample_program.h"

#include <gmock/gmock.h>

namespace cgc::test {
namespace {

using frontend::ImportFor;
using nlohmann::json;
using testing::HasSubstr;

class Exported : public testing::Test {
protected:
  Result<exported::ExportedModule> import(const std::string &bytes,
                                          ImportFor purpose = ImportFor::Inference) {
    const std::string path = folder_ / "m.pt2";
    std::ofstream(path, std::ios::binary) << bytes;
    return exported::importExported({path}, purpose);
  }
  Result<exported::ExportedModule> import(const SampleProgram &sample,
                                          ImportFor purpose = ImportFor::Inference) {
    return import(sample.zip(), purpose);
  }
  /// Imports samples from files with these names.
  Result<exported::ExportedModule>
  import(const std::vector<std::pair<std::string, SampleProgram>> &samples) {
    std::vector<std::string> paths;
    for (const auto &[name, sample] : samples) {
      paths.push_back(folder_ / (name + ".pt2"));
      std::ofstream(paths.back(), std::ios::binary) << sample.zip();
    }
    return exported::importExported(paths, ImportFor::Inference);
  }
  template <class Sample> void expectRefusal(const Sample &sample, const std::string &says) {
    const Status status = import(sample).status();
    EXPECT_EQ(status.code(), Code::InvalidFile) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("m.pt2"));
    EXPECT_THAT(status.message(), HasSubstr(says));
  }

  TempFolder folder_;
};

std::vector<float> valuesOf(const ir::Module &root, const char *path) {
  const ir::Parameter *parameter = root.findParameter(path);
  std::vector<float> values(parameter ? parameter->type.numElements() : 0);
  if (parameter)
    std::memcpy(values.data(), parameter->data->bytes().data(), values.size() * sizeof(float));
  return values;
}

TEST_F(Exported, ProgramBecomesModulesAndCalls) {
  auto imported = import(SampleProgram());
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  const ir::Module &root = *imported->module;
  ir::Diagnostics diagnostics;
  ir::verify(root, diagnostics);
  EXPECT_FALSE(diagnostics.hasErrors()) << diagnostics.render();
  EXPECT_EQ(root.className(), "Net");
  const ir::Module *head = root.findSubmodule("head");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->className(), "Linear");
  const std::string text = ir::toString(*root.findGraph("forward"));
  EXPECT_THAT(text, HasSubstr("aten.size(%x) {dim=0}"));
  EXPECT_THAT(text, HasSubstr("head.forward"));
  EXPECT_THAT(ir::toString(*head->findGraph("forward")), HasSubstr("aten.linear"));
  for (const ir::Node &node : *head->findGraph("forward"))
    if (node.kind() == ir::NodeKind::CallFunction) {
      EXPECT_EQ(node.loc(), (ir::Loc{"/home/me/model.py", 20, "head"}));
    }
}

TEST_F(Exported, WeightsShareAStorageAndMayBeStrided) {
  auto imported = import(SampleProgram());
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  EXPECT_EQ(valuesOf(*imported->module, "head.weight"), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(valuesOf(*imported->module, "head.bias"), (std::vector<float>{7, 8, 9}));
}

TEST_F(Exported, ShapesHaveRangesAndExamples) {
  auto imported = import(SampleProgram());
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  ir::InputShapes &shapes = imported->shapes["forward"];
  ASSERT_EQ(shapes.inputs.size(), 1u);
  const ir::InputShape &x = shapes.inputs[0];
  EXPECT_EQ(x.sizes, (std::vector<ir::LinearSize>{{"s0", 1, 0}, {"", 0, 2}}));
  EXPECT_EQ(x.example, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(shapes.ranges["s0"].most, 8);
}

TEST_F(Exported, ArgumentsHaveTheirNamesInTheModel) {
  const auto leaf = json{{"type", nullptr}, {"context", nullptr}, {"children_spec", json::array()}};
  const auto tree = [](const char *type, const json &context, const json &children) {
    return json{{"type", type}, {"context", context.dump()}, {"children_spec", children}};
  };
  const auto tuple = [&](const json &children) {
    return tree("builtins.tuple", nullptr, children);
  };
  const auto dict = [&](const json &keys, const json &children) {
    return tree("builtins.dict", keys, children);
  };
  const json none = json::array(), one = json::array({leaf});
  // By position, by name, within a tuple, and of a name that torch has replaced.
  for (const auto &[positional, named, argument, expected] :
       {std::tuple(tuple(one), dict(none, none), "X", "X"),
        {tuple(none), dict(json::array({"X"}), one), "X", "X"},
        {tuple(json::array({tuple(one)})), dict(none, none), "X", "x"},
        {tuple(one), dict(none, none), "Y", "x"}}) {
    SampleProgram sample;
    json &signature = sample.program["graph_module"]["module_call_graph"][0]["signature"];
    signature["in_spec"] = json::array({1, tuple(json::array({positional, named}))}).dump();
    signature["forward_arg_names"] = json::array({argument});
    auto imported = import(sample);
    ASSERT_TRUE(imported.isOk()) << imported.status().message();
    EXPECT_EQ(imported->shapes["forward"].inputs[0].name, expected) << signature["in_spec"];
    EXPECT_EQ(imported->module->findGraph("forward")->inputs()[0]->name(), expected);
  }
}

TEST_F(Exported, GuardsAreConditionsOnSizes) {
  SampleProgram sample;
  sample.program["guards_code"] = json::array({"L['x'].size()[0] != 5"});
  auto imported = import(sample);
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  const ir::InputShapes &shapes = imported->shapes["forward"];
  EXPECT_TRUE(ir::checkInputs(shapes, {{"x", DType::F32, {4, 2}}}).isOk());
  EXPECT_THAT(ir::checkInputs(shapes, {{"x", DType::F32, {5, 2}}}).message(),
              HasSubstr("L['x'].size()[0] != 5"));
}

TEST_F(Exported, SeveralFilesAreMethodsThatShareEqualWeights) {
  auto imported = import({{"image", SampleProgram()}, {"text", SampleProgram()}});
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  const ir::Module &root = *imported->module;
  EXPECT_TRUE(root.findGraph("image") && root.findGraph("text"));
  EXPECT_FALSE(root.findGraph("forward"));
  EXPECT_EQ(root.submodules().size(), 1u);
  const ir::Module *head = root.findSubmodule("head");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->parameters().size(), 2u);
  EXPECT_THAT(ir::toString(*root.findGraph("text")), HasSubstr("head.forward_1"));
  EXPECT_EQ(imported->shapes.size(), 2u);
}

TEST_F(Exported, AProgramOfOtherWeightsIsAModuleOfItsOwn) {
  SampleProgram other;
  other.files["data/weights/weight_0"] = floats({1, 2, 3, 4, 5, 6, 7, 8, 10});
  auto imported = import({{"image", SampleProgram()}, {"text", other}});
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  const ir::Module &root = *imported->module;
  EXPECT_EQ(valuesOf(root, "head.bias"), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(valuesOf(root, "text.head.bias"), (std::vector<float>{7, 8, 10}));
  ir::Diagnostics diagnostics;
  ir::verify(root, diagnostics);
  EXPECT_FALSE(diagnostics.hasErrors()) << diagnostics.render();
  EXPECT_EQ(root.findSubmodule("text")->className(), "Net");
}

TEST_F(Exported, ConstantsOfOneNameAndOtherValuesStayApart) {
  SampleProgram image, text;
  for (SampleProgram *sample : {&image, &text}) {
    json &bias = sample->program["graph_module"]["signature"]["input_specs"][1];
    bias = {{"tensor_constant",
             {{"arg", {{"name", "p_b"}}}, {"tensor_constant_name", "lifted_tensor_0"}}}};
    sample->constants["config"]["lifted_tensor_0"] = sample->weights["config"]["head.bias"];
    sample->constants["config"]["lifted_tensor_0"]["path_name"] = "constant_0";
  }
  image.files["data/constants/constant_0"] = floats({1, 2, 3, 4, 5, 6, 7, 8, 9});
  text.files["data/constants/constant_0"] = floats({1, 2, 3, 4, 5, 6, 7, 8, 10});
  auto imported = import({{"image", image}, {"text", text}});
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  EXPECT_EQ(valuesOf(*imported->module, "lifted_tensor_0"), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(valuesOf(*imported->module, "lifted_tensor_0_text"), (std::vector<float>{7, 8, 10}));
  EXPECT_EQ(imported->module->submodules().size(), 1u);
}

TEST_F(Exported, NamesOfFilesMustBeNamesOfMethods) {
  for (const char *name : {"2", "a-b", "a.b"}) {
    const Status status = import({{"image", SampleProgram()}, {name, SampleProgram()}}).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(),
                HasSubstr(std::string(name) + ".pt2: the name of a file becomes"));
  }
  const std::string path = folder_ / "m.pt2";
  ASSERT_TRUE(import(SampleProgram()).isOk());
  const Status status = exported::importExported({path, path}, ImportFor::Inference).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("'m' is the name of another file too"));
}

TEST_F(Exported, TrainingMakesParametersStates) {
  auto imported = import(SampleProgram(), ImportFor::Training);
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  const ir::Parameter *weight = imported->module->findParameter("head.weight");
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight->kind, ir::Parameter::Kind::State);
  EXPECT_EQ(weight->role, StateRole::Parameter);
}

TEST_F(Exported, UnknownOpsAndDTypesAreRefusedByTheirLines) {
  SampleProgram sample;
  sample.nodes()[1]["target"] = "torch.ops.made_up.op.default";
  sample.nodes()[2]["target"] = "torch.ops.higher_order.cond";
  auto imported = import(sample);
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  EXPECT_THAT(ir::toString(*imported->module->findGraph("forward")),
              HasSubstr("made_up::op(self, other)"));
  EXPECT_THAT(ir::toString(*imported->module->findSubmodule("head")->findGraph("forward")),
              HasSubstr("torch.ops.higher_order.cond"));
}

TEST_F(Exported, PartsUnderNoGradBecomeNodesOfTheProgram) {
  SampleProgram sample;
  json call = sample.nodes()[1], inner = call;
  // Within the part, the values have the names of others outside.
  inner["inputs"][0]["arg"] = SampleProgram::tensorArg("linear");
  inner["inputs"][1]["arg"] = {{"as_sym_int", {{"as_name", "x"}}}};
  inner["outputs"] = json::array({SampleProgram::tensorArg("p_w")});
  const json graph = {
      {"inputs", {SampleProgram::tensorArg("linear"), {{"as_sym_int", {{"as_name", "x"}}}}}},
      {"outputs", json::array({SampleProgram::tensorArg("p_w")})},
      {"nodes", json::array({inner})}};
  call["target"] = "torch.ops.higher_order.wrap_with_set_grad_enabled";
  call["inputs"] = {SampleProgram::input("", {{"as_bool", false}}),
                    SampleProgram::input("", {{"as_graph", {{"name", "part"}, {"graph", graph}}}}),
                    SampleProgram::input("", SampleProgram::tensorArg("x")),
                    SampleProgram::input("", {{"as_sym_int", {{"as_name", "size"}}}})};
  sample.nodes()[1] = call;
  auto imported = import(sample);
  ASSERT_TRUE(imported.isOk()) << imported.status().message();
  const std::string text = ir::toString(*imported->module->findGraph("forward"));
  EXPECT_THAT(text, HasSubstr("aten.mul(%x, %size)"));
  EXPECT_THAT(text, HasSubstr("aten.detach("));
  EXPECT_THAT(text, HasSubstr("head.forward(%mul)"));
  call["inputs"].erase(3);
  sample.nodes()[1] = call;
  expectRefusal(sample, "a part under another mode has other operands than its call");
}

TEST_F(Exported, EveryCutIsRefused) {
  const std::string whole = SampleProgram().zip();
  for (size_t length = 0; length < whole.size(); length += 1 + length / 64) {
    const Status status = import(whole.substr(0, length)).status();
    EXPECT_EQ(status.code(), Code::InvalidFile) << length;
  }
}

TEST_F(Exported, EveryChangedByteIsRefusedOrHarmless) {
  const std::string whole = SampleProgram().zip();
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    (void)import(changed);
  }
}

TEST_F(Exported, VersionsAndByteOrdersAreRefusedByName) {
  SampleProgram sample;
  sample.program["schema_version"]["major"] = 9;
  expectRefusal(sample, "version 9.17 of torch.export's schema (torch 2.11.0)");
  sample = SampleProgram();
  sample.files["byteorder"] = "big";
  expectRefusal(sample, "byte order 'big'");
  sample = SampleProgram();
  sample.files["archive_format"] = "zip";
  expectRefusal(sample, "format 'zip'");
}

TEST_F(Exported, BadWeightsAreRefusedByTheirMembers) {
  SampleProgram sample;
  sample.files.erase("data/weights/weight_0");
  expectRefusal(sample, "'data/weights/weight_0' is missing");
  sample = SampleProgram();
  sample.files["data/weights/weight_0"].resize(32);
  expectRefusal(sample, "'data/weights/weight_0', which holds 'head.bias', has 32 bytes");
  sample = SampleProgram();
  sample.weights["config"].erase("head.bias");
  expectRefusal(sample, "no weight 'head.bias'");
  sample = SampleProgram();
  sample.weights["config"]["head.bias"]["use_pickle"] = true;
  expectRefusal(sample, "is a pickle, which cgc does not read");
  sample = SampleProgram();
  sample.weights["config"]["head.bias"]["tensor_meta"]["sizes"] =
      SampleProgram::ints({int64_t(1) << 62});
  expectRefusal(sample, "larger than any memory");
  sample = SampleProgram();
  sample.weights["config"]["head.bias"]["tensor_meta"]["sizes"] =
      SampleProgram::ints({int64_t(1) << 40});
  sample.weights["config"]["head.bias"]["tensor_meta"]["strides"] = SampleProgram::ints({0});
  expectRefusal(sample, "a view repeats");
}

TEST_F(Exported, OtherFilesOfTheArchiveAreRefused) {
  SampleProgram sample;
  sample.files["models/other.json"] = "{}";
  expectRefusal(sample, "2 programs, 'model' and 'other'");
  sample = SampleProgram();
  sample.files["data/weights/model.pt"] = "x";
  expectRefusal(sample, "'data/weights/model.pt' is a pickle");
  expectRefusal(zipOf({{"archive_format", "pt2"}}, /*method=*/8), "'archive_format' is compressed");
  std::string damaged = SampleProgram().zip();
  damaged[damaged.find(floats({1, 2, 3}))] ^= 1;
  expectRefusal(damaged, "'data/weights/weight_0' is damaged: its checksum differs");
}

TEST_F(Exported, MalformedProgramsAreRefused) {
  SampleProgram sample;
  sample.program["graph_module"].erase("graph");
  expectRefusal(sample, "models/model.json: this is not what torch.export writes");
  sample = SampleProgram();
  std::swap(sample.nodes()[1], sample.nodes()[2]); // As in a cycle, a node reads a later one.
  expectRefusal(sample, "the value 'mul' is read before it is made");
  sample = SampleProgram();
  sample.nodes()[2]["outputs"] = json::array({SampleProgram::tensorArg("mul")});
  expectRefusal(sample, "the value 'mul' is made twice");
}

} // namespace
} // namespace cgc::test

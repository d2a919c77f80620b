// Tests of cgc compare: it passes for the plan's own model in each precision and fails for another.
#include "tests/paths.h"
#include "tool.h"

namespace cgc::e2e {
namespace {

struct Precision {
  const char *model;
  const char *image;
  double most; ///< Bound of the relative L2: four roundings of the dtype.
};

class Compare : public ToolTest {};
class ComparePrecision : public ToolTest, public testing::WithParamInterface<Precision> {};

TEST_P(ComparePrecision, PassesForEveryEntryAndBucket) {
  const fs::path model = models() / GetParam().model;
  const Outcome compiled = cgc({"compile", model, "-o", "plan.cgplan", "--input", GetParam().image,
                                "--input", "text=i64[1,16]", "--batch", "1,3", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome outcome = cgc({"compare", "plan.cgplan", model, "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  const auto json = parseJson(outcome, "compare");
  EXPECT_EQ(json["passed"], true);
  // forward has three outputs and the other entries one; each has two buckets.
  ASSERT_EQ(json["outputs"].size(), 10u);
  for (const auto &output : json["outputs"]) {
    EXPECT_GT(output["cosine"], 0.99);
    EXPECT_LE(output["relative_l2"], GetParam().most);
    EXPECT_LE(output["relative_l2"], output["limit"]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, ComparePrecision,
    testing::Values(Precision{"tiny_fp32.pt", "image=f32[1,3,32,32]", 1e-5},
                    Precision{"tiny_fp16.pt", "image=f16[1,3,32,32]", 0x1p-9},
                    Precision{"tiny_bf16.pt", "image=bf16[1,3,32,32]", 0x1p-6}),
    [](const auto &info) { return fs::path(info.param.model).stem().string(); });

struct Conversion {
  const char *model, *image, *precision, *dtype;
};

class CompareConverted : public ToolTest, public testing::WithParamInterface<Conversion> {
protected:
  nlohmann::json compare(const std::string &plan, const fs::path &model) {
    const Outcome outcome = cgc({"compare", plan, model, "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
    return parseJson(outcome, "compare")["outputs"];
  }
};

TEST_F(Compare, TakesAModelTracedUnderAutocast) {
  const fs::path model = models() / "autocast.pt";
  const std::vector<std::string> compile = {"compile",     model,     "-o",
                                            "plan.cgplan", "--input", "x=f32[2,5,64]"};
  std::vector<std::string> forCpu = compile;
  forCpu.insert(forCpu.end(), {"--target", "cpu"});
  ASSERT_EQ(cgc(forCpu).status, 0);
  const Outcome outcome = cgc({"compare", "plan.cgplan", model, "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  EXPECT_EQ(parseJson(outcome, "compare")["passed"], true);
  // For cuda, cgc's own kernels take both dtypes.
  std::vector<std::string> native = compile;
  native.push_back("--require-native");
  const Outcome cuda = cgc(native);
  EXPECT_EQ(cuda.status, 0) << cuda.err;
  const std::string listing = cgc({"inspect", "plan.cgplan"}).out;
  EXPECT_NE(listing.find("kernel layer_norm_by_f32_bf16"), std::string::npos) << listing;
}

/// Each call of the model becomes one or several other ops while it is imported.
TEST_F(Compare, TakesFunctionsThatBecomeOtherOps) {
  const fs::path model = models() / "functions.pt";
  for (const char *batch : {"1", "2"}) {
    ASSERT_EQ(cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[2,4,6,6]", "--batch",
                   batch, "--target", "cpu"})
                  .status,
              0);
    const Outcome compared = cgc({"compare", "plan.cgplan", model});
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
  }
}

TEST_F(Compare, TakesLosses) {
  for (const char *name : {"losses.pt", "losses_scripted.pt"}) {
    const fs::path model = models() / name;
    const Outcome compiled = cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[6,5]",
                                  "--input", "labels=i64[6]", "--target", "cpu"});
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome compared = cgc({"compare", "plan.cgplan", model});
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
  }
}

TEST_F(Compare, TakesLayersThatDependOnSizes) {
  for (const char *name : {"layers.pt", "layers_scripted.pt"}) {
    const fs::path model = models() / name;
    const Outcome compiled =
        cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[2,4,7,6]", "--input",
             "ids=i64[2,2]", "--batch", "1,2", "--target", "cpu"});
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome compared = cgc({"compare", "plan.cgplan", model});
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    // Each column of the ids indexes an embedding of its own.
    const Outcome run =
        cgc({"run", "plan.cgplan", "--input", "x=random:0", "--input",
             "ids=@" + (models() / "layers_ids.npy").string(), "--output", "y.npy"});
    EXPECT_EQ(run.status, 0) << run.err;
  }
}

/// A trace computes the padding by tensors of the input's sizes.
TEST_F(Compare, TakesPaddingThatDependsOnSizes) {
  const fs::path model = models() / "padded_pool.pt";
  for (const char *input : {"x=f32[2,4,7,6]", "x=f32[1,2,12,5]"}) {
    ASSERT_EQ(
        cgc({"compile", model, "-o", "plan.cgplan", "--input", input, "--target", "cpu"}).status,
        0);
    const Outcome compared = cgc({"compare", "plan.cgplan", model});
    EXPECT_EQ(compared.status, 0) << input << compared.err << compared.out;
  }
}

/// A trace computes with sizes in tensors of one number: roots, casts, floors.
TEST_F(Compare, TakesSizesThatAreTensors) {
  const fs::path model = models() / "sizes_as_tensors.pt";
  for (const char *input : {"x=f32[2,36,4]", "x=f32[1,400,4]"}) {
    const Outcome compiled =
        cgc({"compile", model, "-o", "plan.cgplan", "--input", input, "--target", "cpu"});
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome compared = cgc({"compare", "plan.cgplan", model});
    EXPECT_EQ(compared.status, 0) << input << compared.err << compared.out;
  }
}

TEST_F(Compare, TakesModulesWhoseResultNothingReads) {
  const fs::path model = models() / "unread_results.pt";
  const Outcome compiled =
      cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[2,3,8]", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome compared = cgc({"compare", "plan.cgplan", model});
  EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
}

/// --precision fp32 converts doubles to floats in the plan, while the converted model in LibTorch
/// keeps them.
TEST_F(Compare, TakesDoublesThatThePlanMadeFloats) {
  for (const char *precision : {"fp32", "fp16", "keep"}) {
    const fs::path model = models() / "doubles.pt";
    ASSERT_EQ(cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[4,8]", "--target",
                   "cpu", "--precision", precision})
                  .status,
              0);
    const Outcome compared = cgc({"compare", "plan.cgplan", model});
    EXPECT_EQ(compared.status, 0) << precision << compared.err << compared.out;
  }
}

TEST_P(CompareConverted, PassesForEveryEntry) {
  const Conversion &conversion = GetParam();
  const fs::path model = models() / conversion.model;
  const Outcome compiled =
      cgc({"compile", model, "-o", "plan.cgplan", "--input", conversion.image, "--input",
           "text=i64[2,16]", "--target", "cpu", "--precision", conversion.precision, "--json"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const auto plan = parseJson(compiled, "compile");
  ASSERT_FALSE(plan["entries"].empty());
  for (const auto &entry : plan["entries"]) {
    const auto &bucket = entry["buckets"][0];
    for (const char *side : {"inputs", "outputs"})
      for (const auto &tensor : bucket[side])
        EXPECT_EQ(tensor["dtype"], tensor["name"] == "text" ? "i64" : conversion.dtype);
  }
  const auto outputs = compare("plan.cgplan", model);
  ASSERT_EQ(outputs.size(), 5u);
  for (const auto &output : outputs)
    EXPECT_GT(output["cosine"], 0.99);
}

TEST_P(CompareConverted, IsAsExactAsTheModelExportedAtThatPrecision) {
  // The weights are those of tiny_fp32.pt, rounded.
  const Conversion &conversion = GetParam();
  if (std::string(conversion.precision) == "fp32")
    GTEST_SKIP() << "the exported fp32 model has other weights";
  ASSERT_EQ(cgc({"compile", models() / conversion.model, "-o", "plan.cgplan", "--input",
                 "text=i64[4,16]", "--target", "cpu", "--precision", conversion.precision})
                .status,
            0);
  // The reference has the rounded weights too. Compared with its own model, a plan has the error
  // of rounding them besides, which the exported model does not have.
  const fs::path exported = models() / ("tiny_" + std::string(conversion.precision) + ".pt");
  const auto outputs = compare("plan.cgplan", exported);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_LE(outputs[0]["relative_l2"], outputs[0]["limit"]);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, CompareConverted,
    testing::Values(Conversion{"tiny_fp32.pt", "image=f32[2,3,32,32]", "fp16", "f16"},
                    Conversion{"tiny_fp32.pt", "image=f32[2,3,32,32]", "bf16", "bf16"},
                    Conversion{"tiny_fp16.pt", "image=f16[2,3,32,32]", "bf16", "bf16"},
                    Conversion{"tiny_fp16.pt", "image=f16[2,3,32,32]", "fp32", "f32"}),
    [](const auto &info) {
      return fs::path(info.param.model).stem().string() + "_to_" + info.param.precision;
    });

TEST_F(Compare, PassesOnTheMainBranchForm) {
  const fs::path model = test::sourceDir() / "tests/data/openclip_main_tiny.pt";
  const Outcome compiled =
      cgc({"compile", model, "-o", "plan.cgplan", "--input", "image=f32[2,3,48,48]", "--input",
           "text=i64[2,16]", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome outcome = cgc({"compare", "plan.cgplan", model});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("ok"), std::string::npos);
  EXPECT_EQ(outcome.out.find("FAILED"), std::string::npos);
}

TEST_F(Compare, TakesLibTorchsOwnRunWhereWideningMakesAnotherFunction) {
  const fs::path model = models() / "cast_that_copies.pt";
  const Outcome compiled =
      cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f16[4,512]", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const auto json = parseJson(cgc({"compare", "plan.cgplan", model, "--json"}), "compare");
  EXPECT_EQ(json["passed"], true);
  EXPECT_LT(json["outputs"][0]["relative_l2"], 1e-3);
  EXPECT_EQ(json["outputs"][0]["limit"], 0.1);
}

/// Each model multiplies by its factor, so the relative distance between two models is that of
/// their factors.
TEST_F(Compare, InFullPrecisionTheDistanceMayBeOneHundredThousandth) {
  ASSERT_EQ(cgc({"compile", models() / "scale_one.pt", "-o", "plan.cgplan", "--input", "x=f32[512]",
                 "--target", "cpu"})
                .status,
            0);
  const Outcome within = cgc({"compare", "plan.cgplan", models() / "scale_within.pt", "--json"});
  EXPECT_EQ(within.status, 0) << within.err;
  EXPECT_NEAR(parseJson(within, "compare")["outputs"][0]["relative_l2"], 0.9e-5, 2e-7);
  const Outcome past = cgc({"compare", "plan.cgplan", models() / "scale_past.pt", "--json"});
  EXPECT_EQ(past.status, 5) << past.err;
  EXPECT_NEAR(parseJson(past, "compare")["outputs"][0]["relative_l2"], 1.1e-5, 2e-7);
}

/// The plan makes the same calls as LibTorch, so both have the same distance to fp32 and the limit
/// is higher by the factor.
TEST_F(Compare, InReducedPrecisionTheDistanceMayBeAFifthMoreThanLibTorchs) {
  for (const char *precision : {"fp16", "bf16"}) {
    ASSERT_EQ(cgc({"compile", models() / "doubles.pt", "-o", "plan.cgplan", "--input", "x=f32[4,8]",
                   "--target", "cpu", "--precision", precision})
                  .status,
              0);
    const auto json =
        parseJson(cgc({"compare", "plan.cgplan", models() / "doubles.pt", "--json"}), "compare");
    const auto &output = json["outputs"][0];
    const double distance = output["relative_l2"];
    EXPECT_GT(distance, 1e-4) << precision;
    EXPECT_NEAR(output["limit"].get<double>() / distance, 1.2, 1e-9) << precision;
  }
}

struct Range {
  const char *model, *input, *precision;
  double most; ///< The largest limit: 16 roundoffs of the dtype.
};

/// What autocast computes in f32 stays f32 between the ops of a converted model. LibTorch's run of
/// the converted model overflows in f16, so that only the run in fp32 is a reference.
class CompareRange : public ToolTest, public testing::WithParamInterface<Range> {};

TEST_P(CompareRange, AgreesWithFullPrecision) {
  const Range &range = GetParam();
  for (const std::vector<std::string> &target :
       {std::vector<std::string>{"cpu"}, {"cuda", "-O1"}, {"cuda", "-O0"}}) {
    SCOPED_TRACE(testing::PrintToString(target));
    std::vector<std::string> compile = {
        "compile",     models() / range.model, "-o",      "plan.cgplan",
        "--precision", range.precision,        "--input", range.input,
        "--target"};
    compile.insert(compile.end(), target.begin(), target.end());
    const Outcome compiled = cgc(compile);
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    std::vector<std::string> compare = {"compare", "plan.cgplan", models() / range.model, "--json"};
    if (target[0] == "cuda")
      compare.insert(compare.end(), {"--executor", "reference"});
    const Outcome outcome = cgc(compare);
    EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
    const auto compared = parseJson(outcome, "compare");
    ASSERT_FALSE(compared["outputs"].empty());
    for (const auto &output : compared["outputs"]) {
      EXPECT_LE(output["relative_l2"], range.most) << output;
      EXPECT_LE(output["limit"], range.most) << output;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Converted, CompareRange,
                         testing::Values(Range{"norms.pt", "x=f32[16,64]", "fp16", 0x1p-7},
                                         Range{"norms.pt", "x=f32[16,64]", "bf16", 0x1p-4},
                                         Range{"t5.pt", "ids=i64[2,8]", "fp16", 0x1p-7},
                                         Range{"t5.pt", "ids=i64[2,8]", "bf16", 0x1p-4}),
                         [](const auto &info) {
                           return fs::path(info.param.model).stem().string() + "_" +
                                  info.param.precision;
                         });

/// LibTorch's run in f16 is as wrong as the plan.
TEST_F(Compare, FailsIfThePrecisionMakesZerosOrInfinities) {
  const fs::path model = models() / "overflows.pt";
  ASSERT_EQ(cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[4,64]", "--target", "cpu",
                 "--precision", "fp16"})
                .status,
            0);
  const Outcome outcome = cgc({"compare", "plan.cgplan", model, "--json"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  EXPECT_NE(
      outcome.err.find("output 'output0' of entry 'forward' is zero everywhere, unlike LibTorch's"),
      std::string::npos)
      << outcome.err;
  const auto outputs = parseJson(outcome, "compare")["outputs"];
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0]["degenerate"], "is zero everywhere");
  EXPECT_EQ(outputs[1]["degenerate"], "holds NaN or infinities");
  EXPECT_EQ(outputs[2]["degenerate"], "") << "it is constant in LibTorch, too";
  EXPECT_EQ(outputs[2]["passed"], true);
}

TEST_F(Compare, FailsIfOnlyThePlansOutputIsZero) {
  ASSERT_EQ(cgc({"compile", models() / "scale_zero.pt", "-o", "plan.cgplan", "--input",
                 "x=f32[512]", "--target", "cpu"})
                .status,
            0);
  EXPECT_EQ(cgc({"compare", "plan.cgplan", models() / "scale_zero.pt"}).status, 0);
  const Outcome outcome = cgc({"compare", "plan.cgplan", models() / "scale_one.pt"});
  EXPECT_EQ(outcome.status, 5);
  EXPECT_NE(outcome.err.find("is zero everywhere, unlike LibTorch's"), std::string::npos)
      << outcome.err;
}

TEST_F(Compare, FailsAgainstOtherWeights) {
  makePlan();
  // The other model has the same shapes and other weights.
  const fs::path script = test::sourceDir() / "scripts/export_openclip.py";
  const Outcome other =
      runProgram({test::sourceDir() / ".venv/bin/python", script, "--config",
                  test::sourceDir() / "tests/data/tiny.json", "--seed", "1", "--out", "other.pt"},
                 folder);
  ASSERT_EQ(other.status, 0) << other.err;
  const Outcome outcome =
      cgc({"compare", "plan.cgplan", "other.pt", "--entry", "encode_text", "--json"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  const auto json = parseJson(outcome, "compare");
  EXPECT_EQ(json["passed"], false);
  ASSERT_EQ(json["outputs"].size(), 1u);
  EXPECT_EQ(json["outputs"][0]["passed"], false);
  EXPECT_NE(outcome.err.find("past the tolerance"), std::string::npos);
}

TEST_F(Compare, FailsAgainstOneWeightThatIsALittleOff) {
  makePlan({"--entry", "encode_text"});
  const Outcome changed = runProgram(
      {test::sourceDir() / ".venv/bin/python", "-c",
       "import sys, torch\nm = torch.jit.load(sys.argv[1])\n"
       "dict(m.named_parameters())['transformer.resblocks.0.mlp.c_fc.weight'].data.mul_(1.02)\n"
       "m.save('changed.pt')",
       models() / "tiny_fp32.pt"},
      folder);
  ASSERT_EQ(changed.status, 0) << changed.err;
  const Outcome outcome = cgc({"compare", "plan.cgplan", "changed.pt", "--json"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  const auto json = parseJson(outcome, "compare");
  EXPECT_EQ(json["outputs"][0]["passed"], false);
  EXPECT_GT(json["outputs"][0]["cosine"], 0.99);
  EXPECT_NE(outcome.err.find("was the plan compiled from this model?"), std::string::npos);
}

TEST_F(Compare, FailsAgainstAnotherModel) {
  makePlan();
  const Outcome outcome = cgc({"compare", "plan.cgplan", models() / "two_outputs.pt", "--json"});
  EXPECT_EQ(outcome.status, 2);
  for (const char *text :
       {"forward: the method's input 'ids' is missing", "was the plan compiled from this model?"})
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  EXPECT_EQ(parseJson(outcome, "error")["code"], "usage");
}

TEST_F(Compare, IntegersAndBoolsMustBeEqual) {
  ASSERT_EQ(cgc({"compile", models() / "count_1000000.pt", "-o", "plan.cgplan", "--input",
                 "x=i64[4]", "--target", "cpu"})
                .status,
            0);
  Outcome outcome = cgc({"compare", "plan.cgplan", models() / "count_1000000.pt", "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  auto json = parseJson(outcome, "compare");
  ASSERT_EQ(json["outputs"].size(), 2u);
  EXPECT_EQ(json["outputs"][0]["limit"], 0);
  // A difference of one in a million, which is within the tolerance of floats.
  outcome = cgc({"compare", "plan.cgplan", models() / "count_1000001.pt", "--json"});
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  json = parseJson(outcome, "compare");
  EXPECT_LT(json["outputs"][0]["relative_l2"], 1e-5);
  EXPECT_EQ(json["outputs"][0]["passed"], false);
  EXPECT_EQ(json["outputs"][1]["passed"], true);
}

/// An output of one element is compared over 512 inputs. The models differ only for some of them:
/// for the last input, which is all ones, they agree.
TEST_F(Compare, IntegersMustBeEqualInEveryRun) {
  ASSERT_EQ(cgc({"compile", models() / "product_1.pt", "-o", "plan.cgplan", "--input", "x=i64[4]",
                 "--target", "cpu"})
                .status,
            0);
  EXPECT_EQ(cgc({"compare", "plan.cgplan", models() / "product_1.pt"}).status, 0);
  const Outcome other = cgc({"compare", "plan.cgplan", models() / "product_2.pt", "--json"});
  EXPECT_EQ(other.status, 5) << other.err;
  EXPECT_EQ(parseJson(other, "compare")["outputs"][0]["passed"], false);
}

TEST_F(Compare, RepeatsAlongEveryDimension) {
  const auto compile = [&](const char *model) {
    return cgc({"compile", models() / model, "-o", "plan.cgplan", "--input", "x=i64[2,3,4]",
                "--target", "cpu"});
  };
  const Outcome compiled = compile("repeats.pt");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome outcome = cgc({"compare", "plan.cgplan", models() / "repeats.pt", "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  EXPECT_EQ(parseJson(outcome, "compare")["outputs"].size(), 12u);
  expectError(compile("no_repeats.pt"), 4, {"make_models.py", "from 1 to 1024"});
}

TEST_F(Compare, OutputsOfAnotherShapeAreAnErrorInJson) {
  ASSERT_EQ(cgc({"compile", models() / "count_1000000.pt", "-o", "plan.cgplan", "--input",
                 "x=i64[4]", "--target", "cpu"})
                .status,
            0);
  const Outcome outcome = cgc({"compare", "plan.cgplan", models() / "no_rule.pt", "--json"});
  EXPECT_NE(outcome.status, 0);
  const auto json = parseJson(outcome, "error");
  EXPECT_NE(json["message"].get<std::string>().find("was the plan compiled from this model?"),
            std::string::npos)
      << outcome.out;
}

TEST_F(Compare, SaysThatAnOutputHardlyDependsOnTheInput) {
  const fs::path model = models() / "hardly_depends.pt";
  const Outcome compiled =
      cgc({"compile", model, "-o", "plan.cgplan", "--input", "x=f32[2,512]", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome outcome = cgc({"compare", "plan.cgplan", model, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto outputs = parseJson(outcome, "compare")["outputs"];
  ASSERT_EQ(outputs.size(), 3u);
  // The expected value is 1e-6 times the typical difference of two normal numbers.
  EXPECT_NEAR(outputs[0]["input_effect"].get<double>(), 1.41e-6, 2e-7);
  EXPECT_EQ(outputs[0]["hardly_depends_on_input"], true);
  EXPECT_NEAR(outputs[1]["input_effect"].get<double>(), 1, 0.1);
  EXPECT_EQ(outputs[1]["hardly_depends_on_input"], false);
  EXPECT_EQ(outputs[2]["input_effect"], 0);
  EXPECT_EQ(outputs[2]["hardly_depends_on_input"], false);
  const Outcome text = cgc({"compare", "plan.cgplan", model});
  for (const char *part : {"two inputs", "ok, weak", "constant", "weights may be random"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in:\n" << text.out;
}

TEST_F(Compare, TakesAListOfEntries) {
  makePlan();
  const Outcome outcome = cgc({"compare", "plan.cgplan", models() / "tiny_fp32.pt", "--entry",
                               "encode_text,encode_image", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto outputs = parseJson(outcome, "compare")["outputs"];
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0]["entry"], "encode_image"); // In the plan's order.
  EXPECT_EQ(outputs[1]["entry"], "encode_text");
}

TEST_F(Compare, RefusesUnknownEntries) {
  makePlan();
  expectError(cgc({"compare", "plan.cgplan", models() / "tiny_fp32.pt", "--entry", "encode_audio"}),
              2, {"encode_audio", "encode_text"});
}

} // namespace
} // namespace cgc::e2e

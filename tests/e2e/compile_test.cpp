// Tests of cgc compile: results, buckets and entries, determinism, interruption, and errors.
#include "passes/pipeline.h"
#include "tests/paths.h"
#include "tool.h"

#include <algorithm>
#include <future>

namespace cgc::e2e {
namespace {

class Compile : public ToolTest {
protected:
  fs::path tiny() const { return models() / "tiny_fp32.pt"; }
  /// Checks that compile with these arguments fails with this status and texts and leaves no file.
  void refuses(const fs::path &model, std::vector<std::string> arguments, int status,
               const std::vector<std::string> &texts) {
    std::vector<std::string> all = {"compile", model, "-o", "out.cgplan", "--target", "cpu"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    expectError(cgc(all), status, texts);
    EXPECT_TRUE(files().empty());
  }
};

TEST_F(Compile, RefusesAQuantizedModelByLine) {
  const Outcome outcome = cgc({"compile", models() / "quantized.pt", "-o", "plan.cgplan", "--input",
                               "x=f32[2,5,64]", "--json"});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_TRUE(files().empty());
  const auto json = parseJson(outcome, "error");
  EXPECT_EQ(json["offenders"].size(), 2u) << json; // One offender per line.
  for (const auto &offender : json["offenders"]) {
    EXPECT_EQ(offender["op"], "quantized::linear_dynamic");
    EXPECT_EQ(offender["cause"], "quantized");
    EXPECT_EQ(offender["why"], "quantized models are not supported");
    EXPECT_TRUE(offender["file"].get<std::string>().ends_with("make_models.py")) << offender;
    EXPECT_GT(offender["line"], 0);
  }
  EXPECT_NE(outcome.err.find("export the model as it was before quantization"), std::string::npos)
      << outcome.err;
}

TEST_F(Compile, TakesAllMethodsWhoseInputsAreGiven) {
  const Outcome outcome = cgc(compileTiny(tiny(), "out.cgplan", {"--json"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "compile");
  std::vector<std::string> entries;
  for (const auto &entry : json["entries"])
    entries.push_back(entry["name"]);
  std::ranges::sort(entries);
  EXPECT_EQ(entries, (std::vector<std::string>{"encode_image", "encode_text", "forward"}));
  EXPECT_EQ(json["target"], "cpu");
  EXPECT_EQ(json["bytes"], fs::file_size(folder / "out.cgplan"));
  EXPECT_EQ(files(), std::vector<std::string>{"out.cgplan"});
}

TEST_F(Compile, TakesOnlyTheMethodsThatItsInputsSuffice) {
  const Outcome outcome = cgc({"compile", tiny(), "-o", "out.cgplan", "--input", "text=i64[1,16]",
                               "--target", "cpu", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "compile");
  ASSERT_EQ(json["entries"].size(), 1u);
  EXPECT_EQ(json["entries"][0]["name"], "encode_text");
}

TEST_F(Compile, MakesABucketForEachBatch) {
  const Outcome outcome = cgc(compileTiny(
      tiny(), "out.cgplan", {"--batch", "1,4", "--entry", "encode_text,forward", "--json"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "compile");
  ASSERT_EQ(json["entries"].size(), 2u);
  for (const auto &entry : json["entries"]) {
    ASSERT_EQ(entry["buckets"].size(), 2u);
    for (const auto &input : entry["buckets"][1]["inputs"])
      EXPECT_EQ(input["shape"][0], 4);
  }
}

TEST_F(Compile, ChoosesBatchesByTheirExpectedTimes) {
  const std::vector<std::string> options = {
      "compile", tiny(), "-o",     "out.cgplan", "--input", "text=i64[1,16]", "--max-batch", "6",
      "--batch", "auto", "--json", "--dump-dir", "dump"};
  const Outcome outcome = cgc(options);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("--batch auto chooses "), std::string::npos) << outcome.err;
  const auto buckets = parseJson(outcome, "compile")["entries"][0]["buckets"];
  EXPECT_EQ(buckets.back()["inputs"][0]["shape"][0], 6);
  // A pass dumps each bucket, and none of those that only have their times computed.
  size_t dumps = 0;
  for (const auto &file : fs::directory_iterator(folder / "dump"))
    dumps +=
        file.path().filename().string().find("select-linear.encode_text_") != std::string::npos &&
        file.path().extension() == ".cgir";
  EXPECT_EQ(dumps, buckets.size());
  // One bucket suffices if a row may take as long as any number of them.
  std::vector<std::string> wasteful = options;
  wasteful.insert(wasteful.end(), {"--waste", "1000"});
  EXPECT_EQ(parseJson(cgc(wasteful), "compile")["entries"][0]["buckets"].size(), 1u);
}

TEST_F(Compile, RefusesAutomaticBatchesThatMeanNothing) {
  const auto refuses = [&](std::vector<std::string> options, const char *message) {
    std::vector<std::string> command = {"compile",    tiny(),    "-o",
                                        "out.cgplan", "--input", "text=i64[1,16]"};
    command.insert(command.end(), options.begin(), options.end());
    expectError(cgc(command), 2, {message});
  };
  refuses({"--batch", "auto,1"}, "or auto alone");
  refuses({"--batch", "1,auto"}, "or auto alone");
  refuses({"--waste", "0.2"}, "--waste is for --batch auto");
  refuses({"--batch", "2", "--max-batch", "8"}, "--max-batch is for --batch auto");
  refuses({"--batch", "auto", "--target", "cpu"}, "--target cuda; list the batches");
  refuses({"--batch", "auto", "--waste", "-1"}, "--waste");
  refuses({"--batch", "auto", "--train", "forward"}, "never padded; list the batches");
}

TEST_F(Compile, KnowsHowManyTokensTheEmbeddingHas) {
  const Outcome outcome =
      cgc(compileTiny(tiny(), "out.cgplan", {"--entry", "encode_text", "--json"}));
  EXPECT_EQ(parseJson(outcome, "compile")["entries"][0]["buckets"][0]["inputs"][0]["upper_bound"],
            512);
}

TEST_F(Compile, SameInputSameBytes) {
  ASSERT_EQ(cgc(compileTiny(tiny(), "a.cgplan")).status, 0);
  ASSERT_EQ(cgc(compileTiny(tiny(), "b.cgplan")).status, 0);
  EXPECT_TRUE(readFile(folder / "a.cgplan") == readFile(folder / "b.cgplan"));
}

TEST_F(Compile, TwoAtOnceToOneFileLeaveOneWholePlan) {
  const auto compile = [&] { return cgc(compileTiny(tiny(), "out.cgplan")).status; };
  auto other = std::async(std::launch::async, compile);
  EXPECT_EQ(compile(), 0);
  EXPECT_EQ(other.get(), 0);
  EXPECT_EQ(files(), std::vector<std::string>{"out.cgplan"});
  EXPECT_EQ(cgc({"run", "out.cgplan", "--entry", "encode_text", "--input", "text=random:0"}).status,
            0);
}

TEST_F(Compile, ADumpThatDoesNotFitLeavesNoHalfFile) {
  const Outcome outcome =
      cgc(compileTiny(tiny(), "out.cgplan", {"--dump-dir", "dump"}), {.fileSizeLimit = 5000});
  expectError(outcome, 1, {"cannot write 'dump/01-module-substitution.cgir'"});
  EXPECT_EQ(files(), std::vector<std::string>{"dump"});
  EXPECT_TRUE(fs::is_empty(folder / "dump"));
}

TEST_F(Compile, ShapesThatTheModelDoesNotTakeNameTheInput) {
  for (const char *text : {"text=i64[16]", "text=i64[1,1,16]", "text=i64[1,17]", "text=f32[1,16]"})
    expectError(cgc({"compile", tiny(), "-o", "out.cgplan", "--input", text, "--target", "cpu"}), 4,
                {".py:", std::string("to do: ") + text + " may not be what the model takes"});
  EXPECT_TRUE(files().empty());
}

TEST_F(Compile, WarnsOfAnArenaThatNoTargetGpuHas) {
  const auto compile = [&](const std::string &batch, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"compile", tiny(), "-o", "out.cgplan", "--input", "text=i64[1,16]",
                               "--batch", batch, "--quiet"});
    return cgc(more);
  };
  EXPECT_EQ(compile("1024").err, "");
  for (const auto &[arch, text] : {std::pair("sm_90a", "141.0 GB of an NVIDIA H200"),
                                   {"sm_80", "80.0 GB of an NVIDIA A100"}}) {
    const Outcome outcome = compile("16777216", {"--arch", arch});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("cgc: warning: the arena takes "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  }
}

TEST_F(Compile, ShowsPhasesOnlyIfItTakesLong) {
  const auto compile = [&](const std::string &after, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {"env", "CGC_PROGRESS_AFTER=" + after,
                                        test::buildDir().string() + "/bin/cgc"};
    const auto arguments = compileTiny(tiny(), "out.cgplan", std::move(more));
    command.insert(command.end(), arguments.begin(), arguments.end());
    return runProgram(command, folder).err;
  };
  EXPECT_EQ(compile("1000"), "");
  const std::string phases = compile("0");
  for (const char *phase : {"cgc: info: [1] load ", "] lower\n", "] write out.cgplan\n"})
    EXPECT_NE(phases.find(phase), std::string::npos) << phases;
  EXPECT_EQ(compile("0", {"--quiet"}), "");
}

TEST_F(Compile, ToStandardOutputWritesThePlanAlone) {
  ASSERT_EQ(cgc(compileTiny(tiny(), "out.cgplan")).status, 0);
  const Outcome outcome = cgc(compileTiny(tiny(), "/dev/stdout"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out == readFile(folder / "out.cgplan"));
}

TEST_F(Compile, InterruptedLeavesNothing) {
  const Outcome outcome = cgc(compileTiny(tiny(), "out.cgplan"), {.killOnPhase = "specialize"});
  EXPECT_EQ(outcome.status, 128 + 2) << outcome.err;
  EXPECT_TRUE(files().empty());
}

TEST_F(Compile, InterruptedKeepsTheOldPlan) {
  writeFile(folder / "out.cgplan", "precious");
  const Outcome outcome = cgc(compileTiny(tiny(), "out.cgplan"), {.killOnPhase = "load"});
  EXPECT_EQ(outcome.status, 128 + 2) << outcome.err;
  EXPECT_EQ(readFile(folder / "out.cgplan"), "precious");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Compile, TargetCudaNeedsNoGpu) {
  const Outcome outcome =
      cgc({"compile", tiny(), "-o", "out.cgplan", "--input", "text=i64[1,16]", "--target", "cuda"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  if (hasGpu())
    GTEST_SKIP() << "there is a GPU: running is covered by the conformance tests";
  expectError(cgc({"run", "out.cgplan", "--input", "text=random:0", "--output", "y.npy"}), 6,
              {"NVIDIA driver"});
  EXPECT_FALSE(fs::exists(folder / "y.npy"));
}

TEST_F(Compile, Tf32IsForCudaAndForGemmsOnly) {
  const std::string model = models() / "tiny_fp16.pt";
  expectError(cgc({"compile", model, "-o", "plan.cgplan", "--input", "text=i64[1,16]", "--target",
                   "cpu", "--precision", "tf32"}),
              2, {"--precision tf32 is for --target cuda", "use fp32"});
  EXPECT_FALSE(fs::exists(folder / "plan.cgplan"));
  for (const char *precision : {"fp32", "tf32"}) {
    const auto json =
        parseJson(cgc({"compile", model, "-o", std::string(precision) + ".cgplan", "--input",
                       "image=f16[8,3,32,32]", "--precision", precision, "--json"}),
                  "compile");
    EXPECT_EQ(json["entries"][0]["buckets"][0]["outputs"][0]["dtype"], "f32");
  }
  // The records differ only in what the GEMMs of more than a few rows may round.
  EXPECT_NE(readFile(folder / "fp32.cgplan"), readFile(folder / "tf32.cgplan"));
  const Outcome diff = cgc({"diff", "fp32.cgplan", "tf32.cgplan"});
  EXPECT_NE(diff.out.find("cublaslt.matmul"), std::string::npos) << diff.out << diff.err;
}

TEST_F(Compile, ArchIsForCudaOnly) {
  for (const std::string arch : {"sm_80", "sm_90a"})
    refuses(tiny(), {"--input", "text=i64[1,16]", "--arch", arch}, 2,
            {"--arch " + arch + " is for --target cuda", "leave --arch out"});
}

TEST_F(Compile, DumpsTheIrAfterEachPass) {
  const Outcome outcome = cgc(compileTiny(
      tiny(), "out.cgplan",
      {"--entry", "encode_text", "--dump-dir", "dump", "--time-passes", "--print-after", "dce"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("aten.embedding"), std::string::npos);
  size_t texts = 0;
  for (const auto &entry : fs::directory_iterator(folder / "dump"))
    texts += entry.path().extension() == ".cgir";
  EXPECT_GE(texts, 6u);
}

TEST_F(Compile, RefusesInputsThatTheModelHasNot) {
  refuses(tiny(), {"--input", "picture=f32[1,3,32,32]"}, 2, {"'picture'", "encode_image(image)"});
  refuses(tiny(), {"--input", "image=f32[1,3,32,32]", "--entry", "encode_audio"}, 2,
          {"'encode_audio'", "encode_image(image)"});
  refuses(tiny(), {"--input", "image=f32[1,3,32,32]", "--entry", "forward"}, 2,
          {"forward(image, text)", "text"});
  refuses(tiny(), {"--input", "image=f32[1,3,32,32]", "--input", "image=f32[1,3,32,32]"}, 2,
          {"twice"});
}

TEST_F(Compile, RefusesMalformedInputs) {
  for (const char *text : {"image", "image=", "image=f32", "image=f33[1]", "image=f32[1,",
                           "=f32[1]", "image=f32[1][1]"})
    refuses(tiny(), {"--input", text}, 2, {"--input", "image=f32[1,3,224,224]"});
  for (const char *text : {"image=f32[4000000000,4000000000,4000000000]",
                           "image=f32[1,99999999999999999999]", "image=f64[1152921504606846976]"})
    refuses(tiny(), {"--input", text}, 2, {"--input", "too large"});
  refuses(tiny(), {"--input", "image=f32[0,3,32,32]"}, 2, {"at least 1"});
  refuses(tiny(), {"--input", "image=f32[N,3,32,32]"}, 2, {"sizes are concrete", "--batch"});
}

TEST_F(Compile, RefusesShapesAndTypesThatTheModelCannotTake) {
  // For rank, size and dtype, the message has the line of the model and the source of the shape.
  refuses(tiny(), {"--input", "image=f32[3,32]"}, 4,
          {"transformer.py:", "visual.conv1", "cannot compile encode_image for image=f32[3,32]:"});
  refuses(tiny(), {"--input", "text=i64[1,17]", "--batch", "2"}, 4,
          {".py", "for text=i64[2,17] (dimension 0 is the batch size)"});
  refuses(tiny(), {"--input", "image=f32[1,4,32,32]"}, 4, {".py"});
  refuses(tiny(), {"--input", "image=i64[1,3,32,32]"}, 4, {".py"});
  refuses(tiny(), {"--input", "text=i64[1,17]"}, 4, {".py"});
  refuses(tiny(), {"--input", "text=f32[1,16]"}, 4, {".py"});
}

TEST_F(Compile, NamesEveryOpWithoutARule) {
  refuses(models() / "no_rule.pt", {"--input", "x=f32[4,3]"}, 4,
          {"svd", "bessel_j0", "make_models.py"});
}

TEST_F(Compile, NamesEveryOffenderOfEveryEntry) {
  const fs::path model = models() / "offenders.pt";
  refuses(model, {"--input", "x=f32[4]", "--entry", "first,second"}, 4,
          {"cannot compile first", "control flow", "aten::i0", "cannot compile second",
           "aten::special_bessel_j0"});
  // Only compiled entries are checked.
  const Outcome second = cgc({"compile", model, "-o", "out.cgplan", "--target", "cpu", "--input",
                              "x=f32[4]", "--entry", "second"});
  expectError(second, 4, {"aten::special_bessel_j0"});
  EXPECT_EQ(second.err.find("first"), std::string::npos);
}

TEST_F(Compile, RefusesMethodsWithoutTensors) {
  const fs::path model = models() / "offenders.pt";
  refuses(model, {"--input", "x=f32[4]", "--entry", "nothing"}, 4, {"nothing", "no tensor"});
  refuses(model, {"--input", "x=f32[4]", "--input", "factor=i64[1]", "--entry", "scaled"}, 4,
          {"'factor' of scaled", "of type int"});
}

TEST_F(Compile, RefusesDataDependentControlFlow) {
  refuses(models() / "data_dependent.pt", {"--input", "x=f32[4]"}, 4,
          {"make_models.py", "control flow"});
}

TEST_F(Compile, RefusesAnOutputThatItCannotWrite) {
  const std::vector<std::string> inputs = {"--input", "text=i64[1,16]", "--target", "cpu"};
  const auto compile = [&](const std::string &output, const How &how = {}) {
    std::vector<std::string> all = {"compile", tiny(), "-o", output};
    all.insert(all.end(), inputs.begin(), inputs.end());
    return cgc(all, how);
  };
  expectError(compile("no/such/folder/out.cgplan"), 1, {"no/such/folder", "create"});
  expectError(compile("/proc/out.cgplan"), 1, {"/proc/out.cgplan"});
  expectError(compile("."), 1, {"directory"});
  expectError(compile("/dev/full"), 1, {"/dev/full"});
  // Simulates a full disk: no file may grow past 100 kB.
  expectError(compile("out.cgplan", {.fileSizeLimit = 100'000}), 1,
              {"out.cgplan", "File too large"});
  EXPECT_TRUE(files().empty());
}

TEST_F(Compile, RefusesToOverwriteItsInput) {
  fs::copy(tiny(), folder / "model.pt");
  const std::string before = readFile(folder / "model.pt");
  expectError(cgc(compileTiny("model.pt", "./model.pt")), 2, {"model.pt", "overwritten"});
  EXPECT_TRUE(readFile(folder / "model.pt") == before);
  writeFile(folder / "lib.so", "code");
  for (const char *library : {"--op-library", "--pass-plugin"}) {
    expectError(cgc(compileTiny(tiny(), "lib.so", {library, "lib.so"})), 2,
                {"lib.so", "overwritten"});
    expectError(
        cgc(compileTiny(tiny(), "o.cgplan", {library, "lib.so", "--crash-reproducer", "lib.so"})),
        2, {"lib.so", "overwritten", "--crash-reproducer"});
  }
  expectError(cgc(compileTiny(tiny(), "01-inline.cgir", {"--dump-dir", "."})), 2,
              {"01-inline.cgir", "overwritten", "--dump-dir"});
  EXPECT_EQ(readFile(folder / "lib.so"), "code");
  EXPECT_EQ(files(), (std::vector<std::string>{"lib.so", "model.pt"}));
}

TEST_F(Compile, AnEarlierReproducerStaysUntilAPassRuns) {
  const std::string earlier = "; cgc reproducer; run it: cgc opt --run-reproducer FILE\n";
  writeFile(folder / "crash.cgir", earlier);
  const std::vector<std::string> reproducer = {"--crash-reproducer", "crash.cgir"};
  auto unknownEntry = reproducer;
  unknownEntry.insert(unknownEntry.end(), {"--entry", "encode_sound"});
  const Outcome outcome = cgc(compileTiny(tiny(), "o.cgplan", unknownEntry));
  expectError(outcome, 2, {"encode_sound"});
  EXPECT_EQ(outcome.err.find("holds the IR"), std::string::npos) << outcome.err;
  EXPECT_EQ(readFile(folder / "crash.cgir"), earlier);
  EXPECT_EQ(cgc(compileTiny(tiny(), "o.cgplan", reproducer)).status, 0);
  EXPECT_EQ(files(), std::vector<std::string>{"o.cgplan"});
}

TEST_F(Compile, WritesNoPlanToStandardOutput) {
  expectError(cgc(compileTiny(tiny(), "-")), 2, {"-o", "a file"});
  EXPECT_FALSE(fs::exists(folder / "-"));
}

TEST_F(Compile, RefusesUnknownPasses) {
  refuses(tiny(), {"--input", "text=i64[1,16]", "--passes", "inline,specialise"}, 2,
          {"specialise", "specialize"});
}

TEST_F(Compile, PassesInAnOrderThatCannotWorkAreAUsageError) {
  const std::pair<const char *, const char *> wrong[] = {
      {"specialize,inline", "put it before 'specialize'"},
      {"specialize", "run the pass 'inline' first"},
      {"inline,canonicalize,specialize", "run the pass 'specialize' first"},
      {"inline", "run the pass 'specialize' first"},
  };
  for (const auto &[passes, text] : wrong)
    refuses(tiny(), {"--input", "text=i64[1,16]", "--passes", passes}, 2, {text});
}

TEST_F(Compile, AnEmptyPipelineHasNoPasses) {
  for (const char *passes : {"", " "})
    refuses(tiny(), {"--input", "text=i64[1,16]", "--passes", passes}, 2,
            {"run the pass 'inline' first"});
}

TEST_F(Compile, ReportsErrorsAsJsonToo) {
  const Outcome outcome =
      cgc({"compile", "missing.pt", "-o", "out.cgplan", "--input", "x=f32[1]", "--json"});
  EXPECT_EQ(outcome.status, 3);
  const auto json = parseJson(outcome, "error");
  EXPECT_EQ(json["code"], "invalid_file");
  EXPECT_NE(json["message"].get<std::string>().find("missing.pt"), std::string::npos);
}

TEST_F(Compile, AnyPassLimitGivesAPlanThatComputesTheSame) {
  const std::string passes =
      "inline,specialize,canonicalize,fold,cse,dce," + passes::toString(passes::selectionPasses());
  const auto runs = 1 + std::count(passes.begin(), passes.end(), ',');
  for (int limit = 0; limit < runs; limit += 3) {
    const Outcome compiled = cgc(compileTiny(
        tiny(), "plan.cgplan",
        {"--entry", "encode_image", "--passes", passes, "--pass-limit", std::to_string(limit)}));
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const std::string last =
        "pass run " + std::to_string(runs) + ": dce on @encode_image_0, left out\n";
    EXPECT_NE(compiled.err.find(last), std::string::npos) << compiled.err;
    const Outcome compared = cgc({"compare", "plan.cgplan", tiny()});
    EXPECT_EQ(compared.status, 0) << limit << "\n" << compared.out << compared.err;
  }
}

TEST_F(Compile, CanonicalizeMayBeLeftOut) {
  // The image tower keeps LibTorch's fused attention, which has no tensor for its second result.
  ASSERT_EQ(cgc(compileTiny(tiny(), "plan.cgplan",
                            {"--entry", "encode_image", "--passes", "inline,specialize"}))
                .status,
            0);
  const Outcome compared = cgc({"compare", "plan.cgplan", tiny()});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
}

TEST_F(Compile, AFailingPassLeavesAReproducer) {
  const Outcome outcome =
      cgc(compileTiny(tiny(), "plan.cgplan",
                      {"--entry", "encode_text", "--passes", "inline,canonicalize,dce",
                       "--crash-reproducer", "crash.cgir"}));
  expectError(outcome, 2, {"pass 'canonicalize'", "cgc opt --run-reproducer crash.cgir"});
  EXPECT_EQ(files(), std::vector<std::string>{"crash.cgir"});
  expectError(cgc({"opt", "--run-reproducer", "crash.cgir"}), 2, {"pass 'canonicalize'"});
}

} // namespace
} // namespace cgc::e2e

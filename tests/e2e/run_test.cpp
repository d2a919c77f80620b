// Tests of cgc run: inputs from files and random inputs, outputs, buckets, and errors.
#include "tests/paths.h"
#include "tool.h"

#include <cmath>

namespace cgc::e2e {
namespace {

class Run : public ToolTest {
protected:
  void refuses(std::vector<std::string> arguments, int status,
               const std::vector<std::string> &texts) {
    arguments.insert(arguments.begin(), {"run", "plan.cgplan", "--output", "y.npy"});
    expectError(cgc(arguments), status, texts);
    EXPECT_FALSE(fs::exists(folder / "y.npy"));
  }
};

TEST_F(Run, WritesOneOutputAsNamed) {
  makePlan();
  const Outcome outcome = cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input",
                               "image=random:7", "--output", "y.npy"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(npyHeader(folder / "y.npy").find("(1, 32)"), std::string::npos)
      << npyHeader(folder / "y.npy");
  const auto values = npyFloats(folder / "y.npy");
  ASSERT_EQ(values.size(), 32u);
  for (float value : values)
    EXPECT_TRUE(std::isfinite(value));
}

TEST_F(Run, WritesSeveralOutputsWithNumbers) {
  makePlan();
  const Outcome outcome =
      cgc({"run", "plan.cgplan", "--entry", "forward", "--input", "image=random:0", "--input",
           "text=random:1", "--output", "y.npy", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(files(), (std::vector<std::string>{"plan.cgplan", "y.0.npy", "y.1.npy", "y.2.npy"}));
  const auto json = parseJson(outcome, "run");
  ASSERT_EQ(json["outputs"].size(), 3u);
  EXPECT_EQ(json["outputs"][1]["path"], "y.1.npy");
  EXPECT_EQ(json["outputs"][2]["shape"], nlohmann::json::array());
}

TEST_F(Run, NumPyReadsWhatItWrites) {
  makePlan();
  ASSERT_EQ(cgc({"run", "plan.cgplan", "--entry", "encode_text", "--input", "text=random:3",
                 "--output", "y.npy"})
                .status,
            0);
  const Outcome numpy =
      runProgram({test::sourceDir() / ".venv/bin/python", "-c",
                  "import numpy; a = numpy.load('y.npy'); print(a.dtype, a.shape)"},
                 folder);
  EXPECT_EQ(numpy.out, "float32 (1, 32)\n") << numpy.err;
}

TEST_F(Run, SameSeedSameOutputOtherSeedAnother) {
  makePlan();
  const auto run = [&](const std::string &input) {
    EXPECT_EQ(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input", input, "--output",
                   "y.npy"})
                  .status,
              0);
    return readFile(folder / "y.npy");
  };
  const std::string first = run("image=random:1");
  EXPECT_TRUE(run("image=random:1") == first);
  EXPECT_FALSE(run("image=random:2") == first);
}

TEST_F(Run, ReadsFilesOfAnyOrder) {
  makePlan();
  const Outcome numpy = runProgram(
      {test::sourceDir() / ".venv/bin/python", "-c",
       "import numpy as n; a = n.random.RandomState(0).randn(1, 3, 32, 32).astype('f4')\n"
       "n.save('c.npy', a); n.save('f.npy', n.asfortranarray(a))"},
      folder);
  ASSERT_EQ(numpy.status, 0) << numpy.err;
  for (const char *file : {"c", "f"})
    ASSERT_EQ(
        cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input",
             std::string("image=@") + file + ".npy", "--output", std::string(file) + ".out.npy"})
            .status,
        0);
  EXPECT_TRUE(readFile(folder / "c.out.npy") == readFile(folder / "f.out.npy"));
}

TEST_F(Run, TakesTheBucketThatFits) {
  makePlan({"--batch", "1,4"});
  writeNpy(folder / "image.npy", "<f4", {4, 3, 32, 32}, std::vector<float>(4 * 3 * 32 * 32, 0.25f));
  ASSERT_EQ(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input", "image=@image.npy",
                 "--output", "y.npy"})
                .status,
            0);
  EXPECT_EQ(npyFloats(folder / "y.npy").size(), 4u * 32);
  const Outcome outcome = cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input",
                               "image=random:0", "--batch", "4", "--json"});
  EXPECT_EQ(parseJson(outcome, "run")["outputs"][0]["shape"][0], 4);
  fs::remove(folder / "y.npy");
  refuses({"--entry", "encode_image", "--input", "image=random:0", "--batch", "3"}, 2,
          {"batch 3", "[1,3,32,32]", "[4,3,32,32]"});
}

TEST_F(Run, EntryMayBeLeftOutWhereThereIsOne) {
  makePlan({"--entry", "encode_text"});
  EXPECT_EQ(cgc({"run", "plan.cgplan", "--input", "text=random:0"}).status, 0);
}

/// A cpu plan has only the stream executor; with a GPU, the test compares two executors.
TEST_F(Run, BothExecutorsGiveTheSame) {
  ASSERT_EQ(cgc({"compile", models() / "tiny_fp32.pt", "-o", "plan.cgplan", "--input",
                 "text=i64[1,16]", "--target", hasGpu() ? "cuda" : "cpu"})
                .status,
            0);
  for (const std::string executor : {"graph", "stream"}) {
    const Outcome outcome = cgc({"run", "plan.cgplan", "--input", "text=random:0", "--executor",
                                 executor, "--output", executor + ".npy", "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(parseJson(outcome, "run")["executor"], hasGpu() ? executor : "stream");
  }
  EXPECT_TRUE(readFile(folder / "graph.npy") == readFile(folder / "stream.npy"));
  refuses({"--input", "text=random:0", "--executor", "eager"}, 2,
          {"--executor", "eager", "graph", "stream"});
}

TEST_F(Run, SeparateBuffersWithoutReuseGiveTheSame) {
  makePlan({"--entry", "encode_text"});
  const std::vector<std::string> run = {"run", "plan.cgplan", "--input", "text=random:3",
                                        "--output"};
  const auto with = [](std::vector<std::string> arguments, std::vector<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  ASSERT_EQ(cgc(with(run, {"shared.npy"})).status, 0);
  makePlan({"--entry", "encode_text", "--no-reuse"});
  const Outcome apart = cgc(with(run, {"apart.npy", "--separate-buffers"}));
  ASSERT_EQ(apart.status, 0) << apart.err;
  EXPECT_EQ(readFile(folder / "shared.npy"), readFile(folder / "apart.npy"));
}

TEST_F(Run, WritesBf16AsFloat32) {
  ASSERT_EQ(cgc({"compile", models() / "tiny_bf16.pt", "-o", "plan.cgplan", "--input",
                 "image=bf16[1,3,32,32]", "--target", "cpu"})
                .status,
            0);
  writeNpy(folder / "image.npy", "<f4", {1, 3, 32, 32}, std::vector<float>(3 * 32 * 32, 0.5f));
  const Outcome outcome =
      cgc({"run", "plan.cgplan", "--input", "image=@image.npy", "--output", "y.npy"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(npyFloats(folder / "y.npy").size(), 32u);
}

TEST_F(Run, RoundsFloat32ToFp16) {
  makePlan({"--precision", "fp16", "--entry", "encode_image"});
  // The first value lies between two fp16 numbers; the second is an fp16 number.
  std::vector<float> values(3 * 32 * 32, 0.1f);
  const auto run = [&] {
    writeNpy(folder / "image.npy", "<f4", {1, 3, 32, 32}, values);
    return cgc({"run", "plan.cgplan", "--input", "image=@image.npy", "--output", "y.npy"});
  };
  const Outcome between = run();
  ASSERT_EQ(between.status, 0) << between.err;
  const std::string output = readFile(folder / "y.npy");
  values.assign(values.size(), 0.0999755859375f);
  ASSERT_EQ(run().status, 0);
  EXPECT_EQ(readFile(folder / "y.npy"), output);
  fs::remove(folder / "y.npy");
  values[7] = 70000;
  expectError(run(), 2, {"'image'", "element 7 is 70000", "range of f16"});
  EXPECT_FALSE(fs::exists(folder / "y.npy"));
}

TEST_F(Run, NamesOpLibrariesThatThePlanDoesNotUse) {
  makePlan();
  const std::vector<std::string> run = {"run",         "plan.cgplan", "--entry",
                                        "encode_text", "--input",     "text=random:0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    return cgc(more);
  };
  EXPECT_EQ(with({}).err, "");
  const Outcome outcome = with({"--op-library", "libacme.so"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err,
            "cgc: info: --op-library libacme.so is not used: the plan calls no op of it\n");
  EXPECT_EQ(with({"--op-library", "libacme.so", "--quiet"}).err, "");
}

TEST_F(Run, NamesDictOutputs) {
  ASSERT_EQ(
      cgc({"compile", models() / "two_outputs.pt", "-o", "plan.cgplan", "--input", "ids=i64[2,3]",
           "--input", "mask=bool[2,3]", "--input", "scale=f32[1]", "--target", "cpu"})
          .status,
      0);
  const Outcome outcome = cgc({"run", "plan.cgplan", "--input", "ids=random:0", "--input",
                               "mask=random:1", "--input", "scale=random:2", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "run");
  EXPECT_EQ(json["outputs"][0]["name"], "rows");
  EXPECT_EQ(json["outputs"][1]["name"], "total");
}

TEST_F(Run, DrawsRandomNumbersByTheSeed) {
  const Outcome compiled = cgc({"compile", models() / "random.pt", "-o", "plan.cgplan", "--input",
                                "x=f32[3,5]", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  writeNpy(folder / "x.npy", "<f4", {3, 5}, std::vector<float>(15, 0.5F));
  const auto draw = [&](const std::string &name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run",      "plan.cgplan", "--input",
                                          "x=@x.npy", "--output",    name + ".npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::string all;
    for (const char *output : {".1.npy", ".2.npy", ".3.npy"})
      all += readFile(folder / (name + output));
    return all;
  };
  const std::string plain = draw("plain", {}), zero = draw("zero", {"--seed", "0"}),
                    seven = draw("seven", {"--seed", "7"}), again = draw("again", {"--seed", "7"});
  EXPECT_TRUE(plain == zero);
  EXPECT_TRUE(seven == again);
  EXPECT_FALSE(zero == seven);
  // Each of the 17 tensors is in its range.
  EXPECT_EQ(npyFloats(folder / "plain.0.npy"), std::vector<float>{17});
  makePlan({"--entry", "encode_text"});
  refuses({"--input", "text=random:0", "--seed", "7"}, 2, {"--seed", "draws none"});
}

TEST_F(Run, RefusesWrongNames) {
  makePlan();
  refuses({"--input", "text=random:0"}, 2, {"--entry", "encode_text"});
  refuses({"--entry", "encode_audio", "--input", "text=random:0"}, 2,
          {"'encode_audio'", "encode_text"});
  refuses({"--entry", "encode_text", "--input", "image=random:0"}, 2,
          {"'image'", "text=i64[1,16]"});
  refuses({"--entry", "forward", "--input", "image=random:0"}, 2, {"'text'", "--input text="});
  refuses({"--entry", "encode_text", "--input", "text=random:0", "--input", "text=random:0"}, 2,
          {"twice"});
  refuses({"--entry", "encode_text", "--input", "text=random"}, 2, {"random:SEED"});
  refuses({"--entry", "encode_text", "--input", "text=x.npy"}, 2, {"@FILE.npy"});
}

TEST_F(Run, RefusesWrongArrays) {
  makePlan();
  const std::vector<float> floats(3 * 32 * 32, 0.0f);
  const auto refusesFile = [&](const char *file, int status,
                               const std::vector<std::string> &texts) {
    refuses({"--entry", "encode_image", "--input", std::string("image=@") + file}, status, texts);
  };
  writeNpy(folder / "rank.npy", "<f4", {3, 32, 32}, floats);
  refusesFile("rank.npy", 2, {"f32[3,32,32]", "f32[1,3,32,32]"});
  writeNpy(folder / "size.npy", "<f4", {1, 3, 16, 64}, floats);
  refusesFile("size.npy", 2, {"f32[1,3,16,64]", "f32[1,3,32,32]"});
  writeNpy(folder / "dtype.npy", "<f8", {1, 3, 16, 32}, floats);
  refusesFile("dtype.npy", 2, {"dtype.npy", "f64", "f32"});
  writeNpy(folder / "endian.npy", ">f4", {1, 3, 32, 32}, floats);
  refusesFile("endian.npy", 3, {"endian.npy", ">f4"});
  writeNpy(folder / "short.npy", "<f4", {2, 3, 32, 32}, floats);
  refusesFile("short.npy", 3, {"short.npy", "truncated"});
  writeFile(folder / "other.npy", "not an array");
  refusesFile("other.npy", 3, {"other.npy", "numpy.save"});
  writeFile(folder / "empty.npy", "");
  refusesFile("empty.npy", 3, {"empty.npy", "empty"});
  refusesFile("missing.npy", 3, {"missing.npy", "does not exist"});
}

TEST_F(Run, RefusesTokensThatTheEmbeddingHasNot) {
  makePlan();
  std::vector<int64_t> tokens(16, 0);
  tokens[5] = 512;
  writeNpy(folder / "text.npy", "<i8", {1, 16}, tokens);
  refuses({"--entry", "encode_text", "--input", "text=@text.npy"}, 2,
          {"'text'", "element [0,5]", "512", "0 to 511"});
  tokens[5] = -1;
  writeNpy(folder / "text.npy", "<i8", {1, 16}, tokens);
  refuses({"--entry", "encode_text", "--input", "text=@text.npy"}, 2, {"element [0,5]", "-1"});
}

TEST_F(Run, WritesToStreams) {
  makePlan();
  const auto to = [&](const std::string &output, const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments = {
        "run",     "plan.cgplan",   "--entry",  "forward", "--input", "image=random:0",
        "--input", "text=random:1", "--output", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  };
  const Outcome null = to("/dev/null");
  EXPECT_EQ(null.status, 0) << null.err;
  expectError(to("/dev/full"), 1, {"'/dev/full'"});
  ASSERT_EQ(to("y.npy").status, 0);
  // All outputs in order, then the table.
  const Outcome standardOutput = to("/dev/stdout");
  EXPECT_EQ(standardOutput.status, 0) << standardOutput.err;
  const std::string arrays =
      readFile(folder / "y.0.npy") + readFile(folder / "y.1.npy") + readFile(folder / "y.2.npy");
  EXPECT_EQ(standardOutput.out.substr(0, arrays.size()), arrays);
  EXPECT_EQ(standardOutput.out.find("output"), arrays.size());
  EXPECT_EQ(files(), (std::vector<std::string>{"plan.cgplan", "y.0.npy", "y.1.npy", "y.2.npy"}));
}

/// As in a session: 3 rows run in the bucket of 4, and 6 rows in several.
TEST_F(Run, PadsABatchThatNoBucketHas) {
  makePlan({"--batch", "1,4"});
  const auto run = [&](const std::string &image, const std::string &output,
                       const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments = {"run",     "plan.cgplan",     "--entry",  "encode_image",
                                          "--input", "image=@" + image, "--output", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  };
  constexpr size_t kRow = 3 * 32 * 32;
  std::vector<float> pixels(6 * kRow);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<float>((i * 7919) % 255) / 255;
  std::vector<float> alone; // The outputs of each row by itself.
  for (int64_t i = 0; i < 6; ++i) {
    const auto first = pixels.begin() + i * static_cast<int64_t>(kRow);
    writeNpy(folder / "one.npy", "<f4", {1, 3, 32, 32}, std::vector<float>(first, first + kRow));
    ASSERT_EQ(run("one.npy", "row.npy").status, 0);
    const auto row = npyFloats(folder / "row.npy");
    alone.insert(alone.end(), row.begin(), row.end());
  }
  for (const int64_t batch : {3, 6}) {
    writeNpy(
        folder / "batch.npy", "<f4", {batch, 3, 32, 32},
        std::vector<float>(pixels.begin(), pixels.begin() + batch * static_cast<int64_t>(kRow)));
    const Outcome outcome = run("batch.npy", "features.npy", {"--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto json = parseJson(outcome, "run");
    EXPECT_EQ(json["bucket"], 1);
    EXPECT_EQ(json["outputs"][0]["shape"][0], batch);
    const auto values = npyFloats(folder / "features.npy");
    ASSERT_EQ(values.size(), alone.size() / 6 * static_cast<size_t>(batch));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], alone[i], 1e-4) << i;
    expectError(run("batch.npy", "features.npy", {"--batch", "4"}), 2, {"no bucket for batch 4"});
  }
}

TEST_F(Run, TakesTheLongestOutputName) {
  makePlan();
  const std::string name = std::string(250, 'y') + ".npy";
  const Outcome outcome = cgc({"run", "plan.cgplan", "--entry", "encode_text", "--input",
                               "text=random:0", "--output", name});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(files(), (std::vector<std::string>{"plan.cgplan", name}));
}

/// Runs `cgc run` on files in/NAME.npy, each with its own value and batch size.
class RunPattern : public Run {
protected:
  void SetUp() override {
    Run::SetUp();
    makePlan({"--batch", "1,2"});
    fs::create_directory(folder / "in");
    fs::create_directory(folder / "out");
    writeImage("in/b.npy", 1, 0.25f);
    writeImage("in/a.npy", 2, 0.5f);
    writeFile(folder / "in/.hidden.npy", "");
    writeFile(folder / "in/notes.txt", "");
  }
  void writeImage(const std::string &name, int64_t batch, float value) {
    writeNpy(folder / name, "<f4", {batch, 3, 32, 32},
             std::vector<float>(static_cast<size_t>(batch) * 3 * 32 * 32, value));
  }
  Outcome run(const std::string &output, const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments = {"run",     "plan.cgplan",     "--entry",  "encode_image",
                                          "--input", "image=@in/*.npy", "--output", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  }
};

TEST_F(RunPattern, RunsOncePerFile) {
  const Outcome outcome = run("out/*.features.npy", {"--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto runs = parseJson(outcome, "run")["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["stem"], "a");
  EXPECT_EQ(runs[0]["bucket"], 1);
  EXPECT_EQ(runs[0]["outputs"][0]["path"], "out/a.features.npy");
  EXPECT_EQ(runs[1]["stem"], "b");
  EXPECT_EQ(runs[1]["bucket"], 0);
  for (const char *name : {"a", "b"}) {
    ASSERT_EQ(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input",
                   std::string("image=@in/") + name + ".npy", "--output", "alone.npy"})
                  .status,
              0);
    EXPECT_EQ(readFile(folder / "alone.npy"),
              readFile(folder / "out" / (std::string(name) + ".features.npy")));
  }
}

TEST_F(RunPattern, PairsInputsAndKeepsTheOthers) {
  fs::create_directory(folder / "text");
  for (const auto &[name, batch] : {std::pair("a", 2), {"b", 1}})
    writeNpy(folder / "text" / (std::string(name) + ".npy"), "<i8", {batch, 16},
             std::vector<int64_t>(static_cast<size_t>(batch) * 16, 7));
  const auto forward = [&](const std::string &text) {
    return cgc({"run", "plan.cgplan", "--entry", "forward", "--input", "image=@in/*.npy", "--input",
                text, "--output", "out/*.npy"});
  };
  const Outcome paired = forward("text=@text/*.npy");
  EXPECT_EQ(paired.status, 0) << paired.err;
  EXPECT_TRUE(fs::exists(folder / "out/a.0.npy") && fs::exists(folder / "out/b.2.npy"));
  fs::remove(folder / "in/a.npy");
  expectError(forward("text=@text/*.npy"), 2, {"no file for 'a'", "in/*.npy", "text/*.npy"});
  const Outcome random = forward("text=random:0");
  EXPECT_EQ(random.status, 0) << random.err;
}

TEST_F(RunPattern, IsRefusedBeforeAnythingRuns) {
  const auto refuses = [&](const Outcome &outcome, int status, std::vector<std::string> texts) {
    expectError(outcome, status, texts);
    EXPECT_TRUE(fs::is_empty(folder / "out"));
  };
  refuses(run("out/y.npy"), 2, {"each file of 'in/*.npy'", "'out/*.npy'"});
  refuses(run("out*/y.npy"), 2, {"'out*/y.npy'", "one *"});
  refuses(run("in/*.npy"), 2, {"'in/a.npy' would be overwritten"});
  refuses(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input", "image=random:0",
               "--output", "out/*.npy"}),
          2, {"no input has one"});
  refuses(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input", "image=@none/*.npy",
               "--output", "out/*.npy"}),
          3, {"'none'"});
  refuses(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input", "image=@in/*.npz",
               "--output", "out/*.npy"}),
          3, {"no file is called 'in/*.npz'"});
  refuses(cgc({"run", "plan.cgplan", "--entry", "encode_image", "--input", "image=@in/*/*.npy"}), 2,
          {"one *"});
  // The last file of the pattern.
  writeNpy(folder / "in/c.npy", "<f4", {3, 3, 32, 31}, std::vector<float>(size_t{3} * 3 * 32 * 31));
  refuses(run("out/*.npy"), 2, {"f32[3,3,32,31]"});
}

/// All rows of a file are checked before the first file runs.
TEST_F(RunPattern, ChecksIndicesOfAPaddedBatchBeforeAnythingRuns) {
  fs::create_directory(folder / "text");
  std::vector<int64_t> tokens(size_t{5} * 16);
  writeNpy(folder / "text/a.npy", "<i8", {5, 16}, tokens);
  const auto encode = [&] {
    return cgc({"run", "plan.cgplan", "--entry", "encode_text", "--input", "text=@text/*.npy",
                "--output", "out/*.npy"});
  };
  EXPECT_EQ(encode().status, 0);
  fs::remove(folder / "out/a.npy");
  tokens[4 * 16 + 3] = 1000000;
  writeNpy(folder / "text/b.npy", "<i8", {5, 16}, tokens);
  expectError(encode(), 2, {"input 'text': element [4,3] is 1000000"});
  EXPECT_TRUE(fs::is_empty(folder / "out"));
}

TEST_F(Run, RefusesOutputsThatItCannotWrite) {
  makePlan({"--batch", "64"});
  const std::vector<std::string> run = {"run",     "plan.cgplan",   "--entry", "encode_text",
                                        "--input", "text=random:0", "--output"};
  const auto to = [&](const std::string &output, const How &how = {}) {
    auto all = run;
    all.push_back(output);
    return cgc(all, how);
  };
  expectError(to("no/y.npy"), 1, {"no/y.npy"});
  expectError(to("plan.cgplan"), 2, {"plan.cgplan", "overwritten"});
  expectError(cgc({"run", "plan.cgplan", "--entry", "encode_text", "--input", "text=random:0",
                   "--op-library", "ops.so", "--output", "./ops.so"}),
              2, {"./ops.so", "overwritten"});
  expectError(to("y.npy", {.fileSizeLimit = 4000}), 1, {"y.npy"});
  EXPECT_EQ(files(), std::vector<std::string>{"plan.cgplan"});
}

} // namespace
} // namespace cgc::e2e

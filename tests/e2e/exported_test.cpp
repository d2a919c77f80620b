// Tests of exported programs: plans for cpu and cuda equal torch at every size of their dynamic
// dimensions, and what a program was not exported for is refused by name.
#include "tool.h"

#include <cmath>

namespace cgc::e2e {
namespace {

struct Program {
  const char *name;
  std::vector<std::string> inputs;
  std::vector<std::string> cases;
  size_t outputs;
};

std::ostream &operator<<(std::ostream &out, const Program &program) {
  return out << program.name;
}

const Program kPrograms[] = {
    {"clip", {"image", "text"}, {"1", "2", "3"}, 2},
    {"embedder", {"input_ids", "attention_mask"}, {"1", "2", "5"}, 1},
    {"branches", {"x"}, {"1", "2", "3"}, 6},
    {"forms", {"x"}, {"1", "2", "3"}, 3},
};

/// The sizes in the header of an .npy file: "(2, 12)" as "2,12".
std::string sizesOf(const fs::path &npy) {
  const std::string header = npyHeader(npy);
  const size_t begin = header.find('(') + 1;
  std::string sizes;
  for (char c : header.substr(begin, header.find(')') - begin))
    if (c != ' ')
      sizes += c;
  return sizes.ends_with(",") ? sizes.substr(0, sizes.size() - 1) : sizes;
}

class ExportedProgram : public ToolTest, public testing::WithParamInterface<Program> {
protected:
  static fs::path model() { return exportedModels() / (std::string(GetParam().name) + ".pt2"); }
  static fs::path file(const std::string &name) {
    return exportedModels() / (std::string(GetParam().name) + "." + name + ".npy");
  }

  /// Compiles the program for `target` at the sizes of a case, runs it, and compares the outputs
  /// with those of torch, to `tolerance` times the larger of 1 and their magnitude.
  void expectEqual(const std::string &target, const std::string &testCase,
                   const std::string &precision = "fp32", float tolerance = 2e-5) {
    SCOPED_TRACE(target + ", case " + testCase);
    std::vector<std::string> compile = {"compile",  model(), "-o",          "p.cgplan",
                                        "--target", target,  "--precision", precision};
    std::vector<std::string> run = {"run", "p.cgplan", "--output", "y.npy"};
    for (const std::string &input : GetParam().inputs) {
      const fs::path npy = file(testCase + "." + input);
      const bool isInt = npyHeader(npy).find("<i8") != std::string::npos;
      compile.insert(compile.end(),
                     {"--input", input + (isInt ? "=i64[" : "=f32[") + sizesOf(npy) + "]"});
      run.insert(run.end(), {"--input", input + "=@" + npy.string()});
    }
    if (target == "cuda")
      run.insert(run.end(), {"--executor", "reference"});
    Outcome outcome = cgc(compile);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    outcome = cgc(run);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    for (size_t i = 0; i < GetParam().outputs; ++i) {
      const std::string output =
          GetParam().outputs == 1 ? "y.npy" : "y." + std::to_string(i) + ".npy";
      const fs::path expected = file(testCase + ".out." + std::to_string(i));
      EXPECT_EQ(sizesOf(folder / output), sizesOf(expected));
      const std::vector<float> got = npyFloats(folder / output), want = npyFloats(expected);
      ASSERT_EQ(got.size(), want.size());
      for (size_t k = 0; k < got.size(); ++k)
        ASSERT_NEAR(got[k], want[k], tolerance * std::max(1.0f, std::abs(want[k])))
            << i << ": " << k;
    }
  }
};

TEST_P(ExportedProgram, EqualsTorchOnTheCpu) {
  for (const std::string &testCase : GetParam().cases)
    expectEqual("cpu", testCase);
}

TEST_P(ExportedProgram, EqualsTorchForCuda) {
  for (const std::string &testCase : GetParam().cases)
    expectEqual("cuda", testCase);
}

TEST_P(ExportedProgram, IsNearTorchInHalfPrecision) {
  expectEqual("cuda", GetParam().cases[1], "fp16", 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Models, ExportedProgram, testing::ValuesIn(kPrograms),
                         [](const auto &info) { return std::string(info.param.name); });

class ExportedFile : public ToolTest {};

/// LibTorch cannot be found at the path in CGC_LIBTORCH.
TEST_F(ExportedFile, IsReadWithoutLibTorch) {
  const Outcome outcome =
      runProgram({"env", "CGC_LIBTORCH=/nonexistent", test::buildDir() / "bin" / "cgc", "inspect",
                  exportedModels() / "clip.pt2"},
                 folder);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

/// The program finds neither LibTorch nor libcgc_aten.so, through which it would run.
TEST_F(ExportedFile, CompilesForCudaWithoutLibTorch) {
  fs::create_directory(folder / "alone");
  for (const char *file : {"bin/cgc", "lib/libcgc_reference.so"})
    fs::copy(test::buildDir() / file, folder / "alone");
  for (const char *model : {"clip.pt2", "embedder.pt2", "branches.pt2", "forms.pt2"}) {
    const Outcome outcome = runProgram(
        {folder / "alone/cgc", "compile", exportedModels() / model, "-o", "p.cgplan"}, folder);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
}

TEST_F(ExportedFile, CompilesForAnEmptyBatch) {
  const Outcome outcome =
      cgc({"compile", exportedModels() / "empty.pt2", "-o", "p.cgplan", "--target", "cpu"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(cgc({"run", "p.cgplan", "--input", "input=random:0", "--output", "y.npy"}).status, 0);
  EXPECT_EQ(sizesOf(folder / "y.npy"), "0,2");
}

/// The method of a single file has the name that --entry gives.
TEST_F(ExportedFile, EntryNamesTheMethod) {
  const fs::path image = exportedModels() / "image.pt2";
  ASSERT_EQ(cgc({"compile", image, "-o", "p.cgplan", "--entry", "encode_image"}).status, 0);
  const auto plan = parseJson(cgc({"inspect", "p.cgplan", "--json"}), "plan");
  EXPECT_EQ(plan["entries"][0]["name"], "encode_image");
  expectError(cgc({"compile", image, "-o", "p.cgplan", "--entry", "encode-image"}), 2,
              {"'encode-image' is no name of a method"});
}

/// The types of the inputs are those of the export.
TEST_F(ExportedFile, CompilesForCudaWithoutInputs) {
  const Outcome outcome = cgc({"compile", exportedModels() / "clip.pt2", "-o", "clip.cgplan",
                               "--batch", "1,4", "--require-native"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto plan = parseJson(cgc({"inspect", "clip.cgplan", "--json"}), "plan");
  ASSERT_EQ(plan["entries"].size(), 1u);
  EXPECT_EQ(plan["entries"][0]["name"], "forward");
  EXPECT_EQ(plan["entries"][0]["buckets"].size(), 2u);
  EXPECT_EQ(plan["entries"][0]["rows"]["independent"], true) << plan["entries"][0]["rows"];
}

/// Each file is an entry; what the files share is in the plan once.
TEST_F(ExportedFile, SeveralFilesAreEntriesOfOnePlan) {
  const fs::path image = exportedModels() / "image.pt2", text = exportedModels() / "text.pt2";
  Outcome outcome = cgc({"compile", image, text, "-o", "both.cgplan", "--batch", "1,3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto plan = parseJson(cgc({"inspect", "both.cgplan", "--json"}), "plan");
  ASSERT_EQ(plan["entries"].size(), 2u);
  EXPECT_EQ(plan["entries"][0]["name"], "image");
  EXPECT_EQ(plan["entries"][1]["name"], "text");
  for (const std::string name : {"image", "text"}) {
    outcome = cgc({"run", "both.cgplan", "--entry", name, "--executor", "reference", "--input",
                   name + "=@" + (exportedModels() / ("clip.3." + name + ".npy")).string(),
                   "--output", "y.npy"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const int index = name == "text";
    const std::vector<float> got = npyFloats(folder / "y.npy"),
                             want = npyFloats(exportedModels() /
                                              ("clip.3.out." + std::to_string(index) + ".npy"));
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_NEAR(got[k], want[k], 2e-5) << name << ": " << k;
  }
  expectError(cgc({"compile", image, models() / "tiny_fp32.pt", "-o", "p.cgplan"}), 2,
              {"several models make one plan if all are .pt2 files"});
}

/// tests/data/exported/make.py wrote each program with another release of torch.
TEST_F(ExportedFile, OfEachReleaseEqualsItsTorch) {
  const fs::path programs = test::sourceDir() / "tests/data/exported";
  size_t releases = 0;
  for (const auto &entry : fs::directory_iterator(programs)) {
    if (entry.path().extension() != ".pt2")
      continue;
    SCOPED_TRACE(entry.path().filename());
    ++releases;
    const std::string name = entry.path().stem();
    Outcome outcome = cgc({"compile", entry.path(), "-o", "p.cgplan", "--target", "cpu"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    outcome = cgc({"run", "p.cgplan", "--input", "x=@" + (programs / (name + ".x.npy")).string(),
                   "--output", "y.npy"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<float> got = npyFloats(folder / "y.npy"),
                             want = npyFloats(programs / (name + ".y.npy"));
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_NEAR(got[k], want[k], 2e-5) << k;
  }
  EXPECT_GE(releases, 3u);
}

TEST_F(ExportedFile, RefusesSizesOutOfRange) {
  const fs::path clip = exportedModels() / "clip.pt2";
  expectError(cgc({"compile", clip, "-o", "p.cgplan", "--batch", "65"}), 2,
              {"dimension 0 of input 'image' is 65", "from 1 to 64"});
  expectError(cgc({"compile", clip, "-o", "p.cgplan", "--input", "image=f32[2,3,64,64]"}), 2,
              {"dimension 2 of input 'image' is 64, and the program was exported for 32"});
  expectError(cgc({"compile", clip, "-o", "p.cgplan", "--input", "image=f32[2,3,32,32]", "--input",
                   "text=i64[3,16]"}),
              2, {"dimension 0 of input 'text' is 3", "dimension 0 of input 'image'"});
  EXPECT_TRUE(files().empty());
}

TEST_F(ExportedFile, NamesOfADictNameOutputs) {
  ASSERT_EQ(cgc({"compile", exportedModels() / "forms.pt2", "-o", "p.cgplan"}).status, 0);
  const auto plan = parseJson(cgc({"inspect", "p.cgplan", "--json"}), "plan");
  std::vector<std::string> names;
  for (const auto &output : plan["entries"][0]["buckets"][0]["outputs"])
    names.push_back(output["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"turned", "rest.0", "rest.1"}));
}

TEST_F(ExportedFile, InspectShowsModulesAndOffenders) {
  const fs::path forms = exportedModels() / "forms.pt2";
  EXPECT_EQ(parseJson(cgc({"inspect", forms, "--json"}), "exported")["version"], 1);
  EXPECT_EQ(cgc({"inspect", forms, "--capturable"}).status, 0);
}

/// Every op that cgc lacks is listed with its line of the model.
TEST_F(ExportedFile, ListsOffendersByLine) {
  const Outcome outcome =
      cgc({"compile", exportedModels() / "offenders.pt2", "-o", "p.cgplan", "--target", "cpu"});
  EXPECT_NE(outcome.status, 0);
  for (const char *text :
       {"make_exported.py:", "aten::special_bessel_j0", "item(): it synchronizes"})
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\n" << outcome.err;
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace cgc::e2e

// Tests of wrong and damaged files: the message names the kind of file, the exit status is 3, and
// nothing is written.
#include "tool.h"

#include <cstring>
#include <unistd.h>

namespace cgc::e2e {
namespace {

struct WrongFile {
  const char *name; ///< Name of a file among the models, or of one that the test makes.
  const char *says; ///< The name of its kind in the message.
};
constexpr char kTooDeep[] = "more than 500 brackets, operators or blocks inside each other";
constexpr WrongFile kWrongModels[] = {
    {"missing", "does not exist"},
    {"empty", "empty"},
    {"directory", "directory"},
    {"pickle.pt", "torch.save"},
    {"old_pickle.pt", "torch.save"},
    {"model.onnx", "ONNX"},
    {"model.safetensors", "safetensors"},
    {"picture.png", "PNG"},
    {"truncated.pt", "truncated.pt"},
    {"bomb.pt", "unpacks to more than"},
    {"deep_brackets.pt", kTooDeep},
    {"deep_minus.pt", kTooDeep},
    {"deep_not.pt", kTooDeep},
    {"deep_invert.pt", kTooDeep},
    {"deep_members.pt", kTooDeep},
    {"deep_calls.pt", kTooDeep},
    {"deep_subscripts.pt", kTooDeep},
    {"deep_sums.pt", kTooDeep},
    {"deep_powers.pt", kTooDeep},
    {"deep_lines.pt", kTooDeep},
    {"deep_choices.pt", kTooDeep},
    {"deep_conditions.pt", kTooDeep},
    {"deep_branches.pt", kTooDeep},
    {"deep_blocks.pt", kTooDeep},
    {"deep_assignments.pt", kTooDeep},
    {"deep_types.pt", kTooDeep},
    {"many_methods.pt", "the source has 20001 methods, more than the 16384 that cgc reads"},
    {"text", "text"},
};

class WrongModel : public ToolTest, public testing::WithParamInterface<WrongFile> {
protected:
  /// The path of the wrong file, which files() does not list.
  fs::path path() {
    const std::string name = GetParam().name;
    if (fs::exists(models() / name))
      return models() / name;
    const fs::path place = folder / "in";
    fs::create_directories(place);
    if (name == "empty" || name == "text")
      writeFile(place / name, name == "text" ? "text is no model\n" : "");
    if (name == "directory")
      fs::create_directories(place / name);
    if (name == "truncated.pt") {
      const std::string whole = readFile(models() / "tiny_fp32.pt");
      writeFile(place / name, whole.substr(0, whole.size() / 2));
    }
    return place / name;
  }
};

class DeepModel : public ToolTest {};

/// LibTorch compiles a method while it compiles the one that calls it.
TEST_F(DeepModel, IsRefusedByCompile) {
  expectError(cgc({"compile", models() / "deep_methods.pt", "-o", "out.cgplan", "--input",
                   "input=f32[2,3]", "--target", "cpu"}),
              4, {"methods call one another more than 1000 deep"});
  EXPECT_TRUE(files().empty());
}

TEST_P(WrongModel, IsRefusedByCompile) {
  const fs::path file = path();
  fs::create_directories(folder / "in");
  expectError(
      cgc({"compile", file, "-o", "out.cgplan", "--input", "text=i64[1,16]", "--target", "cpu"}), 3,
      {file.filename(), GetParam().says});
  EXPECT_EQ(files(), std::vector<std::string>{"in"});
}

TEST_P(WrongModel, IsRefusedByInspect) {
  const fs::path file = path();
  fs::create_directories(folder / "in");
  expectError(cgc({"inspect", file, "--dot", "out.dot"}), 3, {file.filename()});
  EXPECT_EQ(files(), std::vector<std::string>{"in"});
}

TEST_P(WrongModel, IsRefusedByRunAsAPlan) {
  const fs::path file = path();
  fs::create_directories(folder / "in");
  expectError(cgc({"run", file, "--input", "text=random:0", "--output", "y.npy"}), 3,
              {file.filename()});
  EXPECT_EQ(files(), std::vector<std::string>{"in"});
}

INSTANTIATE_TEST_SUITE_P(Kinds, WrongModel, testing::ValuesIn(kWrongModels), [](const auto &info) {
  std::string name = info.param.name;
  for (char &c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

using DamagedModel = ToolTest;

TEST_F(DamagedModel, IsNamedWithTheCauseAndWhatToDo) {
  const std::string whole = readFile(models() / "tiny_fp32.pt");
  const size_t directory = whole.find("PK\1\2"), end = whole.rfind("PK\5\6");
  ASSERT_TRUE(directory != std::string::npos && end != std::string::npos);
  // The method, size and offset of the first entry; the number of disks.
  for (size_t at : {directory + 10, directory + 20, directory + 42, end - 56}) {
    std::string damaged = whole;
    damaged[at] ^= 0x40;
    writeFile(folder / "damaged.pt", damaged);
    const Outcome outcome = cgc({"inspect", "damaged.pt"});
    expectError(outcome, 3, {"damaged.pt: the ", " damaged", "export or copy the file again"});
    EXPECT_EQ(outcome.err.find("miniz"), std::string::npos) << outcome.err;
  }
}

class WrongPlan : public ToolTest {
protected:
  void refused(const std::string &bytes, const std::vector<std::string> &texts) {
    writeFile(folder / "bad.cgplan", bytes);
    const std::vector<std::string> before = files();
    expectError(cgc({"run", "bad.cgplan", "--entry", "encode_text", "--input", "text=random:0",
                     "--output", "y.npy"}),
                3, texts);
    EXPECT_EQ(files(), before);
  }
};

TEST_F(WrongPlan, TruncatedIsRefused) {
  makePlan();
  const std::string plan = readFile(folder / "plan.cgplan");
  for (size_t size :
       {size_t(1), size_t(40), size_t(80), size_t(1000), plan.size() / 2, plan.size() - 1})
    refused(plan.substr(0, size), {"bad.cgplan"});
  refused(plan + "x", {"bad.cgplan"});
}

TEST_F(WrongPlan, FlippedByteIsRefused) {
  makePlan();
  const std::string plan = readFile(folder / "plan.cgplan");
  // Header, metadata, and weights up to the last byte.
  for (size_t at : {size_t(3), size_t(17), size_t(79), size_t(200), size_t(5000), plan.size() / 2,
                    plan.size() - 1}) {
    std::string damaged = plan;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    refused(damaged, {"bad.cgplan"});
  }
}

TEST_F(WrongPlan, AnotherVersionIsNamed) {
  makePlan();
  std::string plan = readFile(folder / "plan.cgplan");
  uint32_t version;
  std::memcpy(&version, plan.data() + 8, sizeof version);
  ++version;
  std::memcpy(plan.data() + 8, &version, sizeof version);
  refused(plan, {"bad.cgplan", "version " + std::to_string(version), "compile"});
}

TEST_F(WrongPlan, IsRefusedByCompare) {
  writeFile(folder / "bad.cgplan", "CGCPLAN");
  expectError(cgc({"compare", "bad.cgplan", models() / "tiny_fp32.pt"}), 3, {"bad.cgplan"});
}

TEST_F(WrongPlan, UnreadableIsRefused) {
  if (geteuid() == 0)
    GTEST_SKIP() << "root may read every file";
  makePlan();
  fs::permissions(folder / "plan.cgplan", fs::perms::none);
  expectError(cgc({"inspect", "plan.cgplan"}), 3, {"plan.cgplan", "ermission"});
}

} // namespace
} // namespace cgc::e2e

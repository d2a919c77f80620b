// cgc compile --entry-group: entries that are made of several methods.
#include "tests/e2e/tool.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace cgc::e2e {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kGroup = "clip=encode_image+encode_text";

class EntryGroup : public ToolTest {
protected:
  fs::path tiny() const { return models() / "tiny_fp32.pt"; }

  /// Compiles the group and both towers to plan.cgplan.
  Outcome compileFor(const std::string &target) {
    return cgc({"compile", tiny(), "-o", "plan.cgplan", "--input", "image=f32[1,3,32,32]",
                "--input", "text=i64[1,16]", "--target", target, "--entry",
                "encode_image,encode_text", "--entry-group", kGroup, "--batch", "1,2"});
  }

  /// Checks that the group's outputs are those of the towers, byte for byte.
  void expectTowers(const std::vector<std::string> &more) {
    const auto run = [&](const std::string &entry, std::vector<std::string> arguments) {
      std::vector<std::string> all = {"run",     "plan.cgplan", "--entry",  entry,
                                      "--batch", "2",           "--output", entry + ".npy"};
      all.insert(all.end(), arguments.begin(), arguments.end());
      all.insert(all.end(), more.begin(), more.end());
      const Outcome outcome = cgc(all);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
    };
    run("encode_image", {"--input", "image=random:1"});
    run("encode_text", {"--input", "text=random:2"});
    run("clip", {"--input", "image=random:1", "--input", "text=random:2"});
    EXPECT_EQ(readFile(folder / "clip.0.npy"), readFile(folder / "encode_image.npy"));
    EXPECT_EQ(readFile(folder / "clip.1.npy"), readFile(folder / "encode_text.npy"));
  }
};

TEST_F(EntryGroup, OnTheCpuGivesTheOutputsOfTheTowers) {
  const Outcome compiled = compileFor("cpu");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  std::vector<std::string> entries;
  for (const auto &entry : json["entries"])
    entries.push_back(entry["name"]);
  EXPECT_THAT(entries, ElementsAre("encode_image", "encode_text", "clip"));
  EXPECT_TRUE(json["entries"][2]["rows"]["independent"]);
  for (const auto &bucket : json["entries"][2]["buckets"])
    EXPECT_TRUE(bucket["branches"].empty());
  expectTowers({});

  const Outcome compared =
      cgc({"compare", "plan.cgplan", tiny(), "--entry-group", kGroup, "--json"});
  EXPECT_EQ(compared.status, 0) << compared.err;
  const auto result = parseJson(compared, "compare");
  EXPECT_EQ(result["outputs"].size(), 8u) << result;
}

TEST_F(EntryGroup, OfACudaPlanHasABranchForEachTower) {
  const Outcome compiled = compileFor("cuda");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.err, HasSubstr("entry 'clip', bucket 1: 2 branches run at the same time"));
  const Outcome inspected = cgc({"inspect", "plan.cgplan"});
  EXPECT_THAT(inspected.out, HasSubstr("  runs at the same time:\n    clip, image=f32[1,3,32,32]"));
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  const auto records = [&](size_t entry) {
    return json["entries"][entry]["buckets"][0]["records"];
  };
  EXPECT_EQ(json["entries"][2]["buckets"][0]["branches"],
            nlohmann::json::array({records(0), records(1)}));
  expectTowers({"--executor", "reference"});
  expectTowers({"--executor", "reference", "--no-branches"});
}

TEST_F(EntryGroup, ThatDoNotFitAreErrors) {
  const auto refuses = [&](const std::string &group, const std::vector<std::string> &texts) {
    expectError(cgc(compileTiny(tiny(), "out.cgplan", {"--entry-group", group})), 2, texts);
    EXPECT_TRUE(files().empty());
  };
  for (const char *group : {"clip", "clip=", "=encode_image+encode_text", "clip=encode_image+"})
    refuses(group, {"--entry-group " + std::string(group), "expected NAME=ENTRY+ENTRY"});
  refuses("clip=encode_image", {"entry group 'clip'", "two entries or more"});
  refuses("clip=encode_image+encode_txt", {"no method 'encode_txt'", "encode_text(text)",
                                           "--input, --batch, --entry or --entry-group"});
  refuses("forward=encode_image+encode_text", {"the model has a method of this name"});
  expectError(
      cgc(compileTiny(tiny(), "out.cgplan", {"--entry-group", kGroup, "--entry-group", kGroup})), 2,
      {"names 'clip' twice"});
  ASSERT_EQ(compileFor("cpu").status, 0);
  expectError(cgc({"compare", "plan.cgplan", tiny(), "--entry", "clip"}), 2, {"clip"});
  expectError(
      cgc({"compare", "plan.cgplan", tiny(), "--entry-group", "towers=encode_image+encode_text"}),
      2, {"no entry 'towers'"});
}

} // namespace
} // namespace cgc::e2e

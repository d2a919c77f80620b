// cgc compile --add-to: buckets that are added to a plan.
#include "tests/e2e/tool.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace cgc::e2e {
namespace {

using ::testing::HasSubstr;

class AddTo : public ToolTest {
protected:
  fs::path tiny() const { return models() / "tiny_fp32.pt"; }
  /// Arguments that add buckets of the tiny model to plan.cgplan.
  std::vector<std::string> addTo(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"compile",  tiny(),
                                          "--add-to", "plan.cgplan",
                                          "--input",  "text=i64[1,16]",
                                          "--input",  "image=f32[1,3,32,32]",
                                          "--target", "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(AddTo, GivesThePlanOfOneCompilation) {
  makePlan({"--batch", "1"});
  const auto before = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  const Outcome added = cgc(addTo({"--batch", "2,3"}));
  EXPECT_EQ(added.status, 0) << added.err;
  ASSERT_EQ(cgc(compileTiny(tiny(), "whole.cgplan", {"--batch", "1,2,3"})).status, 0);
  const auto after = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  const auto whole = parseJson(cgc({"inspect", "whole.cgplan", "--json"}), "plan");
  EXPECT_EQ(after["entries"], whole["entries"]);
  EXPECT_EQ(after["entries"][0]["buckets"].size(), 3u);
  // The weights of both compilations are stored once. Only constants that depend on the batch, a
  // few numbers, are new.
  EXPECT_EQ(after["weight_bytes"], whole["weight_bytes"]);
  EXPECT_LT(after["weight_bytes"].get<int64_t>(), before["weight_bytes"].get<int64_t>() + 1000);
  const Outcome compared = cgc({"compare", "plan.cgplan", tiny()});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
}

TEST_F(AddTo, AddsEntriesAndWritesAnotherFile) {
  makePlan({"--entry", "encode_text"});
  const std::string plan = readFile(folder / "plan.cgplan");
  const Outcome added = cgc(addTo({"--entry", "encode_image", "-o", "both.cgplan"}));
  EXPECT_EQ(added.status, 0) << added.err;
  EXPECT_EQ(readFile(folder / "plan.cgplan"), plan);
  const Outcome compared = cgc({"compare", "both.cgplan", tiny()});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("encode_image"));
}

TEST_F(AddTo, RefusesTheSameModelWithOtherWeights) {
  const auto compile = [&](const char *model, const std::string &input,
                           const std::vector<std::string> &to) {
    std::vector<std::string> args = {"compile", models() / model, "--input",
                                     input,     "--target",       "cpu"};
    args.insert(args.end(), to.begin(), to.end());
    return cgc(args);
  };
  ASSERT_EQ(compile("scale_one.pt", "x=f32[4]", {"-o", "plan.cgplan"}).status, 0);
  const std::string plan = readFile(folder / "plan.cgplan");
  expectError(compile("scale_past.pt", "x=f32[8]", {"--add-to", "plan.cgplan"}), 2,
              {"weight 'factor' has other values than in the plan"});
  EXPECT_EQ(readFile(folder / "plan.cgplan"), plan);
  EXPECT_EQ(compile("scale_one.pt", "x=f32[8]", {"--add-to", "plan.cgplan"}).status, 0);
}

TEST_F(AddTo, RefusesBucketsThatRoundOtherwise) {
  const auto compile = [&](const char *input, const char *precision, const char *to) {
    return cgc({"compile", tiny(), to, "plan.cgplan", "--entry", "encode_text", "--input", input,
                "--precision", precision});
  };
  ASSERT_EQ(compile("text=i64[1,16]", "tf32", "-o").status, 0);
  expectError(compile("text=i64[2,16]", "fp32", "--add-to"), 2, {"another --precision, tf32;"});
  EXPECT_EQ(compile("text=i64[2,16]", "tf32", "--add-to").status, 0);
}

TEST_F(AddTo, RefusesWhatDoesNotFit) {
  makePlan({"--entry", "encode_text"});
  const std::string plan = readFile(folder / "plan.cgplan");
  expectError(cgc(addTo({"--entry", "encode_text"})), 2,
              {"cannot add to plan.cgplan", "entry 'encode_text'",
               "already has a bucket for text=i64[1,16]"});
  std::vector<std::string> cuda = addTo({"--batch", "2"});
  *std::ranges::find(cuda, "cpu") = "cuda";
  expectError(cgc(cuda), 2, {"another --target, cpu"});
  expectError(cgc(addTo({"--batch", "2", "--precision", "bf16"})), 2, {"another --precision"});
  EXPECT_EQ(readFile(folder / "plan.cgplan"), plan);
  expectError(cgc({"compile", tiny(), "--add-to", "none.cgplan", "--input", "text=i64[1,16]"}), 3,
              {"none.cgplan"});
  writeFile(folder / "bad.cgplan", "no plan");
  expectError(cgc({"compile", tiny(), "--add-to", "bad.cgplan", "--input", "text=i64[1,16]"}), 3,
              {"bad.cgplan"});
}

TEST_F(AddTo, OneProcessReplacesAPlanAtATime) {
  makePlan({"--entry", "encode_text"});
  const std::string plan = readFile(folder / "plan.cgplan");
  {
    const int file = ::open((folder / "plan.cgplan").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::flock(file, LOCK_EX), 0);
    expectError(cgc(addTo({"--entry", "encode_text", "--batch", "2"})), 1,
                {"another process is about to replace", "plan.cgplan"});
    EXPECT_EQ(readFile(folder / "plan.cgplan"), plan);
    // Another file may be written.
    EXPECT_EQ(cgc(addTo({"--entry", "encode_text", "--batch", "2", "-o", "more.cgplan"})).status,
              0);
    ::close(file);
  }
  // Of two at once, each either succeeds and its bucket is there, or fails.
  Outcome outcomes[2];
  std::thread other([&] { outcomes[0] = cgc(addTo({"--entry", "encode_text", "--batch", "3"})); });
  outcomes[1] = cgc(addTo({"--entry", "encode_text", "--batch", "4"}));
  other.join();
  const auto added = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  size_t succeeded = 0;
  for (const Outcome &outcome : outcomes) {
    succeeded += outcome.status == 0;
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << outcome.err;
  }
  EXPECT_GE(succeeded, 1u);
  EXPECT_EQ(added["entries"][0]["buckets"].size(), 1 + succeeded);
}

} // namespace
} // namespace cgc::e2e

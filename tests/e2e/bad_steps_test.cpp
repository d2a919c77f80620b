// Tests of the steps of bad_steps.py: those that cannot be trained are refused by line, and what
// others leave out is said.
#include "script.h"
#include "tests/paths.h"

namespace cgc::e2e {
namespace {

/// Compiles a step of bad_steps.py.
class BadSteps : public ScriptTest {
protected:
  Outcome compile(const std::string &name, const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments = {"compile",  trainingModels() / (name + ".pt"),
                                          "-o",       "step.cgplan",
                                          "--train",  "forward",
                                          "--target", "cpu",
                                          "--input",  "x=f32[4,8]",
                                          "--input",  "y=i64[4]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  }
  /// The position of a line that ends with `# LINE: tag`, as errors begin.
  static std::string at(const std::string &tag) {
    std::istringstream file(readFile(test::sourceDir() / "tests/e2e/bad_steps.py"));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number)
      if (line.ends_with("# LINE: " + tag))
        return "bad_steps.py:" + std::to_string(number);
    ADD_FAILURE() << "no line " << tag;
    return "";
  }
  void refuse(const std::string &name, const std::vector<std::string> &texts) {
    SCOPED_TRACE(name);
    expectError(compile(name), 4, texts);
    EXPECT_FALSE(fs::exists(folder / "step.cgplan"));
  }
};

TEST_F(BadSteps, AreRefusedByLine) {
  refuse("vector", {at("vector"), "the loss is f32[4]", "reduce it, for example with mean()"});
  refuse("integer", {at("integer"), "the loss is i64[]", "without argmax", "another output"});
  EXPECT_EQ(compile("integer", {"--loss", "1"}).status, 0);
  fs::remove(folder / "step.cgplan");
  refuse("frozen", {"no parameter that is trained", "set requires_grad of some"});
  refuse("no_gradient",
         {at("distances") + ": error: cgc cannot train through aten.cdist: it has no gradient",
          at("image") + ": error: cgc cannot train through aten.upsample_nearest2d",
          at("larger") + ": error: cgc cannot train through aten.upsample_bilinear2d"});
  refuse("writes",
         {at("slice") + ": error: in-place op: it overwrites a view of the buffer 'queue'",
          at("weight") + ": error: in-place op: it overwrites the parameter 'fc.weight'",
          at("input") + ": error: in-place op: it overwrites the input 'x'"});
  refuse("flow", {at("branch") + ": error: data-dependent control flow", "torch.where"});
  refuse("no_grad", {at("no_grad") + ": error: a step cannot switch gradients off", "detach()"});
}

TEST_F(BadSteps, ParametersThatNoGradientReachesAreNamed) {
  const Outcome outcome = compile("unreached", {"--optimizer", "adamw,weight_decay=0.1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const size_t note = outcome.err.find("no gradient reaches ");
  ASSERT_NE(note, std::string::npos) << outcome.err;
  const std::string names = outcome.err.substr(note, outcome.err.find(':', note) - note);
  for (const char *name : {"scale", "head.weight", "head.bias", "unused"})
    EXPECT_NE(names.find(name), std::string::npos) << names;
  for (const char *name : {"fc.", "tied", "frozen"})
    EXPECT_EQ(names.find(name), std::string::npos) << names;
  EXPECT_NE(outcome.err.find("without weight decay", note), std::string::npos) << outcome.err;
}

TEST_F(BadSteps, EvaluationModeIsSaid) {
  for (const std::string name : {"evaluated", "evaluated_script"}) {
    const Outcome outcome = compile(name);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("1 dropout and 1 batch norm of the model, the first at " +
                               at("norm") + " (norm), were exported after eval()"),
              std::string::npos)
        << outcome.err;
  }
  EXPECT_NE(compile("evaluated_only").err.find("the model was exported after eval()"),
            std::string::npos);
  const Outcome trained = cgc({"compile", trainingModels() / "mlp.pt", "-o", "mlp.cgplan",
                               "--train", "forward", "--target", "cpu", "--input", "x=f32[16,32]",
                               "--input", "y=i64[16]", "--optimizer", "sgd"});
  EXPECT_EQ(trained.status, 0);
  EXPECT_EQ(trained.err, "");
}

} // namespace
} // namespace cgc::e2e

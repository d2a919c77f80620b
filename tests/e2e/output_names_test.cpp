// Tests of output names from a file's extra/cgc.json: the plan keeps them, and names that do not
// fit are errors.
#include "tests/paths.h"
#include "tool.h"

#include <map>

namespace cgc::e2e {
namespace {

using Names = std::vector<std::string>;

class OutputNames : public ToolTest {
protected:
  /// Saves the scripted module Both as FILE.pt for each file and text of extra/cgc.json.
  void save(const nlohmann::json &texts) {
    writeFile(folder / "both.py", R"(
import json, sys, torch
class Both(torch.nn.Module):
    def forward(self, x):
        y, z = self.both(x)
        return z, y, y + z
    @torch.jit.export
    def both(self, x):
        return x * 2, x.sum()
    @torch.jit.export
    def maybe(self, x, flag: bool = False):
        y = x * 3 if flag else None
        return y, x
    @torch.jit.export
    def keys(self, x):
        return {"a": x}
    @torch.jit.export
    def parts(self, x):
        return [x, x + 1]
model = torch.jit.script(Both())
for name, text in json.loads(sys.argv[1]).items():
    model.save(name + ".pt", _extra_files={"cgc.json": text})
)");
    const Outcome saved =
        runProgram({kSource / ".venv/bin/python", "both.py", texts.dump()}, folder);
    ASSERT_EQ(saved.status, 0) << saved.err;
  }
  static Names namesOf(const nlohmann::json &outputs, const char *key = "name") {
    Names names;
    for (const auto &output : outputs)
      names.push_back(output[key]);
    return names;
  }
  /// The names of the outputs of the first bucket of each entry.
  std::map<std::string, Names> namesOfEntries(const std::string &plan) {
    std::map<std::string, Names> names;
    const auto json = parseJson(cgc({"inspect", plan, "--json"}), "plan");
    for (const auto &entry : json["entries"])
      names[entry["name"]] = namesOf(entry["buckets"][0]["outputs"]);
    return names;
  }
};

TEST_F(OutputNames, OfTheExporterAreThoseOfOpenClip) {
  const Names forward = {"image_features", "text_features", "logit_scale"};
  const std::map<std::string, Names> expected = {{"forward", forward},
                                                 {"encode_image", {"image_features"}},
                                                 {"encode_text", {"text_features"}}};
  std::map<std::string, Names> ofModel;
  const auto model =
      parseJson(cgc({"inspect", models() / "tiny_fp32.pt", "--json"}), "torchscript");
  for (const auto &method : model["methods"])
    ofModel[method["name"]] = method["output_names"];
  EXPECT_EQ(ofModel, expected);
  const Outcome text = cgc({"inspect", models() / "tiny_fp32.pt"});
  EXPECT_NE(text.out.find("image_features, text_features, logit_scale"), std::string::npos);

  makePlan();
  EXPECT_EQ(namesOfEntries("plan.cgplan"), expected);

  const Outcome compared =
      cgc({"compare", "plan.cgplan", models() / "tiny_fp32.pt", "--entry", "forward", "--json"});
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_EQ(namesOf(parseJson(compared, "compare")["outputs"], "output"), forward);

  const auto ran =
      parseJson(cgc({"run", "plan.cgplan", "--entry", "forward", "--input", "image=random:0",
                     "--input", "text=random:1", "--output", "y.npy", "--json"}),
                "run");
  EXPECT_EQ(namesOf(ran["outputs"]), forward);
  // Names of files are by position.
  EXPECT_EQ(files(), (Names{"plan.cgplan", "y.0.npy", "y.1.npy", "y.2.npy"}));
}

TEST_F(OutputNames, OfAUsersOwnFile) {
  // `forward` calls `both`, whose names it does not see. The default of `flag` makes `odd` None.
  save({{"named", R"({"outputs": {"forward": ["sum", "double", "all"], "both": ["left", "right"],
                                  "maybe": ["odd", "even"]}})"},
        {"plain", R"({"outputs": {}})"}});
  const std::vector<std::string> arguments = {"--input", "x=f32[4]", "--target",
                                              "cpu",     "--entry",  "forward,both,maybe"};
  for (const char *name : {"named", "plain"}) {
    const std::string model = std::string(name) + ".pt", plan = std::string(name) + ".cgplan";
    std::vector<std::string> command = {"compile", model, "-o", plan};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome compiled = cgc(command);
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome compared = cgc({"compare", plan, model});
    EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  }
  const std::map<std::string, Names> expected = {
      {"forward", {"sum", "double", "all"}}, {"both", {"left", "right"}}, {"maybe", {"even"}}};
  EXPECT_EQ(namesOfEntries("named.cgplan"), expected);
  // The two plans differ only in the names of the outputs.
  const Outcome differ = cgc({"diff", "named.cgplan", "plain.cgplan"});
  EXPECT_EQ(differ.status, 5) << differ.err;
  for (const char *name : {"left", "right", "even", "sum"})
    EXPECT_NE(differ.out.find(name), std::string::npos) << differ.out;
}

TEST_F(OutputNames, AreRefusedWhereTheyDoNotFit) {
  const std::string nested = std::string(100000, '[');
  const std::tuple<std::string, std::string, std::vector<std::string>> cases[] = {
      {"text", "both: left, right", {"expected a JSON object", "export the file again"}},
      {"nested", nested, {"expected a JSON object"}},
      {"other", R"({"output": {}})", {"expected a JSON object", "\"outputs\""}},
      {"more", R"({"outputs": {}, "inputs": {}})", {"no other key"}},
      {"list", R"({"outputs": []})", {"expected a JSON object"}},
      {"typo", R"({"outputs": {"bothe": ["a", "b"]}})", {"no method 'bothe'", "it has", "both"}},
      {"few", R"({"outputs": {"both": ["a"]}})", {"'both' returns 2 outputs, not the 1"}},
      {"twice", R"({"outputs": {"both": ["a", "a"]}})", {"two outputs of 'both' are named 'a'"}},
      {"empty", R"({"outputs": {"both": ["a", ""]}})", {"names of the outputs of 'both'"}},
      {"long",
       R"({"outputs": {"both": ["a", ")" + std::string(129, 'b') + R"("]}})",
       {"names of the outputs of 'both'"}},
      {"blank", R"({"outputs": {"both": ["a", "b c"]}})", {"names of the outputs of 'both'"}},
      {"slash", R"({"outputs": {"both": ["a", "b/c"]}})", {"names of the outputs of 'both'"}},
      {"control", R"({"outputs": {"both": ["a", "b\n"]}})", {"names of the outputs of 'both'"}},
      {"number", R"({"outputs": {"both": ["a", 1]}})", {"names of the outputs of 'both'"}},
      {"string", R"({"outputs": {"both": "ab"}})", {"names of the outputs of 'both'"}},
      {"keys",
       R"({"outputs": {"keys": ["a"]}})",
       {"'keys' returns a dict", "leave the method out"}},
      {"parts", R"({"outputs": {"parts": ["a", "b"]}})", {"'parts' returns List[Tensor]"}},
  };
  nlohmann::json texts;
  for (const auto &[name, text, expected] : cases)
    texts[name] = text;
  save(texts);
  for (const auto &[name, text, expected] : cases) {
    const Outcome outcome = cgc(
        {"compile", name + ".pt", "-o", "plan.cgplan", "--input", "x=f32[4]", "--target", "cpu"});
    expectError(outcome, 3, expected);
    expectError(outcome, 3, {name + ".pt", "extra/cgc.json"});
  }
  EXPECT_FALSE(fs::exists(folder / "plan.cgplan"));
}

} // namespace
} // namespace cgc::e2e

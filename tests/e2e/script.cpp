// Script: starts one process for one run of a script or for several.
#include "script.h"
#include "tests/paths.h"

#include <stdexcept>

namespace cgc::e2e {

Outcome ScriptTest::python(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kSource / ".venv/bin/python");
  return runProgram(arguments, folder);
}

Outcome ScriptTest::script(const std::string &name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kSource / "scripts" / (name + ".py"));
  return python(arguments);
}

std::vector<Outcome> ScriptTest::scriptEach(const std::string &name,
                                            const std::vector<std::vector<std::string>> &runs) {
  const Outcome outcome = python({"-c",
                                  R"(
import contextlib, importlib, io, json, sys
_, folder, name, runs = sys.argv
sys.path.insert(0, folder)
script, model = importlib.import_module(name), importlib.import_module("openclip_model")
outcomes = []
for arguments in json.loads(runs):
    sys.argv = [name + ".py", *arguments]
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            model.run(name, script.main)
        except SystemExit as exit:
            status = exit.code
    outcomes.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(outcomes))
)",
                                  kSource / "scripts", name, nlohmann::json(runs).dump()});
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  // The exception ends the test: there is no result to check.
  if (json.size() != runs.size())
    throw std::runtime_error("not one outcome for each run: " + outcome.out + outcome.err);
  std::vector<Outcome> outcomes;
  for (const auto &one : json)
    outcomes.push_back({.status = one[0], .out = one[1], .err = one[2]});
  return outcomes;
}

void expectErrorLine(const Outcome &outcome, int status, const std::vector<std::string> &texts) {
  expectError(outcome, status, texts);
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
}

} // namespace cgc::e2e

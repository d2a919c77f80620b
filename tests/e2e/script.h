// Script: starts the Python scripts of scripts/.
#pragma once

#include "tool.h"

namespace cgc::e2e {

/// A test of a script.
class ScriptTest : public ToolTest {
protected:
  /// Runs Python in the test's folder.
  Outcome python(std::vector<std::string> arguments);
  /// Runs scripts/NAME.py.
  Outcome script(const std::string &name, std::vector<std::string> arguments);
  /// Runs scripts/NAME.py once for each list of arguments, all in one process: what they import
  /// takes seconds.
  std::vector<Outcome> scriptEach(const std::string &name,
                                  const std::vector<std::vector<std::string>> &runs);
};

/// As expectError(), and that the error is one line without colors.
void expectErrorLine(const Outcome &outcome, int status, const std::vector<std::string> &texts);

} // namespace cgc::e2e

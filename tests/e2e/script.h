// Script: runs the Python scripts of scripts/.
#pragma once

#include "tool.h"

namespace cgc::e2e {

/// Base class of the tests of scripts.
class ScriptTest : public ToolTest {
protected:
  /// Runs Python with these arguments in the test's folder.
  Outcome python(std::vector<std::string> arguments);
  /// Runs scripts/NAME.py.
  Outcome script(const std::string &name, std::vector<std::string> arguments);
  /// Runs scripts/NAME.py once for each list of arguments, all in one process, because their
  /// imports take seconds.
  std::vector<Outcome> scriptEach(const std::string &name,
                                  const std::vector<std::vector<std::string>> &runs);
};

/// Checks as expectError() does, and that the error is one line without colors.
void expectErrorLine(const Outcome &outcome, int status, const std::vector<std::string> &texts);

} // namespace cgc::e2e

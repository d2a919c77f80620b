// Tests of makeOnce: what a script that makes models runs under, and when it runs.
#include "tests/make_once.h"
#include "tool.h"

#include <optional>

namespace cgc::e2e {
namespace {

/// An environment variable that has another value until the end of the scope.
class SetVariable {
public:
  SetVariable(const char *name, const char *value) : name_(name) {
    if (const char *before = std::getenv(name))
      before_ = before;
    setenv(name, value, 1);
  }
  ~SetVariable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  SetVariable(const SetVariable &) = delete;
  SetVariable &operator=(const SetVariable &) = delete;

private:
  const char *name_;
  std::optional<std::string> before_;
};

class MakeOnce : public ToolTest {};

/// Otherwise the models would depend on the case that comes first, and its failure on the machine.
TEST_F(MakeOnce, NoSettingOfLibTorchReachesTheScript) {
  const fs::path script = folder / "make.py", result = folder / "result";
  writeFile(script, "import os, sys\n"
                    "with open(sys.argv[1], 'a') as result:\n"
                    "    print(os.environ.get('ATEN_CPU_CAPABILITY'), file=result)\n");
  const SetVariable setting("ATEN_CPU_CAPABILITY", "default"),
      variant("CGC_TEST_VARIANT", "ATEN_CPU_CAPABILITY=default");
  test::makeOnce(folder / "done", script, test::quoted(result));
  EXPECT_EQ(readFile(result), "None\n");
  test::makeOnce(folder / "done", script, test::quoted(result));
  EXPECT_EQ(readFile(result), "None\n"); // It has not run again.
}

} // namespace
} // namespace cgc::e2e

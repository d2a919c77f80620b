// Tests of Progress on a terminal: the bar appears, names the phase, and is removed at the end.
#include "tools/cgc/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::tool {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// A child process with its own pseudo-terminal.
class OnTerminal {
public:
  template <class Body> explicit OnTerminal(const Body &body) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      body();
      _exit(0);
    }
  }
  ~OnTerminal() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(terminal_);
  }

  /// Reads until the child has written `text`, has ended, or has written nothing for a minute.
  /// Returns everything that it has written.
  std::string readUntil(const std::string &text) {
    char bytes[256];
    pollfd ready{terminal_, POLLIN, 0};
    while (written_.find(text) == std::string::npos && poll(&ready, 1, 60'000) > 0) {
      const ssize_t count = read(terminal_, bytes, sizeof bytes);
      if (count <= 0)
        break;
      written_.append(bytes, static_cast<size_t>(count));
    }
    return written_;
  }
  void pressEnter() { EXPECT_EQ(write(terminal_, "\n", 1), 1); }

private:
  int terminal_ = -1;
  pid_t child_ = -1;
  std::string written_;
};

TEST(Progress, DrawsABarAndRemovesIt) {
  const auto waitForEnter = [] {
    char key;
    while (read(STDIN_FILENO, &key, 1) < 0)
      ;
  };
  OnTerminal child([&] {
    Progress progress(4);
    progress.begin("load model.pt");
    progress.begin("inline");
    waitForEnter();
    progress.begin("specialize");
    waitForEnter();
  });
  EXPECT_THAT(child.readUntil(" s  inline"), HasSubstr("[######..................] 1/4 "));
  child.pressEnter();
  EXPECT_THAT(child.readUntil(" s  specialize"), HasSubstr("[############............] 2/4 "));
  child.pressEnter();
  EXPECT_THAT(child.readUntil("no more"), EndsWith("\r\x1b[K"));
}

TEST(Progress, ShowsTextWithoutAnotherPhase) {
  OnTerminal child([] {
    setenv("CGC_PROGRESS_AFTER", "0", 1);
    Progress progress(2);
    progress.begin("step 1");
    progress.begin("step 2");
    progress.show("step 2, validation");
    pause();
  });
  EXPECT_THAT(child.readUntil(", validation"), HasSubstr("[############............] 1/2 "));
}

} // namespace
} // namespace cgc::tool

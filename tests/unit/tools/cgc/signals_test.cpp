// Tests of signals: a process that a signal ends leaves no temporary file behind.
#include "tools/cgc/cli/signals.h"

#include "runtime/base/file.h"
#include "tests/temp_folder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::tool {
namespace {

/// The wait status of a child that installs cgc's handlers and runs `body`; it exits with 99 if
/// `body` returns. The child starts with `action` for `signal`, because the caller of the tests may
/// ignore the signal.
int statusOf(int signal, void (*action)(int), const std::function<void()> &body) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(signal, action);
    handleSignals();
    body();
    _exit(99);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Signals, RemoveTemporariesAndEndTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const test::TempFolder folder;
    const int status = statusOf(signal, SIG_DFL, [&] {
      auto one = AtomicFile::create(folder / "one"), two = AtomicFile::create(folder / "two");
      if (!one.isOk() || !two.isOk() || !one->write("half", 4).isOk() || folder.list().size() != 2)
        _exit(98);
      raise(signal);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << signal << ": exit status " << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(folder.list().empty()) << signal;
  }
}

TEST(Signals, ThatTheCallerIgnoresStayIgnored) {
  const int status = statusOf(SIGHUP, SIG_IGN, [] { raise(SIGHUP); });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 99);
}

} // namespace
} // namespace cgc::tool

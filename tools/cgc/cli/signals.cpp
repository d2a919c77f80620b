// Signals: cleans up, then raises the same signal again.
#include "tools/cgc/cli/signals.h"

#include "runtime/base/file.h"

#include <csignal>
#include <unistd.h>

namespace cgc::tool {

namespace {

// SA_RESETHAND has restored the default action, so raising the signal again ends the process. PID 1
// of a container is the exception: its default action is to ignore signals.
[[noreturn]] void cleanUpAndReraise(int signal) {
  removeOpenTemporaries();
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(signal);
  _exit(128 + signal);
}

volatile std::sig_atomic_t stopSignal = 0;

/// Installs `handler` for one signal, unless the parent process ignores that.
void install(int signal, void (*handler)(int)) {
  struct sigaction previous{};
  sigaction(signal, nullptr, &previous);
  if (previous.sa_handler == SIG_IGN)
    return;
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESETHAND;
  sigaction(signal, &action, nullptr);
}

void requestStop(int signal) {
  stopSignal = signal;
  install(signal, cleanUpAndReraise);
}

} // namespace

void handleSignals() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    install(signal, cleanUpAndReraise);
}

void deferStop() {
  install(SIGINT, requestStop);
  install(SIGTERM, requestStop);
}

int requestedStop() {
  return stopSignal;
}

void endBySignal(int signal) {
  std::signal(signal, SIG_DFL);
  cleanUpAndReraise(signal);
}

} // namespace cgc::tool

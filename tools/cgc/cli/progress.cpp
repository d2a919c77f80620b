// Progress: renders phases as log lines or as a bar on a terminal.
#include "tools/cgc/cli/progress.h"

#include "tools/cgc/cli/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace cgc::tool {

namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr size_t kBarWidth = 24;

/// How long a command runs before it shows progress; CGC_PROGRESS_AFTER sets other seconds.
std::chrono::duration<double> quietTime() {
  double seconds = 2;
  if (const char *set = std::getenv("CGC_PROGRESS_AFTER"))
    std::from_chars(set, set + std::strlen(set), seconds);
  return std::chrono::duration<double>(seconds);
}

} // namespace

Progress::Progress(size_t phases)
    : terminal_(isatty(STDERR_FILENO)), phases_(phases),
      visible_(!terminal_ && !isQuiet() && quietTime().count() <= 0) {
  if (isQuiet())
    return;
  // Signals must go to the main thread, which handles them; the new thread inherits this mask.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &previous);
  renderThread_ =
      std::jthread([this](std::stop_token stop) { renderUntilStopped(std::move(stop)); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

Progress::~Progress() {
  renderThread_.request_stop();
  if (renderThread_.joinable())
    renderThread_.join();
  if (terminal_ && visible_)
    std::fputs("\r\x1b[K", stderr);
}

void Progress::expect(size_t phases) {
  std::lock_guard lock(mutex_);
  phases_ = phases;
}

void Progress::begin(std::string phase) {
  std::lock_guard lock(mutex_);
  ++begun_;
  if (phases_ != 0)
    phases_ = std::max(phases_, begun_);
  showLocked(std::move(phase));
}

void Progress::show(std::string text) {
  std::lock_guard lock(mutex_);
  showLocked(std::move(text));
}

void Progress::showLocked(std::string text) {
  phase_ = std::move(text);
  if (visible_ && !terminal_)
    logPhase();
}

void Progress::renderUntilStopped(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, kRedraw, [&] { return stop.stop_requested(); })) {
    if (begun_ == 0 || std::chrono::steady_clock::now() - start_ < quietTime())
      continue;
    if (terminal_)
      drawBar();
    else if (!visible_)
      logPhase();
    visible_ = true;
  }
}

void Progress::logPhase() {
  logInfo(phases_ == 0 ? fmt::format("[{}] {}", begun_, phase_)
                       : fmt::format("[{}/{}] {}", begun_, phases_, phase_));
}

void Progress::drawBar() {
  const size_t done = begun_ - 1;
  const size_t filled = phases_ == 0 ? 0 : kBarWidth * done / phases_;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::string count = phases_ == 0 ? "" : fmt::format(" {}/{}", done, phases_);
  fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}]{} {:.0f} s  {}", "", filled, "", kBarWidth - filled,
             count, elapsed.count(), phase_);
  std::fflush(stderr);
}

} // namespace cgc::tool

// Progress: phases as log lines or as a bar on a terminal.
#include "tools/cgc/progress.h"

#include "tools/cgc/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace cgc::tool {

namespace {
constexpr auto kQuietTime = std::chrono::seconds(2);
constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr size_t kBarWidth = 24;
} // namespace

Progress::Progress(size_t phases) : terminal_(isatty(STDERR_FILENO)), phases_(phases) {
  if (!terminal_)
    return;
  // The thread must not take the signals that the main thread handles.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &previous);
  drawer_ = std::jthread([this](std::stop_token stop) { drawUntilStopped(std::move(stop)); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

Progress::~Progress() {
  if (!terminal_)
    return;
  drawer_.request_stop();
  drawer_.join();
  if (visible_)
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
  if (!terminal_)
    logInfo(phases_ == 0 ? fmt::format("[{}] {}", begun_, phase)
                         : fmt::format("[{}/{}] {}", begun_, phases_, phase));
  phase_ = std::move(phase);
}

void Progress::drawUntilStopped(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, kRedraw, [&] { return stop.stop_requested(); }))
    if (std::chrono::steady_clock::now() - start_ > kQuietTime)
      draw();
}

void Progress::draw() {
  const size_t done = begun_ == 0 ? 0 : begun_ - 1;
  const size_t filled = phases_ == 0 ? 0 : kBarWidth * done / phases_;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::string count = phases_ == 0 ? "" : fmt::format(" {}/{}", done, phases_);
  fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}]{} {:.0f} s  {}", "", filled, "", kBarWidth - filled,
             count, elapsed.count(), phase_);
  std::fflush(stderr);
  visible_ = true;
}

} // namespace cgc::tool

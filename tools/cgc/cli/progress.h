// Progress: shows the phase of a long command on stderr, as a bar on a terminal, else as a line per
// phase.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cgc::tool {

/// Shows nothing in the first two seconds, and nothing at all with --quiet. A thread of its own
/// draws the bar.
class Progress final {
public:
  /// `phases` is the number of calls of begin() to come; 0: unknown until expect().
  explicit Progress(size_t phases = 0);
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  /// Removes the bar.
  ~Progress();

  /// Sets the number of phases, including those that have begun.
  void expect(size_t phases);
  /// Ends the previous phase and begins this one.
  void begin(std::string phase);
  /// Shows this text in place of the phase's.
  void show(std::string text);

private:
  void renderUntilStopped(std::stop_token stop);
  void showLocked(std::string text);
  void drawBar();
  void logPhase();

  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  size_t phases_, begun_ = 0;
  std::string phase_;
  bool visible_ = false;      ///< The bar is drawn, or phases are logged as they begin.
  std::jthread renderThread_; ///< Declared last: joins before the other members are destroyed.
};

} // namespace cgc::tool

// Progress: which phase a long command is in, on stderr, once the command has taken two seconds: a
// bar on a terminal, else a line per phase. Nothing with --quiet.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cgc::tool {

class Progress final {
public:
  /// `phases` is how many times begin() will be called; 0: expect() will say.
  explicit Progress(size_t phases = 0);
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  /// Removes the bar.
  ~Progress();

  /// How many phases there are, those that have begun included.
  void expect(size_t phases);
  /// Ends the phase before and begins this one.
  void begin(std::string phase);

private:
  void renderUntilStopped(std::stop_token stop);
  void drawBar();
  void logPhase();

  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  size_t phases_, begun_ = 0;
  std::string phase_;
  bool visible_ = false;      ///< The bar is drawn, or phases are logged as they begin.
  std::jthread renderThread_; ///< Last: joins before the rest goes.
};

} // namespace cgc::tool

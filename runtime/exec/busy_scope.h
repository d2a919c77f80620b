// BusyScope: lets one thread at a time use a context or a trainer.
#pragma once

#include "runtime/base/status.h"

#include <atomic>

namespace cgc {

/// Marks a context or a trainer as busy for its lifetime, unless another thread already has.
class BusyScope final {
public:
  explicit BusyScope(std::atomic<bool> &busy) : busy_(busy), entered_(!busy.exchange(true)) {}
  BusyScope(const BusyScope &) = delete;
  BusyScope &operator=(const BusyScope &) = delete;
  ~BusyScope() {
    if (entered_)
      busy_ = false;
  }
  bool entered() const { return entered_; }

private:
  std::atomic<bool> &busy_;
  bool entered_;
};

inline Status busyContext() {
  return {Code::Usage,
          "another thread is running this context; give each thread a context of its own"};
}
inline Status busyTrainer() {
  return {Code::Usage, "another thread is using this trainer; let one thread at a time use it"};
}

} // namespace cgc

// IntraOpThreads: how many threads LibTorch's CPU kernels use, for one calling thread.
#pragma once

namespace cgc::aten {

/// While it lives, an op that this thread calls is computed by `threads` threads, itself included.
/// Other threads, and what at::get_num_threads says on them, stay as they are.
class IntraOpThreads final {
public:
  explicit IntraOpThreads(int threads);
  IntraOpThreads(const IntraOpThreads &) = delete;
  IntraOpThreads &operator=(const IntraOpThreads &) = delete;
  ~IntraOpThreads();

private:
  int openMp_;  ///< The thread's own values before.
  int mkl_ = 0; ///< 0: it follows the process-wide one.
};

} // namespace cgc::aten

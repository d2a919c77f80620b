// IntraOpThreads: the number of threads of LibTorch's CPU kernels for one calling thread.
#pragma once

namespace cgc::aten {

/// While alive, ops that this thread calls use `threads` threads, including the caller. Other
/// threads, and at::get_num_threads on them, are not affected.
class IntraOpThreads final {
public:
  explicit IntraOpThreads(int threads);
  IntraOpThreads(const IntraOpThreads &) = delete;
  IntraOpThreads &operator=(const IntraOpThreads &) = delete;
  ~IntraOpThreads();

private:
  int openMp_;  ///< The calling thread's previous value.
  int mkl_ = 0; ///< The previous value; 0: follows the process-wide value.
};

} // namespace cgc::aten

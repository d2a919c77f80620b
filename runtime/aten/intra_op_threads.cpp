// IntraOpThreads: OpenMP's and MKL's settings of the calling thread. at::set_num_threads would
// change the process.
#include "runtime/aten/intra_op_threads.h"

#include <ATen/Config.h>
#include <ATen/Parallel.h>

#include <omp.h>

#if AT_MKL_ENABLED()
// MKL is inside libtorch_cpu, which has no header of it. The name in lower case is Fortran's.
extern "C" int MKL_Set_Num_Threads_Local(int threads); // Gives the value before.
#endif

namespace cgc::aten {

IntraOpThreads::IntraOpThreads(int threads)
    // LibTorch sets OpenMP's value at its first use on a thread, which this call is, if none was
    // before.
    : openMp_(at::get_num_threads()) {
  omp_set_num_threads(threads);
#if AT_MKL_ENABLED()
  mkl_ = MKL_Set_Num_Threads_Local(threads);
#endif
}

IntraOpThreads::~IntraOpThreads() {
  omp_set_num_threads(openMp_);
#if AT_MKL_ENABLED()
  MKL_Set_Num_Threads_Local(mkl_);
#endif
}

} // namespace cgc::aten

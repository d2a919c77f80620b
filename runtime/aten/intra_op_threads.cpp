// IntraOpThreads: sets OpenMP's and MKL's thread counts of the calling thread. at::set_num_threads
// would change them for the process.
#include "runtime/aten/intra_op_threads.h"

#include <ATen/Config.h>
#include <ATen/Parallel.h>

#include <omp.h>

#if AT_MKL_ENABLED()
// MKL is part of libtorch_cpu, which ships no MKL header. The lower-case name is the Fortran one.
extern "C" int MKL_Set_Num_Threads_Local(int threads); // Returns the previous value.
#endif

namespace cgc::aten {

IntraOpThreads::IntraOpThreads(int threads)
    // LibTorch sets OpenMP's value at its first use on a thread; this call makes sure that it is
    // done.
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

// AddressSets: executables of a captured graph, the least recently used of which is patched again.
#include "runtime/exec/address_sets.h"

#include "runtime/exec/caller_capture.h"
#include "runtime/exec/memory_limit.h"

#include <algorithm>

namespace cgc {

Status AddressSets::makeExecutable(const AddressPatch::Binding &binding, Set &set,
                                   cudaStream_t on) {
  if (set.exec)
    return patch_.apply(binding, set.exec.get());
  CGC_ASSIGN_OR_RETURN(const uint64_t before, freeGpuMemory());
  cudaGraphExec_t exec = nullptr;
  CGC_TRY(CGC_CUDA(cudaGraphInstantiate(&exec, graph_, 0), "cannot instantiate the graph"));
  set.exec.reset(exec);
  CGC_TRY(patch_.apply(binding, exec));
  CGC_TRY(CGC_CUDA(cudaGraphUpload(exec, on), "cannot upload the graph"));
  CGC_ASSIGN_OR_RETURN(const uint64_t after, freeGpuMemory());
  bytes_ += before - std::min(before, after);
  return Status::ok();
}

Result<const AddressSets::Set *> AddressSets::find(const IoAddresses &wanted, cudaStream_t on) {
  ++uses_;
  if (const auto known = std::ranges::find(sets_, wanted, &Set::wanted); known != sets_.end()) {
    known->lastUse = uses_;
    return &*known;
  }
  const RelaxedCaptureMode relaxed; // Another thread may be capturing a graph of the caller's.
  CGC_ASSIGN_OR_RETURN(AddressPatch::Binding binding, patch_.bind(wanted));
  Set &set = sets_.size() < limit_ ? sets_.emplace_back()
                                   : *std::ranges::min_element(sets_, {}, &Set::lastUse);
  set.wanted.clear();
  // Some nodes of the executable may have been set. Before it runs, all are set again.
  if (binding.at != patch_.own() && !makeExecutable(binding, set, on).isOk())
    binding.at = patch_.own();
  set.wanted = wanted;
  set.at = std::move(binding.at);
  set.lastUse = uses_;
  return &set;
}

} // namespace cgc

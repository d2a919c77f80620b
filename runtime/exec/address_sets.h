// AddressSets: executables of a captured graph for callers' tensors.
#pragma once

#include "runtime/exec/address_patch.h"

namespace cgc {

/// Executables of a captured graph for the sets of addresses that callers used last.
class AddressSets final {
public:
  /// Keeps at most `limit` sets, at least 1. `patch` and `graph`, the captured graph, are borrowed.
  AddressSets(const AddressPatch &patch, cudaGraph_t graph, size_t limit)
      : patch_(patch), graph_(graph), limit_(limit) {}

  struct Set {
    IoAddresses wanted;
    IoAddresses at;     ///< AddressPatch::own() if the graph on the static buffers has to run.
    CudaGraphExec exec; ///< Else it runs this one.
    uint64_t lastUse = 0;
  };
  /// The set for the addresses `wanted`, which is valid until the next call. A set that is new is
  /// instantiated and uploaded on `on`, or takes over the executable of the one that was used
  /// longest ago. If CUDA refuses, it has the static buffers.
  Result<const Set *> find(const IoAddresses &wanted, cudaStream_t on);

  /// Device memory that instantiations have taken, in bytes.
  uint64_t bytes() const { return bytes_; }

private:
  Status makeExecutable(const AddressPatch::Binding &binding, Set &set, cudaStream_t on);
  const AddressPatch &patch_;
  const cudaGraph_t graph_;
  const size_t limit_;
  std::vector<Set> sets_;
  uint64_t uses_ = 0, bytes_ = 0;
};

} // namespace cgc

// AddressPatch: other addresses for the inputs and outputs of a bucket's captured graph.
#pragma once

#include "runtime/exec/bind.h"

#include <cstddef>
#include <vector>

namespace cgc {

/// The address of each input of a bucket, then of each output.
using IoAddresses = std::vector<std::byte *>;

/// The kernels' vector accesses and tensor maps look at an address's alignment up to this many
/// bytes. At addresses that are aligned so, a kernel computes the same bits as on the static
/// buffers; tensors at other addresses are copied.
inline constexpr uint64_t kPatchAlignment = 16;

/// Finds the graph nodes that hold the addresses of inputs and outputs, and gives them the
/// addresses of a caller's tensors.
///
/// Only nodes whose parameters cgc makes can be patched: its kernels, copies and memsets. An input
/// or output that another record (LibTorch, cuBLASLt, an op library) reads or writes keeps its
/// static buffer.
class AddressPatch final {
public:
  /// For a bucket with these static buffers on GPU `device`. All references must outlive the
  /// object.
  AddressPatch(const PlanData &plan, const Bucket &bucket, const BucketMemory &memory,
               const Libraries &libraries, int device);

  /// Notes the nodes of `bucket.records[record]`, which has just been enqueued as `bound` on
  /// `stream`, which is capturing.
  Status note(size_t record, const BoundRecord &bound, cudaStream_t stream);

  /// The addresses of the static buffers.
  const IoAddresses &own() const { return own_; }
  /// Whether any input or output may have another address.
  bool isUseful() const;

  /// Records that are bound to other addresses.
  struct Binding {
    IoAddresses at; ///< Static buffers in place of the addresses that cannot be used.
    std::vector<BoundRecord> records;
  };
  /// Binds the records to those of the addresses `wanted` at which they compute the same as on the
  /// static buffers: in memory of the GPU, aligned, and apart from each other. Enqueues nothing.
  Result<Binding> bind(IoAddresses wanted) const;

  /// Gives an executable that was instantiated from the captured graph the addresses of `binding`.
  /// Launches that are enqueued already keep theirs.
  Status apply(const Binding &binding, cudaGraphExec_t exec) const;
  /// The same for a clone of the captured graph.
  Status apply(const Binding &binding, cudaGraph_t clone) const;

private:
  /// A record that reads or writes inputs or outputs, with its nodes: a kernel's own and its tail
  /// launch's, or the one of a copy or memset.
  struct Place {
    size_t record;
    std::vector<size_t> ios; ///< Indices in IoAddresses.
    std::vector<cudaGraphNode_t> nodes;
  };

  std::vector<size_t> iosOf(const LaunchRecord &record) const;
  bool canUse(size_t io, std::byte *address) const;
  /// Moves tensors that overlap an output back to their static buffers.
  void separate(IoAddresses &at) const;
  template <class Target> Status applyTo(const Binding &binding, const Target &target) const;

  const PlanData &plan_;
  const Bucket &bucket_;
  const BucketMemory &memory_;
  const Libraries libraries_;
  const int device_;
  IoAddresses own_;
  std::vector<uint64_t> bytes_; ///< Of each input and output.
  std::vector<bool> movable_;   ///< Whether all records that use it can be patched.
  std::vector<Place> places_;
};

} // namespace cgc

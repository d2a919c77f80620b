// AddressPatch: analysis of a bucket's records, and parameters of graph nodes.
#include "runtime/exec/address_patch.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace cgc {
namespace {

/// Whether cgc itself makes the parameters of the record's nodes.
bool isPatchable(const BoundRecord &record) {
  return std::holds_alternative<BoundKernel>(record.op) ||
         std::holds_alternative<BoundMemcpy>(record.op) ||
         std::holds_alternative<BoundMemset>(record.op);
}

/// Whether enqueuing the record adds no node: another rank runs it, or it copies or sets nothing.
bool isEmpty(const BoundRecord &record) {
  if (std::holds_alternative<BoundElsewhere>(record.op))
    return true;
  const auto *copy = std::get_if<BoundMemcpy>(&record.op);
  const auto *set = std::get_if<BoundMemset>(&record.op);
  return (copy && copy->bytes == 0) || (set && set->bytes == 0);
}

bool hasTail(const BoundRecord &record) {
  const auto *kernel = std::get_if<BoundKernel>(&record.op);
  return kernel && kernel->parameters.tail.function;
}

/// The last nodes that `stream` has captured.
Result<std::vector<cudaGraphNode_t>> lastNodes(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t *nodes = nullptr;
  const cudaGraphEdgeData *edges = nullptr;
  size_t count = 0;
  CGC_TRY(
      CGC_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &edges, &count),
               "cannot look at the capture"));
  if (status != cudaStreamCaptureStatusActive)
    return std::vector<cudaGraphNode_t>();
  return std::vector<cudaGraphNode_t>(nodes, nodes + count);
}

/// The node that `node` depends on; null if there is not exactly one.
Result<cudaGraphNode_t> nodeBefore(cudaGraphNode_t node) {
  size_t count = 0;
  CGC_TRY(CGC_CUDA(cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count),
                   "cannot look at a graph node"));
  if (count != 1)
    return cudaGraphNode_t(nullptr);
  cudaGraphNode_t before = nullptr;
  cudaGraphEdgeData edge;
  CGC_TRY(CGC_CUDA(cudaGraphNodeGetDependencies(node, &before, &edge, &count),
                   "cannot look at a graph node"));
  return before;
}

/// Sets the nodes of an executable graph, which are found by those of the captured graph.
struct ExecNodes {
  cudaGraphExec_t exec;
  Status set(cudaGraphNode_t node, const cudaKernelNodeParams &p) const {
    return CGC_CUDA(cudaGraphExecKernelNodeSetParams(exec, node, &p),
                    "cannot set a kernel's addresses");
  }
  Status set(cudaGraphNode_t node, const BoundMemcpy &c) const {
    return CGC_CUDA(cudaGraphExecMemcpyNodeSetParams1D(exec, node, c.destination, c.source, c.bytes,
                                                       cudaMemcpyDeviceToDevice),
                    "cannot set a copy's addresses");
  }
  Status set(cudaGraphNode_t node, const cudaMemsetParams &p) const {
    return CGC_CUDA(cudaGraphExecMemsetNodeSetParams(exec, node, &p),
                    "cannot set a memset's address");
  }
};

/// Sets the nodes of a clone of the captured graph.
struct CloneNodes {
  cudaGraph_t clone;
  Result<cudaGraphNode_t> find(cudaGraphNode_t node) const {
    cudaGraphNode_t cloned = nullptr;
    CGC_TRY(CGC_CUDA(cudaGraphNodeFindInClone(&cloned, node, clone), "cannot find a graph node"));
    return cloned;
  }
  Status set(cudaGraphNode_t node, const cudaKernelNodeParams &p) const {
    CGC_ASSIGN_OR_RETURN(const cudaGraphNode_t cloned, find(node));
    return CGC_CUDA(cudaGraphKernelNodeSetParams(cloned, &p), "cannot set a kernel's addresses");
  }
  Status set(cudaGraphNode_t node, const BoundMemcpy &c) const {
    CGC_ASSIGN_OR_RETURN(const cudaGraphNode_t cloned, find(node));
    return CGC_CUDA(cudaGraphMemcpyNodeSetParams1D(cloned, c.destination, c.source, c.bytes,
                                                   cudaMemcpyDeviceToDevice),
                    "cannot set a copy's addresses");
  }
  Status set(cudaGraphNode_t node, const cudaMemsetParams &p) const {
    CGC_ASSIGN_OR_RETURN(const cudaGraphNode_t cloned, find(node));
    return CGC_CUDA(cudaGraphMemsetNodeSetParams(cloned, &p), "cannot set a memset's address");
  }
};

template <class Target>
Status setKernel(const BoundKernel &kernel, std::span<const cudaGraphNode_t> nodes,
                 const Target &target) {
  const KernelParameters::TailLaunch &tail = kernel.parameters.tail;
  // The functions copy what `parameter` points to.
  void *parameter = const_cast<KernelParameters &>(kernel.parameters).data();
  cudaKernelNodeParams p = {};
  p.func = const_cast<void *>(kernel.function);
  p.gridDim = kernel.grid;
  p.blockDim = kernel.block;
  p.sharedMemBytes = unsigned(kernel.sharedBytes);
  p.kernelParams = &parameter;
  CGC_TRY(target.set(nodes[0], p));
  if (!tail.function)
    return Status::ok();
  p.func = const_cast<void *>(tail.function);
  p.gridDim = tail.blocks;
  return target.set(nodes[1], p);
}

template <class Target>
Status setMemset(const BoundMemset &set, cudaGraphNode_t node, const Target &target) {
  cudaMemsetParams p = {};
  CGC_TRY(CGC_CUDA(cudaGraphMemsetNodeGetParams(node, &p), "cannot look at a memset"));
  p.dst = set.destination;
  return target.set(node, p);
}

} // namespace

AddressPatch::AddressPatch(const PlanData &plan, const Bucket &bucket, const BucketMemory &memory,
                           const Libraries &libraries, int device)
    : plan_(plan), bucket_(bucket), memory_(memory), libraries_(libraries), device_(device) {
  for (const std::vector<Buffer> *buffers : {&memory.inputs, &memory.outputs})
    for (const Buffer &buffer : *buffers) {
      own_.push_back(buffer.data());
      bytes_.push_back(buffer.size());
      movable_.push_back(buffer.size() > 0);
    }
}

std::vector<size_t> AddressPatch::iosOf(const LaunchRecord &record) const {
  std::vector<size_t> ios;
  for (const std::vector<TensorId> &ids : {recordReads(record), recordWrites(record)})
    for (const TensorId id : ids) {
      const Slot &slot = bucket_.tensors[uint32_t(id)].slot;
      if (slot.buffer == BufferKind::Input)
        ios.push_back(slot.index);
      else if (slot.buffer == BufferKind::Output)
        ios.push_back(memory_.inputs.size() + slot.index);
    }
  return ios;
}

Status AddressPatch::note(size_t record, const BoundRecord &bound, cudaStream_t stream) {
  Place place{record, iosOf(bucket_.records[record]), {}};
  if (place.ios.empty() || isEmpty(bound))
    return Status::ok();
  if (isPatchable(bound)) {
    CGC_ASSIGN_OR_RETURN(place.nodes, lastNodes(stream));
    if (place.nodes.size() == 1 && hasTail(bound)) {
      CGC_ASSIGN_OR_RETURN(cudaGraphNode_t main, nodeBefore(place.nodes[0]));
      place.nodes.insert(place.nodes.begin(), main);
    }
  }
  const bool isFound = place.nodes.size() == 1u + hasTail(bound) && place.nodes[0];
  if (!isFound)
    for (const size_t io : place.ios)
      movable_[io] = false;
  else
    places_.push_back(std::move(place));
  return Status::ok();
}

bool AddressPatch::isUseful() const {
  return std::ranges::any_of(places_, [&](const Place &place) {
    return std::ranges::any_of(place.ios, [&](size_t io) { return movable_[io]; });
  });
}

bool AddressPatch::canUse(size_t io, std::byte *address) const {
  if (!movable_[io] || reinterpret_cast<uintptr_t>(address) % kPatchAlignment != 0)
    return false;
  cudaPointerAttributes attributes = {};
  return CGC_CUDA(cudaPointerGetAttributes(&attributes, address), "").isOk() &&
         attributes.type == cudaMemoryTypeDevice && attributes.device == device_;
}

void AddressPatch::separate(IoAddresses &at) const {
  const std::less<const std::byte *> before;
  const auto overlap = [&](size_t a, size_t b) {
    return a != b && before(at[a], at[b] + bytes_[b]) && before(at[b], at[a] + bytes_[a]);
  };
  for (bool changed = true; std::exchange(changed, false);)
    for (size_t output = memory_.inputs.size(); output < at.size(); ++output)
      for (size_t other = 0; other < at.size(); ++other)
        if (overlap(output, other)) {
          changed = true; // One of the two has moved: static buffers do not overlap.
          at[output] = own_[output];
          at[other] = own_[other];
        }
}

Result<AddressPatch::Binding> AddressPatch::bind(IoAddresses wanted) const {
  for (size_t io = 0; io < wanted.size(); ++io)
    if (wanted[io] != own_[io] && !canUse(io, wanted[io]))
      wanted[io] = own_[io];
  for (;;) {
    separate(wanted);
    BucketMemory memory{memory_.device, memory_.weights, memory_.states, memory_.arena, {}, {}};
    for (size_t io = 0; io < wanted.size(); ++io)
      (io < memory_.inputs.size() ? memory.inputs : memory.outputs)
          .push_back(Buffer::borrow(wanted[io], bytes_[io]));
    Binding binding{wanted, {}};
    std::vector<std::string> notes; // Binding the static buffers has given them.
    const Place *refused = nullptr;
    Status why = Status::ok();
    for (const Place &place : places_) {
      auto bound = bindRecord(plan_, bucket_, place.record, memory, libraries_, notes);
      if (bound.isOk() && place.nodes.size() != 1u + hasTail(*bound))
        bound = Status(Code::Unsupported, "the kernel has another tail launch at this address");
      if (!bound.isOk()) {
        refused = &place;
        why = bound.status();
        break;
      }
      binding.records.push_back(*std::move(bound));
    }
    if (!refused)
      return binding;
    bool changed = false;
    for (const size_t io : refused->ios)
      changed |= std::exchange(wanted[io], own_[io]) != own_[io];
    if (!changed)
      return why;
  }
}

template <class Target>
Status AddressPatch::applyTo(const Binding &binding, const Target &target) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const std::vector<cudaGraphNode_t> &nodes = places_[i].nodes;
    const auto &op = binding.records[i].op;
    if (const auto *kernel = std::get_if<BoundKernel>(&op))
      CGC_TRY(setKernel(*kernel, nodes, target));
    else if (const auto *copy = std::get_if<BoundMemcpy>(&op))
      CGC_TRY(target.set(nodes[0], *copy));
    else
      CGC_TRY(setMemset(std::get<BoundMemset>(op), nodes[0], target));
  }
  return Status::ok();
}

Status AddressPatch::apply(const Binding &binding, cudaGraphExec_t exec) const {
  return applyTo(binding, ExecNodes{exec});
}

Status AddressPatch::apply(const Binding &binding, cudaGraph_t clone) const {
  return applyTo(binding, CloneNodes{clone});
}

} // namespace cgc

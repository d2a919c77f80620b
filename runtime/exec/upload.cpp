// Upload: each thread takes chunks of the buffer and fills one of its two pinned staging buffers
// while the other is in flight.
#include "runtime/exec/upload.h"

#include "runtime/base/no_throw.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/pinned_buffer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

namespace cgc {
namespace {

/// Copies of this size reach the bandwidth of PCIe. Larger chunks would only pin more memory.
constexpr uint64_t kChunk = 4 << 20;
/// Several threads, because the memcpy of one thread is slower than PCIe.
constexpr unsigned kThreads = 4;

/// An upload that several threads work on.
struct Job {
  std::span<const UploadPiece> pieces;
  std::byte *buffer;
  uint64_t bytes;
  int device;
  std::atomic<uint64_t> next = 0; ///< Offset of the next chunk.
};

/// One thread's stream and staging buffers.
class Worker final {
public:
  Status run(Job &job) {
    CGC_ASSIGN_OR_RETURN(stream_, createStream());
    const Status copied = copyChunks(job);
    // Copies read the staging memory until here, also after a failure.
    const Status waited = CGC_CUDA(cudaStreamSynchronize(stream_.get()), "copy");
    return copied.isOk() ? waited : copied;
  }

private:
  Status copyChunks(Job &job) {
    const uint64_t staged = std::min(kChunk, job.bytes); // Pinning costs time by the page.
    for (Staging &s : staging_) {
      CGC_ASSIGN_OR_RETURN(s.memory, PinnedBuffer::allocate(staged));
      CGC_ASSIGN_OR_RETURN(s.sent, createEvent());
    }
    for (size_t i = 0;; ++i) {
      const uint64_t begin = job.next.fetch_add(kChunk);
      if (begin >= job.bytes)
        return Status::ok();
      const Staging &s = staging_[i % staging_.size()];
      const uint64_t size = std::min(kChunk, job.bytes - begin);
      CGC_TRY(CGC_CUDA(cudaEventSynchronize(s.sent.get()), "copy"));
      gather(job.pieces, begin, {s.memory.data(), size});
      CGC_TRY(CGC_CUDA(cudaMemcpyAsync(job.buffer + begin, s.memory.data(), size,
                                       cudaMemcpyHostToDevice, stream_.get()),
                       "copy"));
      CGC_TRY(CGC_CUDA(cudaEventRecord(s.sent.get(), stream_.get()), "copy"));
    }
  }

  struct Staging {
    PinnedBuffer memory;
    CudaEvent sent;
  };
  std::array<Staging, 2> staging_;
  CudaStream stream_;
};

Status work(Job &job) {
  const DeviceGuard guard(job.device);
  return noThrow([&] { return Worker().run(job); });
}

} // namespace

void gather(std::span<const UploadPiece> pieces, uint64_t begin, std::span<std::byte> to) {
  auto piece = std::partition_point(pieces.begin(), pieces.end(), [&](const UploadPiece &p) {
    return p.offset + p.bytes.size() <= begin;
  });
  uint64_t at = begin;
  const uint64_t end = begin + to.size();
  for (; piece != pieces.end() && piece->offset < end; ++piece) {
    const uint64_t from = std::max(at, piece->offset),
                   until = std::min(end, piece->offset + piece->bytes.size());
    std::memset(to.data() + (at - begin), 0, from - at);
    std::memcpy(to.data() + (from - begin), piece->bytes.data() + (from - piece->offset),
                until - from);
    at = until;
  }
  std::memset(to.data() + (at - begin), 0, end - at);
}

Status upload(std::span<const UploadPiece> pieces, std::byte *buffer, uint64_t bytes, int device) {
  Job job{pieces, buffer, bytes, device};
  const uint64_t chunks = (bytes + kChunk - 1) / kChunk;
  const auto threads =
      std::min<uint64_t>(chunks, std::clamp(std::thread::hardware_concurrency(), 1u, kThreads));
  std::vector<std::future<Status>> others; // Their destructors wait.
  for (uint64_t i = 1; i < threads; ++i)
    others.push_back(std::async(std::launch::async, [&job] { return work(job); }));
  Status status = chunks > 0 ? work(job) : Status::ok();
  for (auto &other : others)
    if (Status theirs = other.get(); status.isOk())
      status = std::move(theirs);
  return status;
}

} // namespace cgc

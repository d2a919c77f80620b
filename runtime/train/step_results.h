// StepResults: the outputs of steps in flight, which are copied to a ring of slots in host memory.
#pragma once

#include "runtime/train/pinned.h"
#include "runtime/train/trainer.h"

#include <deque>
#include <vector>

namespace cgc {

/// The ring and the results that nobody has taken. Not thread-safe.
class StepResults final {
public:
  /// `slots` slots for the outputs of the largest bucket of `entries`: of the loss only, or of all
  /// if `readsAll`. Pinned memory for a GPU. Steps that wait for other ranks end as those of
  /// `communicator` do, which is borrowed; null: there are none.
  static Result<StepResults> create(std::span<const Entry *const> entries, DeviceKind device,
                                    size_t slots, bool readsAll, Communicator *communicator);
  StepResults() = default;

  /// Waits until there is a free slot.
  Status makeRoom();
  /// The host memory of the next slot for output `index` of a bucket, if it is read back.
  std::optional<TensorView> view(const Bucket &bucket, size_t index) const;
  /// The step `number` was enqueued on `stream` with the views of the next slot.
  Status add(uint64_t number, const Bucket &bucket, cudaStream_t stream);

  /// Takes the results of the steps that are complete out of the ring.
  Status collect();
  /// Waits for all steps, then does the same.
  Status collectAll();
  std::vector<StepResult> take();
  /// Waits for the copies in flight and forgets all results.
  void clear();

  uint64_t nonFinite() const { return nonFinite_; }

private:
  struct Flight {
    uint64_t number;
    const Bucket *bucket;
    size_t slot;
  };
  std::byte *slotData(size_t slot) const;
  uint64_t offsetOf(const Bucket &bucket, size_t index) const;
  void finish(const Flight &flight);
  Status wait(const Flight &flight) const;

  DeviceKind device_ = DeviceKind::Cpu;
  size_t slots_ = 0;
  bool readsAll_ = false;
  Communicator *communicator_ = nullptr;
  std::vector<PinnedMemory> pinned_; ///< By slot, for a GPU.
  std::vector<std::byte> host_;      ///< The only slot on the host, where steps complete at once.
  size_t next_ = 0;                  ///< The next slot.
  std::deque<Flight> inFlight_;
  std::deque<StepResult> results_;
  uint64_t nonFinite_ = 0;
};

} // namespace cgc

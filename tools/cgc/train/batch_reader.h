// BatchReader: threads that copy the samples of the next batches while the device works.
#pragma once

#include "runtime/base/tensor_view.h"
#include "runtime/exec/buffer.h"
#include "runtime/exec/pinned_buffer.h"
#include "tools/cgc/train/dataset.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace cgc::tool {

struct BatchOptions {
  bool shuffle = false; ///< Each pass over the samples is in a random order of its own.
  uint64_t seed = 0;    ///< Of that order.
  uint64_t first = 0;   ///< The number of the first batch: those before it are left out.
  bool pinned = false;  ///< The memory is pinned for the current GPU.
  size_t rank = 0;      ///< Which part of the samples of a step it reads.
  size_t ranks = 1;     ///< The parts, each a batch.
  size_t slots = 2;     ///< The batches in memory at a time, at least 1.
  size_t threads = 1;   ///< How many copy a large batch, at least 1.
};

/// The order of the samples in a pass over `samples` samples: 0, 1, 2, ..., or with `shuffle` a
/// permutation that depends on `seed` and `pass` alone and is the same on every machine.
std::vector<size_t> sampleOrder(size_t samples, bool shuffle, uint64_t seed, uint64_t pass);

/// A batch in memory.
struct Batch {
  std::vector<TensorView>
      inputs;           ///< In the order of the data's inputs. They borrow from the reader.
  bool isFinite = true; ///< No input has a NaN or an infinity.
};

/// The batches of a dataset without end: pass after pass, each in order. The samples of a step are
/// those of all ranks, one batch after another. The samples at the end of a pass that do not fill a
/// batch of each rank are left out. The batch of a number depends on no other batch,
/// so that a training that is resumed sees the data that it would have seen.
class BatchReader final {
public:
  /// Starts a thread. `data` is borrowed. OutOfMemory if the memory cannot be had, Device if it
  /// cannot be pinned.
  static Result<std::unique_ptr<BatchReader>> create(const Dataset &data,
                                                     const BatchOptions &options);
  BatchReader(const BatchReader &) = delete;
  BatchReader &operator=(const BatchReader &) = delete;
  /// Stops the thread.
  ~BatchReader();

  /// Waits for the next batch. Its memory stays as it is until release(). At most
  /// BatchOptions::slots batches may be in use at a time.
  const Batch &next();
  /// The number of the batch that next() will return.
  uint64_t position() const { return options_.first + taken_; }
  /// Gives back the oldest batch that is in use.
  void release();

private:
  struct Slot {
    std::vector<PinnedBuffer> pinned; ///< By input, if the memory is pinned.
    std::vector<Buffer> pageable;     ///< By input, if it is not.
    Batch batch;
  };
  BatchReader(const Dataset &data, const BatchOptions &options) : data_(data), options_(options) {}
  Status allocate();
  void fillUntilStopped(std::stop_token stop);
  void fill(Slot &slot, uint64_t number);
  bool copyRows(Slot &slot, std::span<const size_t> samples, size_t firstRow) const;

  const Dataset &data_;
  const BatchOptions options_;
  std::vector<Slot> slots_;
  size_t batchBytes_ = 0;
  std::vector<size_t> order_;  ///< Of the pass `pass_`. Only the thread uses it.
  uint64_t pass_ = UINT64_MAX; ///< None yet.
  std::mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t filled_ = 0, taken_ = 0, released_ = 0; ///< Numbers of batches since the first.
  std::jthread thread_; ///< Declared last: joins before the other members are destroyed.
};

} // namespace cgc::tool

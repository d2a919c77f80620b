// BatchReader: a ring of slots between the thread that fills them and the one that takes them.
#include "tools/cgc/train/batch_reader.h"

#include "runtime/base/check.h"
#include "runtime/train/finite.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <numeric>
#include <random>

namespace cgc::tool {
namespace {

/// A thread copies at least as much: it takes longer than its start.
constexpr size_t kBytesPerThread = size_t(4) << 20;

} // namespace

std::vector<size_t> sampleOrder(size_t samples, bool shuffle, uint64_t seed, uint64_t pass) {
  std::vector<size_t> order(samples);
  std::iota(order.begin(), order.end(), size_t(0));
  if (!shuffle)
    return order;
  std::seed_seq seeds{uint32_t(seed), uint32_t(seed >> 32), uint32_t(pass), uint32_t(pass >> 32)};
  std::mt19937_64 random(seeds);
  // std::shuffle differs between implementations of the standard library.
  for (size_t i = samples; i > 1; --i)
    std::swap(order[i - 1], order[random() % i]);
  return order;
}

Result<std::unique_ptr<BatchReader>> BatchReader::create(const Dataset &data,
                                                         const BatchOptions &options) {
  CGC_CHECK(options.slots > 0 && options.threads > 0);
  std::unique_ptr<BatchReader> reader(new BatchReader(data, options));
  CGC_TRY(reader->allocate());
  // Signals must go to the main thread, which handles them; the new thread inherits this mask.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &previous);
  reader->thread_ = std::jthread(
      [at = reader.get()](std::stop_token stop) { at->fillUntilStopped(std::move(stop)); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return reader;
}

BatchReader::~BatchReader() = default;

Status BatchReader::allocate() {
  for (const IoTensor &input : data_.inputs())
    batchBytes_ += *tensorBytes(input.dtype, input.sizes);
  for (size_t i = 0; i < options_.slots; ++i) {
    Slot slot;
    for (const IoTensor &input : data_.inputs()) {
      const uint64_t bytes = *tensorBytes(input.dtype, input.sizes);
      std::byte *data = nullptr;
      if (options_.pinned) {
        CGC_ASSIGN_OR_RETURN(PinnedBuffer buffer, PinnedBuffer::allocate(bytes));
        data = slot.pinned.emplace_back(std::move(buffer)).data();
      } else {
        CGC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::allocate(DeviceKind::Cpu, bytes));
        data = slot.pageable.emplace_back(std::move(buffer)).data();
      }
      slot.batch.inputs.push_back({data, input.dtype, DeviceKind::Cpu, input.sizes, {}});
    }
    slots_.push_back(std::move(slot));
  }
  return Status::ok();
}

void BatchReader::fillUntilStopped(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return filled_ - released_ < slots_.size(); })) {
    Slot &slot = slots_[filled_ % slots_.size()];
    const uint64_t number = options_.first + filled_;
    lock.unlock();
    fill(slot, number);
    lock.lock();
    ++filled_;
    changed_.notify_all();
  }
}

void BatchReader::fill(Slot &slot, uint64_t number) {
  const auto batch = static_cast<size_t>(data_.inputs()[0].sizes[0]);
  const uint64_t perPass = data_.samples() / (batch * options_.ranks);
  const uint64_t first = (number % perPass * options_.ranks + options_.rank) * batch;
  if (number / perPass != pass_) {
    pass_ = number / perPass;
    order_ = sampleOrder(data_.samples(), options_.shuffle, options_.seed, pass_);
  }
  const std::span<const size_t> samples = std::span(order_).subspan(first, batch);
  const size_t parts =
      std::clamp<size_t>(std::min(batchBytes_ / kBytesPerThread, batch), 1, options_.threads);
  std::atomic<bool> isFinite = true;
  const auto copyPart = [&](size_t part) {
    const size_t begin = batch * part / parts, end = batch * (part + 1) / parts;
    if (!copyRows(slot, samples.subspan(begin, end - begin), begin))
      isFinite = false;
  };
  {
    std::vector<std::jthread> others;
    for (size_t part = 1; part < parts; ++part)
      others.emplace_back(copyPart, part);
    copyPart(0);
  }
  slot.batch.isFinite = isFinite;
}

/// Copies these samples to the batch's rows from `firstRow` on. Returns whether all are finite.
bool BatchReader::copyRows(Slot &slot, std::span<const size_t> samples, size_t firstRow) const {
  bool isFinite = true;
  for (size_t input = 0; input < data_.inputs().size(); ++input) {
    auto *data = static_cast<std::byte *>(slot.batch.inputs[input].data);
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto row = data_.row(input, samples[i]);
      isFinite &= allFinite(row, data_.inputs()[input].dtype);
      if (!row.empty())
        std::memcpy(data + (firstRow + i) * row.size(), row.data(), row.size());
    }
  }
  return isFinite;
}

const Batch &BatchReader::next() {
  std::unique_lock lock(mutex_);
  CGC_CHECK(taken_ - released_ < slots_.size());
  changed_.wait(lock, [&] { return filled_ > taken_; });
  return slots_[taken_++ % slots_.size()].batch;
}

void BatchReader::release() {
  std::lock_guard lock(mutex_);
  CGC_CHECK(released_ < taken_);
  ++released_;
  changed_.notify_all();
}

} // namespace cgc::tool

// Communicator: ranks joined by NCCL, watched by a thread that ends their collectives.
#include "runtime/exec/communicator.h"

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/base/no_throw.h"
#include "runtime/base/printable.h"
#include "runtime/base/rank_text.h"
#include "runtime/exec/buffer.h"
#include "runtime/exec/communicator_impl.h"
#include "runtime/exec/gpu.h"
#include "runtime/exec/nccl.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace cgc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How often the keeper asks NCCL for asynchronous errors while somebody waits.
constexpr milliseconds kPollPeriod{20};
/// How long the keeper lets a call finish before it aborts the communicator.
constexpr milliseconds kGracePeriod{100};
constexpr milliseconds kLongestTimeout = std::chrono::hours(24 * 365);

std::string kindText(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "an all-reduce";
  case CollectiveKind::AllGather:
    return "an all-gather";
  case CollectiveKind::ReduceScatter:
    return "a reduce-scatter";
  case CollectiveKind::Broadcast:
    return "a broadcast";
  }
  return "a collective";
}

/// The elements of a tensor for NCCL: `perElement` of `type` for each.
struct ElementType {
  nccl::DataType type;
  size_t perElement = 1;
};

/// Unsupported if NCCL does not compute the collective for this dtype.
Result<ElementType> elementType(CollectiveKind kind, Reduction reduction, DType dtype) {
  const bool reduces = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
  const auto refused = [&](const char *what) {
    return Status(Code::Unsupported, "NCCL computes no " + std::string(what) + " of " +
                                         std::string(dtypeName(dtype)) +
                                         "; convert the tensor to f32 or i32 before");
  };
  if (reduces && reduction == Reduction::Mean && !isFloating(dtype))
    return refused("mean");
  switch (dtype) {
  case DType::F32:
    return ElementType{nccl::DataType::F32};
  case DType::F16:
    return ElementType{nccl::DataType::F16};
  case DType::BF16:
    return ElementType{nccl::DataType::BF16};
  case DType::F64:
    return ElementType{nccl::DataType::F64};
  case DType::I64:
    return ElementType{nccl::DataType::I64};
  case DType::I32:
    return ElementType{nccl::DataType::I32};
  case DType::I8:
    return ElementType{nccl::DataType::I8};
  case DType::U8:
    return ElementType{nccl::DataType::U8};
  case DType::I16: // NCCL has none, but copies its bytes.
    if (reduces)
      return refused("reduction");
    return ElementType{nccl::DataType::U8, 2};
  case DType::Bool: // The maximum is a logical or.
    if (reduces && reduction != Reduction::Max)
      return refused("sum");
    return ElementType{nccl::DataType::U8};
  }
  return refused("collective");
}

nccl::Operation operationOf(Reduction reduction) {
  return reduction == Reduction::Sum    ? nccl::Operation::Sum
         : reduction == Reduction::Mean ? nccl::Operation::Avg
                                        : nccl::Operation::Max;
}

} // namespace

/// What a communicator shares with its keeper, the thread that joins it, ends its collectives after
/// an error or the timeout, and leaves it. The keeper makes all calls of NCCL that may wait for
/// other ranks, except for those that enqueue collectives, so that nobody else waits without bound.
struct CommunicatorState {
  Nccl nccl;
  CommunicatorOptions options;

  std::mutex mutex; ///< Of the members below.
  std::condition_variable changed;
  /// Null before the join, and as soon as the keeper aborts or destroys it.
  nccl::Comm comm = nullptr;
  Status failure; ///< The first one. The keeper then aborts the communicator.
  bool isJoined = false, isLeaving = false, hasEnded = false;
  bool isEnqueueing = false; ///< A caller is in NCCL.
  /// Of what a caller waits for, and until when.
  std::optional<Clock::time_point> deadline;
  std::string awaited;

  Status timeoutStatus() const {
    return {Code::Device,
            awaited + " did not complete within " + secondsText(options.timeout) +
                ": another rank has ended, hangs or computes something else; look at the output "
                "of all ranks"};
  }

  // The functions below need the mutex.
  void fail(const Status &why) {
    if (failure.isOk())
      failure = why;
    changed.notify_all();
  }
  /// Turns an asynchronous error into the failure.
  void poll() {
    if (!comm || !failure.isOk())
      return;
    nccl::Code error = nccl::Code::Success;
    if (const Status asked = nccl.status(nccl.ncclCommGetAsyncError(comm, &error), comm,
                                         "NCCL does not tell its state");
        !asked.isOk())
      fail(asked);
    else if (error != nccl::Code::InProgress)
      fail(nccl.status(error, comm, "a collective failed"));
  }

  void keep(const CommunicatorId &id);
};

/// The keeper's life.
void CommunicatorState::keep(const CommunicatorId &id) {
  // NCCL takes the current device for the rank's.
  if (options.device >= 0 && cudaSetDevice(options.device) != cudaSuccess)
    (void)cudaGetLastError(); // NCCL reports that there is none.
  nccl::Comm joined = nullptr;
  const nccl::Code code = nccl.ncclCommInitRank(&joined, options.ranks, id, options.rank);
  std::unique_lock lock(mutex);
  if (code == nccl::Code::Success)
    comm = joined;
  else
    fail(nccl.status(code, nullptr, "NCCL cannot join the ranks"));
  isJoined = true;
  changed.notify_all();
  while (failure.isOk() && !isLeaving) {
    if (!deadline) {
      changed.wait(lock);
      continue;
    }
    changed.wait_until(lock, std::min(*deadline, Clock::now() + kPollPeriod));
    poll();
    if (deadline && Clock::now() >= *deadline)
      fail(timeoutStatus());
  }
  // NCCL ends a call that waits for other ranks, but must not lose the communicator under one that
  // has hardly begun.
  changed.wait_for(lock, kGracePeriod, [&] { return !isEnqueueing; });
  const nccl::Comm ending = std::exchange(comm, nullptr);
  const bool aborts = !failure.isOk();
  lock.unlock();
  if (ending) // Nobody else uses it: callers look for the failure first.
    (void)(aborts ? nccl.ncclCommAbort(ending) : nccl.ncclCommDestroy(ending));
  lock.lock();
  hasEnded = true;
  changed.notify_all();
}

struct Communicator::Impl {
  std::shared_ptr<CommunicatorState> shared;
  std::thread keeper;

  /// Waits for the keeper's end as long as the timeout, and leaves it alone after that.
  ~Impl() {
    if (!keeper.joinable())
      return;
    std::unique_lock lock(shared->mutex);
    shared->isLeaving = true;
    shared->changed.notify_all();
    const bool hasEnded =
        shared->changed.wait_for(lock, shared->options.timeout, [&] { return shared->hasEnded; });
    lock.unlock();
    if (hasEnded)
      keeper.join();
    else
      keeper.detach(); // It shares ownership of all that it uses.
  }

  Status check() const {
    const std::lock_guard lock(shared->mutex);
    shared->poll();
    return shared->failure;
  }
  void fail(const Status &why) const {
    const std::lock_guard lock(shared->mutex);
    shared->fail(why);
  }

  /// Gathers the bytes of all ranks, in rank order, of which each gives as many.
  Status gather(Communicator &communicator, std::span<const std::byte> mine,
                std::vector<std::byte> &all);
};

namespace {

/// While it lives, the keeper ends the communicator on asynchronous errors and after the timeout.
/// Watches of one thread may be nested: the inner one ends first.
class Watch final {
public:
  Watch(CommunicatorState &shared, std::string awaited) : shared_(shared) {
    const std::lock_guard lock(shared_.mutex);
    outerAwaited_ = std::exchange(shared_.awaited, std::move(awaited));
    outerDeadline_ = std::exchange(shared_.deadline, Clock::now() + shared_.options.timeout);
    shared_.changed.notify_all();
  }
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;
  ~Watch() {
    const std::lock_guard lock(shared_.mutex);
    shared_.awaited = std::move(outerAwaited_);
    shared_.deadline = outerDeadline_;
    shared_.changed.notify_all();
  }

private:
  CommunicatorState &shared_;
  std::string outerAwaited_;
  decltype(CommunicatorState::deadline) outerDeadline_;
};

Status checkOptions(const CommunicatorOptions &o) {
  const auto wrong = [](const std::string &what) { return Status(Code::Usage, what); };
  if (o.ranks < 1)
    return wrong("a communicator has at least 1 rank, not " + std::to_string(o.ranks));
  if (o.rank < 0 || o.rank >= o.ranks)
    return wrong("rank " + std::to_string(o.rank) + " is not one of the " +
                 std::to_string(o.ranks) + " ranks; count them from 0");
  if (o.device < -1)
    return wrong("the GPU of a rank is an index or -1 for none, not " + std::to_string(o.device));
  if (o.timeout < milliseconds(1) || o.timeout > kLongestTimeout)
    return wrong("the timeout of a communicator is from 1 ms to a year, not " +
                 std::to_string(o.timeout.count()) + " ms");
  return Status::ok();
}

} // namespace

Result<CommunicatorId> Communicator::makeId(const std::string &ncclPath) {
  return noThrow([&]() -> Result<CommunicatorId> {
    CGC_ASSIGN_OR_RETURN(const Nccl nccl, Nccl::open(ncclPath));
    CommunicatorId id;
    CGC_TRY(nccl.status(nccl.ncclGetUniqueId(&id), nullptr, "NCCL cannot make an id"));
    return id;
  });
}

Result<std::shared_ptr<Communicator>> Communicator::create(const CommunicatorId &id,
                                                           CommunicatorOptions options) {
  return noThrow([&]() -> Result<std::shared_ptr<Communicator>> {
    CGC_TRY(checkOptions(options));
    if (options.device >= 0)
      CGC_TRY(findGpu(options.device, {"a rank of several needs a GPU of its own",
                                       "start at most one rank for each GPU"})
                  .status());
    const auto shared = std::make_shared<CommunicatorState>();
    CGC_ASSIGN_OR_RETURN(shared->nccl, Nccl::open(options.ncclPath));
    shared->options = std::move(options);
    auto impl = std::make_unique<Impl>();
    impl->shared = shared;
    impl->keeper = std::thread([shared, id] { shared->keep(id); });
    std::unique_lock lock(shared->mutex);
    if (!shared->changed.wait_for(lock, shared->options.timeout,
                                  [&] { return shared->isJoined; })) {
      const CommunicatorOptions &o = shared->options;
      shared->fail({Code::Device,
                    "rank " + std::to_string(o.rank) + " waited " + secondsText(o.timeout) +
                        " for the other ranks of " + std::to_string(o.ranks) +
                        " to join; check that all were started, run, and reach each other over "
                        "the network (NCCL_SOCKET_IFNAME chooses the interface)"});
      impl->keeper.detach(); // It waits in NCCL, which has no way to end that.
    }
    const Status failure = shared->failure;
    lock.unlock();
    if (!failure.isOk())
      return failure;
    return std::shared_ptr<Communicator>(new Communicator(std::move(impl)));
  });
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

int Communicator::rank() const {
  return impl_->shared->options.rank;
}
int Communicator::ranks() const {
  return impl_->shared->options.ranks;
}
int Communicator::device() const {
  return impl_->shared->options.device;
}

Status Communicator::Impl::gather(Communicator &communicator, std::span<const std::byte> mine,
                                  std::vector<std::byte> &all) {
  const CommunicatorOptions &o = shared->options;
  const DeviceGuard guard(o.device);
  const DeviceKind kind = o.device < 0 ? DeviceKind::Cpu : DeviceKind::Cuda;
  all.resize(mine.size() * o.ranks);
  CGC_ASSIGN_OR_RETURN(const Buffer operand, Buffer::allocate(kind, mine.size()));
  CGC_ASSIGN_OR_RETURN(const Buffer result, Buffer::allocate(kind, all.size()));
  const CollectivePart part{operand.data(), result.data(), mine.size(), DType::U8};
  if (o.device < 0) {
    std::ranges::copy(mine, operand.data());
    CGC_TRY(enqueueCollective(communicator, CollectiveKind::AllGather, {}, {&part, 1}, nullptr));
    std::copy_n(result.data(), all.size(), all.data());
    return Status::ok();
  }
  const std::string what = "the comparison of the ranks";
  CGC_ASSIGN_OR_RETURN(const CudaStream stream, createStream());
  CGC_ASSIGN_OR_RETURN(const CudaEvent event, createEvent());
  CGC_TRY(CGC_CUDA(cudaMemcpyAsync(operand.data(), mine.data(), mine.size(), cudaMemcpyHostToDevice,
                                   stream.get()),
                   what));
  CGC_TRY(enqueueCollective(communicator, CollectiveKind::AllGather, {}, {&part, 1}, stream.get()));
  CGC_TRY(CGC_CUDA(cudaEventRecord(event.get(), stream.get()), what));
  CGC_TRY(waitWithin(communicator, event.get(), what));
  CGC_TRY(CGC_CUDA(
      cudaMemcpyAsync(all.data(), result.data(), all.size(), cudaMemcpyDeviceToHost, stream.get()),
      what));
  return CGC_CUDA(cudaStreamSynchronize(stream.get()), what);
}

namespace {

/// The bytes of a fact that messages show.
constexpr size_t kShownBytes = 160;

/// `value` for messages, in at most kShownBytes bytes. What is too long is cut, with its hash.
std::string shown(const std::string &value) {
  std::string text = "'" + printable(value) + "'";
  if (text.size() <= kShownBytes)
    return text;
  char hash[32];
  std::snprintf(hash, sizeof(hash), "...' (hash %016llx)",
                static_cast<unsigned long long>(hash64(std::as_bytes(std::span(value)))));
  size_t size = kShownBytes - std::strlen(hash);
  while (size && (text[size] & 0xc0) == 0x80) // Not within a character.
    --size;
  return text.substr(0, size) + hash;
}

/// "rank 0 has 'a'; ranks 1, 3 have 'b'".
std::string groupsText(const std::vector<uint64_t> &hashes, const std::vector<std::string> &texts) {
  std::vector<uint64_t> values; // In the order of their first rank.
  for (const uint64_t hash : hashes)
    if (std::ranges::find(values, hash) == values.end())
      values.push_back(hash);
  std::string text;
  for (const uint64_t value : values) {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < hashes.size(); ++rank)
      if (hashes[rank] == value)
        ranks.push_back(int(rank));
    text += (text.empty() ? "" : "; ") + ranksText(ranks) +
            (ranks.size() == 1 ? " has " : " have ") + texts[ranks[0]];
  }
  return text;
}

} // namespace

Status Communicator::agree(std::span<const SharedFact> facts) {
  return noThrow([&]() -> Status {
    // The names first: the hashes of other facts could have another size.
    std::string names;
    for (const SharedFact &fact : facts)
      names += fact.name + '\0';
    std::vector<uint64_t> mine = {hash64(std::as_bytes(std::span(names)))};
    for (const SharedFact &fact : facts)
      mine.push_back(hash64(std::as_bytes(std::span(fact.value))));
    // The values of all ranks for the hashes mine[begin, end), one rank after the other.
    const auto gatherHashes = [&](size_t begin, size_t end) -> Result<std::vector<uint64_t>> {
      std::vector<std::byte> bytes;
      CGC_TRY(
          impl_->gather(*this, std::as_bytes(std::span(mine).subspan(begin, end - begin)), bytes));
      std::vector<uint64_t> all(bytes.size() / sizeof(uint64_t));
      std::memcpy(all.data(), bytes.data(), bytes.size());
      return all;
    };
    CGC_ASSIGN_OR_RETURN(const std::vector<uint64_t> nameHashes, gatherHashes(0, 1));
    if (std::ranges::count(nameHashes, nameHashes[0]) != ranks())
      return Status(Code::Usage,
                    "the ranks compare different facts (" +
                        groupsText(nameHashes, std::vector<std::string>(ranks(), "others")) +
                        "); run the same version of cgc on all ranks");
    if (facts.empty())
      return Status::ok();
    CGC_ASSIGN_OR_RETURN(const std::vector<uint64_t> hashes, gatherHashes(1, mine.size()));
    for (size_t i = 0; i < facts.size(); ++i) {
      std::vector<uint64_t> ofFact;
      for (int rank = 0; rank < ranks(); ++rank)
        ofFact.push_back(hashes[rank * facts.size() + i]);
      if (std::ranges::count(ofFact, ofFact[0]) == ranks())
        continue;
      // All ranks found the same difference, so that all gather the texts.
      std::array<std::byte, kShownBytes> text = {};
      const std::string value = shown(facts[i].value);
      std::memcpy(text.data(), value.data(), value.size());
      std::vector<std::byte> bytes;
      CGC_TRY(impl_->gather(*this, text, bytes));
      std::vector<std::string> texts;
      for (int rank = 0; rank < ranks(); ++rank) {
        const auto *const begin = reinterpret_cast<const char *>(bytes.data()) + rank * kShownBytes;
        texts.emplace_back(begin, strnlen(begin, kShownBytes));
      }
      return Status(Code::Usage, "the ranks differ in " + facts[i].name + ": " +
                                     groupsText(ofFact, texts) + "; start all ranks with the same");
    }
    return Status::ok();
  });
}

Result<uint8_t> Communicator::largest(uint8_t own) {
  return noThrow([&]() -> Result<uint8_t> {
    const auto mine = std::byte(own);
    std::vector<std::byte> all;
    CGC_TRY(impl_->gather(*this, {&mine, 1}, all));
    return uint8_t(std::ranges::max(all));
  });
}

Status Communicator::check() {
  return noThrow([&] { return impl_->check(); });
}

void Communicator::abort(const Status &why) {
  impl_->fail(why.isOk() ? Status(Code::Failed, "the communicator was aborted") : why);
}

Communicator::Impl &implOf(Communicator &communicator) {
  return *communicator.impl_;
}

Status enqueueCollective(Communicator &communicator, CollectiveKind kind, Reduction reduction,
                         std::span<const CollectivePart> parts, cudaStream_t stream,
                         std::optional<int> root) {
  CommunicatorState &shared = *implOf(communicator).shared;
  const Nccl &nccl = shared.nccl;
  std::vector<ElementType> types;
  for (const CollectivePart &part : parts) {
    CGC_ASSIGN_OR_RETURN(types.emplace_back(), elementType(kind, reduction, part.dtype));
  }
  const Watch watch(shared, kindText(kind));
  nccl::Comm comm = nullptr;
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.failure.isOk())
      return shared.failure;
    comm = shared.comm;
    shared.isEnqueueing = true;
  }
  const auto enqueue = [&](const CollectivePart &part, const ElementType &element) {
    const size_t count = part.operandElements * element.perElement;
    switch (kind) {
    case CollectiveKind::AllReduce:
      if (root)
        return nccl.ncclReduce(part.operand, part.result, count, element.type,
                               operationOf(reduction), *root, comm, stream);
      return nccl.ncclAllReduce(part.operand, part.result, count, element.type,
                                operationOf(reduction), comm, stream);
    case CollectiveKind::AllGather:
      return nccl.ncclAllGather(part.operand, part.result, count, element.type, comm, stream);
    case CollectiveKind::ReduceScatter:
      CGC_CHECK(count % shared.options.ranks == 0 && "each rank has a part of the same size");
      return nccl.ncclReduceScatter(part.operand, part.result, count / shared.options.ranks,
                                    element.type, operationOf(reduction), comm, stream);
    case CollectiveKind::Broadcast:
      return nccl.ncclBroadcast(part.operand, part.result, count, element.type, root.value_or(0),
                                comm, stream);
    }
    return nccl::Code::InvalidArgument;
  };
  nccl::Code code = nccl.ncclGroupStart();
  if (code == nccl::Code::Success) {
    for (size_t i = 0; i < parts.size() && code == nccl::Code::Success; ++i)
      code = enqueue(parts[i], types[i]);
    const nccl::Code ended = nccl.ncclGroupEnd();
    if (code == nccl::Code::Success)
      code = ended;
  }
  const std::lock_guard lock(shared.mutex);
  shared.isEnqueueing = false;
  shared.changed.notify_all();
  if (code != nccl::Code::Success) // NCCL's text of the error may be that of an abort.
    shared.fail(nccl.status(code, shared.comm, "NCCL cannot run " + kindText(kind)));
  else if (shared.options.device < 0)
    shared.poll(); // It has run.
  return shared.failure;
}

Status within(Communicator &communicator, const std::string &what,
              const std::function<Status()> &body) {
  const Communicator::Impl &impl = implOf(communicator);
  const Watch watch(*impl.shared, what);
  const Status status = body();
  // NCCL's reason says more than what failed behind it.
  Status failure = impl.check();
  return failure.isOk() ? status : failure;
}

Status waitWithin(Communicator &communicator, cudaEvent_t event, const std::string &what) {
  return within(communicator, what, [&]() -> Status {
    Status waited = CGC_CUDA(cudaEventSynchronize(event), "cannot wait for " + what);
    if (!waited.isOk())
      communicator.abort(waited);
    return waited;
  });
}

} // namespace cgc

// A stand-in for NCCL, for tests without a GPU. Ranks are processes or threads of one host, which
// meet in a file of shared memory.
//
// On a stream, a collective is a host function, found in the program, so that it runs and is
// captured as the work of the fake GPU is. As in NCCL, a communicator runs its collectives in the
// order of their calls, on whatever streams. On the null stream it runs at once, on host memory.
//
// Floats are summed in rank order in f32 (f64 in f64) and rounded once; ncclAvg multiplies the sum
// by 1/ranks. Ranks whose calls differ all get an asynchronous error that names both.
//
// NCCL_TEST_FAULT is a list like "1:3:hang,0:2:delay-20": on that rank, at that collective or group
// of collectives, counted from 1 for each communicator as they run:
//   error     The rank fails with an asynchronous error, and so do ranks that wait for it.
//   delay-MS  The rank is late by so many milliseconds.
//   hang      The rank does nothing until it is aborted; others wait for it.
//   die       The process is killed.
//   refuse    The call itself fails; counted as they are called.
// NCCL_TEST_VERSION replaces the version.
#include "runtime/exec/nccl.h"
#include "runtime/kernels/reference_elements.h"
#include "tests/fake_cuda/exported_functions.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace fs = std::filesystem;
using cgc::nccl::Code;
using cgc::nccl::Comm;
using cgc::nccl::DataType;
using cgc::nccl::Operation;
using cgc::nccl::UniqueId;
using cgc::reference::BF16;
using cgc::reference::F16;

namespace {

constexpr int kMostRanks = 64;
constexpr size_t kChunkBytes = size_t(256) << 10;

enum class Kind : int { AllReduce, AllGather, ReduceScatter, Broadcast, Reduce };
/// What has to be equal on all ranks.
struct Call {
  Kind kind;
  DataType type;
  Operation operation;
  int root;
  uint64_t count; ///< As NCCL counts: of the operand, but of the result for ReduceScatter.
  bool operator==(const Call &) const = default;
};
struct Collective {
  Call call;
  const void *operand;
  void *result;
};

struct RankArea {
  std::atomic<uint64_t> phase; ///< How often the rank has come to a meeting.
  std::atomic<bool> hasFailed;
  Call call;
  alignas(64) std::byte data[kChunkBytes];
};
/// The content of the file.
struct SharedFile {
  std::atomic<int> ranks, joined;
  std::atomic<bool> isTaken[kMostRanks];
  RankArea areas[]; ///< One for each rank.
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

size_t sizeOf(DataType type) {
  constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes[int(type)];
}

std::string textOf(const Call &call) {
  constexpr const char *kKinds[] = {"all-reduce", "all-gather", "reduce-scatter", "broadcast",
                                    "reduce"};
  constexpr const char *kTypes[] = {"i8",  "u8",  "i32", "u32", "i64",
                                    "u64", "f16", "f32", "f64", "bf16"};
  constexpr const char *kOperations[] = {"sum", "product", "maximum", "minimum", "average"};
  std::string text = kKinds[int(call.kind)];
  if (call.kind != Kind::AllGather && call.kind != Kind::Broadcast)
    text += std::string(" (") + kOperations[int(call.operation)] + ")";
  text += " of " + std::to_string(call.count) + " " + kTypes[int(call.type)];
  if (call.kind == Kind::Reduce || call.kind == Kind::Broadcast)
    text += " by rank " + std::to_string(call.root);
  return text;
}

/// The folder of the shared files and the beginning of their names.
std::string folder() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path().string();
}
std::string prefix() {
  return "cgc-nccl-" + std::to_string(getuid()) + "-";
}

/// Removes files of ranks that are gone: nobody has locked them.
void removeOldFiles() {
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder(), error)) {
    if (!entry.path().filename().string().starts_with(prefix()))
      continue;
    const int fd = open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0)
      continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
      unlink(entry.path().c_str());
    close(fd);
  }
}

/// The files of communicators that not all ranks have joined. They are removed at a normal end.
struct PendingFiles {
  std::mutex mutex;
  std::set<std::string> paths;
  ~PendingFiles() {
    for (const std::string &path : paths)
      unlink(path.c_str());
  }
} pendingFiles;

struct Fault {
  int rank = 0;
  uint64_t nth = 0;
  std::string what;
};
std::vector<Fault> faultsOf(int rank) {
  std::vector<Fault> faults;
  const char *const text = getenv("NCCL_TEST_FAULT");
  std::istringstream list(text ? text : "");
  for (std::string item; std::getline(list, item, ',');) {
    Fault fault;
    char colon = 0, colon2 = 0;
    std::istringstream in(item);
    if (!(in >> fault.rank >> colon >> fault.nth >> colon2 >> fault.what)) {
      std::fprintf(stderr, "NCCL_TEST_FAULT: '%s' is not rank:nth:what\n", item.c_str());
      std::abort();
    }
    if (fault.rank == rank)
      faults.push_back(fault);
  }
  return faults;
}

/// The fake GPU of the program; null if it has none.
const cgc::test::fake_cuda::ExportedFunctions *fakeCuda() {
  static const auto *const functions = static_cast<const cgc::test::fake_cuda::ExportedFunctions *>(
      dlsym(RTLD_DEFAULT, cgc::test::fake_cuda::kExportedFunctionsSymbol));
  return functions;
}

thread_local std::string lastError;
Code refuse(Code code, std::string text) {
  lastError = std::move(text);
  return code;
}

template <class T> using Sum = std::conditional_t<cgc::reference::kIsHalf<T>, float, T>;
template <class T> Sum<T> load(T value) {
  if constexpr (cgc::reference::kIsHalf<T>)
    return cgc::reference::toFloat(value);
  else
    return value;
}
template <class T> T store(Sum<T> value) {
  if constexpr (cgc::reference::kIsHalf<T>)
    return cgc::reference::fromFloat<T>(value);
  else
    return value;
}

/// Reduces the `count` elements at the same place of each rank's data.
template <class T>
void reduce(const std::vector<const std::byte *> &data, size_t count, Operation operation,
            void *result) {
  for (size_t i = 0; i < count; ++i) {
    Sum<T> sum = {};
    for (size_t rank = 0; rank < data.size(); ++rank) {
      T element;
      std::memcpy(&element, data[rank] + i * sizeof(T), sizeof(T));
      const Sum<T> value = load(element);
      if (rank == 0)
        sum = value;
      else if (operation == Operation::Max)
        sum = value > sum || value != value ? value : sum;
      else if constexpr (std::is_integral_v<T>)
        sum = T(uint64_t(sum) + uint64_t(value)); // Wraps.
      else
        sum += value;
    }
    if constexpr (!std::is_integral_v<T>)
      if (operation == Operation::Avg)
        sum *= Sum<T>(1) / Sum<T>(data.size());
    const T rounded = store<T>(sum);
    std::memcpy(static_cast<std::byte *>(result) + i * sizeof(T), &rounded, sizeof(T));
  }
}

void reduce(DataType type, const std::vector<const std::byte *> &data, size_t count,
            Operation operation, void *result) {
  switch (type) {
  case DataType::I8:
    return reduce<int8_t>(data, count, operation, result);
  case DataType::U8:
    return reduce<uint8_t>(data, count, operation, result);
  case DataType::I32:
    return reduce<int32_t>(data, count, operation, result);
  case DataType::U32:
    return reduce<uint32_t>(data, count, operation, result);
  case DataType::I64:
    return reduce<int64_t>(data, count, operation, result);
  case DataType::U64:
    return reduce<uint64_t>(data, count, operation, result);
  case DataType::F16:
    return reduce<F16>(data, count, operation, result);
  case DataType::F32:
    return reduce<float>(data, count, operation, result);
  case DataType::F64:
    return reduce<double>(data, count, operation, result);
  case DataType::BF16:
    return reduce<BF16>(data, count, operation, result);
  }
}

} // namespace

struct cgc::nccl::ncclComm {
  int rank = 0, ranks = 0, fd = -1;
  SharedFile *file = nullptr;
  std::vector<Fault> faults;

  std::atomic<bool> isAborted = false;
  std::atomic<int> graphNodes = 0; ///< Captured launches that a graph holds.
  std::atomic<Code> error = Code::Success;
  std::mutex mutex;
  std::string errorText;

  uint64_t called = 0, ran = 0;
  /// The end of the last collective, on `lastStream` and in a capture if its id is not 0.
  cudaEvent_t lastEvent = nullptr;
  cudaStream_t lastStream = nullptr;
  unsigned long long lastCapture = 0;

  ~ncclComm() {
    if (file)
      munmap(file, bytes(ranks));
    if (fd >= 0)
      close(fd);
  }
  static size_t bytes(int ranks) { return sizeof(SharedFile) + ranks * sizeof(RankArea); }
  RankArea &area(int of) const { return file->areas[of]; }

  void fail(Code code, const std::string &text) {
    const std::lock_guard lock(mutex);
    if (error == Code::Success) {
      errorText = text;
      error = code;
    }
  }
  const Fault *faultAt(uint64_t nth) const {
    for (const Fault &fault : faults)
      if (fault.nth == nth)
        return &fault;
    return nullptr;
  }

  /// Waits until `isDone`. False if the rank is aborted before.
  template <class Condition> bool wait(const Condition &isDone) const {
    for (int i = 0; !isDone(); ++i) {
      if (isAborted)
        return false;
      if (i < 100)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
  }
  /// Waits until all ranks have come to this meeting. False if this rank is aborted or another one
  /// has failed.
  bool meet() {
    const uint64_t phase = area(rank).phase.load() + 1;
    area(rank).phase.store(phase);
    for (int other = 0; other < ranks; ++other) {
      RankArea &theirs = area(other);
      if (!wait([&] { return theirs.phase >= phase || theirs.hasFailed; }))
        return false;
      if (theirs.phase < phase) {
        fail(Code::RemoteError, "rank " + std::to_string(other) + " failed");
        return false;
      }
    }
    return true;
  }

  /// Whether the fault lets the rank go on.
  bool suffer(const Fault &fault) {
    if (fault.what == "error") {
      fail(Code::SystemError, "the fault that the test asked for");
      area(rank).hasFailed = true;
      return false;
    }
    if (fault.what == "hang")
      return wait([] { return false; });
    if (fault.what == "die")
      kill(getpid(), SIGKILL);
    if (fault.what.starts_with("delay-"))
      std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(fault.what.c_str() + 6)));
    return true;
  }

  void run(const std::vector<Collective> &collectives) {
    if (isAborted || error != Code::Success)
      return;
    ++ran;
    if (const Fault *fault = faultAt(ran); fault && !suffer(*fault))
      return;
    for (const Collective &collective : collectives)
      if (!run(collective))
        return;
  }

  bool run(const Collective &collective) {
    const Call &call = collective.call;
    const size_t size = sizeOf(call.type);
    const bool scatters = call.kind == Kind::ReduceScatter;
    const size_t most = kChunkBytes / size / (scatters ? ranks : 1);
    const auto *const operand = static_cast<const std::byte *>(collective.operand);
    auto *const result = static_cast<std::byte *>(collective.result);
    RankArea &mine = area(rank);
    size_t at = 0;
    do {
      const size_t count = std::min<size_t>(most, call.count - at), bytes = count * size;
      mine.call = call;
      // For a reduce-scatter, the parts of all ranks, else one part.
      for (int part = 0; part < (scatters ? ranks : 1); ++part)
        if (call.kind != Kind::Broadcast || rank == call.root)
          std::memcpy(mine.data + part * bytes, operand + (part * call.count + at) * size, bytes);
      if (!meet())
        return false;
      for (int other = 1; other < ranks; ++other)
        if (area(other).call != area(0).call) {
          fail(Code::InvalidUsage, "rank 0 calls " + textOf(area(0).call) + ", and rank " +
                                       std::to_string(other) + " " + textOf(area(other).call));
          return false;
        }
      std::vector<const std::byte *> data;
      for (int other = 0; other < ranks; ++other)
        data.push_back(area(other).data + (scatters ? rank * bytes : 0));
      if (call.kind == Kind::AllGather)
        for (int other = 0; other < ranks; ++other)
          std::memcpy(result + (other * call.count + at) * size, data[other], bytes);
      else if (call.kind == Kind::Broadcast)
        std::memmove(result + at * size, data[call.root], bytes);
      else if (call.kind == Kind::Reduce && rank != call.root) // A reader of it shows.
        std::memset(result + at * size, 0xff, bytes);
      else
        reduce(call.type, data, count, call.operation, result + at * size);
      if (!meet())
        return false;
      at += count;
    } while (at < call.count);
    return true;
  }
};

namespace {

using CommOwner = std::shared_ptr<cgc::nccl::ncclComm>;

/// The communicators that were neither destroyed nor aborted.
struct Registry {
  std::mutex mutex;
  std::map<Comm, CommOwner> comms;

  CommOwner find(Comm comm) {
    const std::lock_guard lock(mutex);
    const auto at = comms.find(comm);
    return at == comms.end() ? nullptr : at->second;
  }
  CommOwner take(Comm comm) {
    const std::lock_guard lock(mutex);
    const auto node = comms.extract(comm);
    return node ? node.mapped() : nullptr;
  }
};
Registry &registry() {
  static auto *const object = new Registry; // Threads may outlive main().
  return *object;
}
Code unknown() {
  return refuse(Code::InvalidArgument, "the communicator does not exist, or not any more");
}

/// The collectives of one group on one stream.
struct Launch {
  CommOwner comm;
  cudaStream_t stream;
  std::vector<Collective> collectives;
};

Code enqueue(Launch group) {
  cgc::nccl::ncclComm &comm = *group.comm;
  ++comm.called;
  if (const Fault *fault = comm.faultAt(comm.called); fault && fault->what == "refuse")
    return refuse(Code::SystemError, "the refusal that the test asked for");
  if (!group.stream) {
    comm.run(group.collectives);
    return Code::Success;
  }
  const auto *const cuda = fakeCuda();
  if (!cuda)
    return refuse(Code::UnhandledCudaError, "the program exports no fake GPU");
  const cudaStream_t stream = group.stream;
  bool isOk = true;
  const auto check = [&](cudaError_t code) { isOk = isOk && code == cudaSuccess; };
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long capture = 0;
  cudaGraph_t graph = nullptr;
  check(
      cuda->cudaStreamGetCaptureInfo(stream, &status, &capture, &graph, nullptr, nullptr, nullptr));
  const bool isCaptured = status == cudaStreamCaptureStatusActive;
  if (!isCaptured)
    capture = 0;
  if (!comm.lastEvent)
    check(cuda->cudaEventCreateWithFlags(&comm.lastEvent, cudaEventDisableTiming));
  else if (comm.lastStream != stream && comm.lastCapture == capture)
    check(cuda->cudaStreamWaitEvent(stream, comm.lastEvent, 0));
  auto *const launch = new Launch(std::move(group));
  if (isCaptured) {
    ++comm.graphNodes;
    cudaUserObject_t object = nullptr;
    check(cuda->cudaUserObjectCreate(
        &object, launch,
        [](void *data) {
          auto *const captured = static_cast<Launch *>(data);
          --captured->comm->graphNodes;
          delete captured;
        },
        1, cudaUserObjectNoDestructorSync));
    check(cuda->cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    check(cuda->cudaLaunchHostFunc(
        stream,
        [](void *data) {
          const auto *const captured = static_cast<Launch *>(data);
          captured->comm->run(captured->collectives);
        },
        launch));
  } else {
    check(cuda->cudaLaunchHostFunc(
        stream,
        [](void *data) {
          const std::unique_ptr<Launch> owned(static_cast<Launch *>(data));
          owned->comm->run(owned->collectives);
        },
        launch));
  }
  check(cuda->cudaEventRecord(comm.lastEvent, stream));
  comm.lastStream = stream;
  comm.lastCapture = capture;
  return isOk ? Code::Success : refuse(Code::UnhandledCudaError, "a call of CUDA failed");
}

/// The group of this thread.
struct Group {
  int depth = 0;
  std::vector<Launch> launches; ///< One for each communicator.
};
thread_local Group group;

Code endGroup() {
  Code result = Code::Success;
  for (Launch &launch : std::exchange(group.launches, {}))
    if (const Code code = enqueue(std::move(launch)); result == Code::Success)
      result = code;
  return result;
}

Code add(Comm handle, const Collective &collective, cudaStream_t stream) {
  const CommOwner comm = registry().find(handle);
  if (!comm)
    return unknown();
  const Call &call = collective.call;
  if (call.type < DataType::I8 || call.type > DataType::BF16 || call.root < 0 ||
      call.root >= comm->ranks || (call.count && (!collective.operand || !collective.result)))
    return refuse(Code::InvalidArgument, "an argument is invalid");
  if (call.operation == Operation::Avg && call.type <= DataType::U64)
    return refuse(Code::InvalidArgument, "this stand-in averages floats only");
  auto launch = std::ranges::find(group.launches, comm, &Launch::comm);
  if (launch == group.launches.end())
    launch = group.launches.insert(launch, Launch{comm, stream, {}});
  else if (launch->stream != stream)
    return refuse(Code::InvalidUsage, "this stand-in takes one stream for a group");
  launch->collectives.push_back(collective);
  return group.depth ? Code::Success : endGroup();
}

} // namespace

EXPORT Code ncclGetVersion(int *version) {
  const char *const text = getenv("NCCL_TEST_VERSION");
  *version = text ? std::atoi(text) : 22809;
  return Code::Success;
}

EXPORT Code ncclGetUniqueId(UniqueId *id) {
  removeOldFiles();
  std::random_device random;
  char name[sizeof(UniqueId)] = {};
  std::snprintf(name, sizeof(name), "%s/%s%08x%08x", folder().c_str(), prefix().c_str(), random(),
                random());
  std::memcpy(id, name, sizeof(name));
  return Code::Success;
}

EXPORT Code ncclCommInitRank(Comm *result, int ranks, UniqueId id, int rank) {
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
    return refuse(Code::InvalidArgument, "rank or number of ranks is out of range");
  const std::string path(reinterpret_cast<const char *>(id.data()),
                         strnlen(reinterpret_cast<const char *>(id.data()), id.size()));
  if (!path.starts_with(folder() + "/" + prefix()))
    return refuse(Code::InvalidArgument, "the id is of another library");
  const auto comm = std::make_shared<cgc::nccl::ncclComm>();
  comm->rank = rank;
  comm->ranks = ranks;
  comm->faults = faultsOf(rank);
  {
    const std::lock_guard lock(pendingFiles.mutex);
    pendingFiles.paths.insert(path);
  }
  struct stat info = {};
  do { // The lock keeps removeOldFiles() away, unless that was faster.
    if (comm->fd >= 0)
      close(comm->fd);
    comm->fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (comm->fd < 0 || flock(comm->fd, LOCK_SH) != 0 || fstat(comm->fd, &info) != 0)
      return refuse(Code::SystemError, "cannot open " + path);
  } while (info.st_nlink == 0);
  const size_t bytes = cgc::nccl::ncclComm::bytes(ranks);
  if (size_t(info.st_size) < bytes && ftruncate(comm->fd, off_t(bytes)) != 0)
    return refuse(Code::SystemError, "cannot resize " + path);
  void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, comm->fd, 0);
  if (memory == MAP_FAILED)
    return refuse(Code::SystemError, "cannot map " + path);
  SharedFile &file = *(comm->file = static_cast<SharedFile *>(memory));
  int known = 0;
  if (!file.ranks.compare_exchange_strong(known, ranks) && known != ranks)
    return refuse(Code::InvalidArgument, "another rank joins " + std::to_string(known) + " ranks");
  if (file.isTaken[rank].exchange(true))
    return refuse(Code::InvalidUsage, "rank " + std::to_string(rank) + " has joined already");
  if (++file.joined == ranks)
    unlink(path.c_str()); // All have it.
  (void)comm->wait([&] { return file.joined == ranks; });
  {
    const std::lock_guard lock(pendingFiles.mutex);
    pendingFiles.paths.erase(path);
  }
  const std::lock_guard lock(registry().mutex);
  registry().comms.emplace(comm.get(), comm);
  *result = comm.get();
  return Code::Success;
}

EXPORT Code ncclCommDestroy(Comm handle) {
  const CommOwner comm = registry().take(handle);
  if (!comm)
    return unknown();
  if (comm->graphNodes) { // NCCL would wait for ever.
    std::fprintf(stderr, "ncclCommDestroy: a graph still has collectives of the communicator\n");
    std::abort();
  }
  if (comm->lastEvent)
    (void)fakeCuda()->cudaEventDestroy(comm->lastEvent);
  return Code::Success;
}

EXPORT Code ncclCommAbort(Comm handle) {
  const CommOwner comm = registry().take(handle);
  if (!comm)
    return unknown();
  comm->isAborted = true;
  if (comm->lastEvent)
    (void)fakeCuda()->cudaEventDestroy(comm->lastEvent);
  return Code::Success;
}

EXPORT Code ncclCommGetAsyncError(Comm handle, Code *error) {
  const CommOwner comm = registry().find(handle);
  if (!comm)
    return unknown();
  *error = comm->error;
  return Code::Success;
}

EXPORT const char *ncclGetErrorString(Code code) {
  constexpr const char *kTexts[] = {"no error",       "unhandled cuda error", "system error",
                                    "internal error", "invalid argument",     "invalid usage",
                                    "remote error",   "in progress"};
  return kTexts[int(code)];
}

EXPORT const char *ncclGetLastError(Comm handle) {
  const CommOwner comm = registry().find(handle);
  return comm && comm->error != Code::Success ? comm->errorText.c_str() : lastError.c_str();
}

EXPORT Code ncclGroupStart() {
  ++group.depth;
  return Code::Success;
}

EXPORT Code ncclGroupEnd() {
  if (group.depth == 0)
    return refuse(Code::InvalidUsage, "no group has begun");
  return --group.depth ? Code::Success : endGroup();
}

EXPORT Code ncclAllReduce(const void *operand, void *result, size_t count, DataType type,
                          Operation operation, Comm comm, cudaStream_t stream) {
  return add(comm, {{Kind::AllReduce, type, operation, 0, count}, operand, result}, stream);
}

EXPORT Code ncclAllGather(const void *operand, void *result, size_t operandCount, DataType type,
                          Comm comm, cudaStream_t stream) {
  return add(comm, {{Kind::AllGather, type, {}, 0, operandCount}, operand, result}, stream);
}

EXPORT Code ncclReduceScatter(const void *operand, void *result, size_t resultCount, DataType type,
                              Operation operation, Comm comm, cudaStream_t stream) {
  return add(comm, {{Kind::ReduceScatter, type, operation, 0, resultCount}, operand, result},
             stream);
}

EXPORT Code ncclReduce(const void *operand, void *result, size_t count, DataType type,
                       Operation operation, int root, Comm comm, cudaStream_t stream) {
  return add(comm, {{Kind::Reduce, type, operation, root, count}, operand, result}, stream);
}

EXPORT Code ncclBroadcast(const void *operand, void *result, size_t count, DataType type, int root,
                          Comm comm, cudaStream_t stream) {
  return add(comm, {{Kind::Broadcast, type, {}, root, count}, operand, result}, stream);
}

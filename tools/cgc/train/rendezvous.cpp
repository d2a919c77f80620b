// The exchange of an id through files, and signs of life.
#include "tools/cgc/train/rendezvous.h"

#include "runtime/base/printable.h"
#include "runtime/base/rank_text.h"
#include "runtime/base/write_file.h"
#include "tools/cgc/cli/signals.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cgc::tool {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// What a rank wrote when it came.
struct Rendezvous::Request {
  int ranks = 0;
  std::string nonce;
  std::string process; ///< "host, process 12", for messages.
};

namespace {

constexpr milliseconds kPollPeriod = 20ms, kPulsePeriod = 1s;
/// A rank without a sign of life for so long is not well. It is more than two periods.
constexpr milliseconds kSilence = 3s;
/// How long rank 0 leaves the reason of its failure to others.
constexpr milliseconds kFarewell = 2s;
constexpr const char *kRequestHead = "cgc-request-1", *kPublicationHead = "cgc-id-1";
constexpr const char *kPublication = "id";

std::string randomHex() {
  std::random_device random;
  char text[33];
  std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text;
}

std::string thisHost() {
  char host[256] = {};
  (void)gethostname(host, sizeof(host) - 1);
  return printable(host, 64);
}
std::string thisProcess() {
  return thisHost() + ", process " + std::to_string(getpid());
}

/// The content of a file; empty if there is none.
std::string contentOf(const std::string &path) {
  std::ostringstream text;
  std::ifstream file(path, std::ios::binary);
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> linesOf(const std::string &path) {
  std::istringstream text(contentOf(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  return lines;
}
/// The lines of a file that begins with `head`, without that; none if it is another file.
std::vector<std::string> linesOf(const std::string &path, const std::string &head) {
  std::vector<std::string> lines = linesOf(path);
  if (lines.empty() || lines[0] != head)
    return {};
  lines.erase(lines.begin());
  return lines;
}

std::optional<int> parseInt(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// The requests in the folder. It lists the folder, because a network file system may remember that
/// a file was missing.
Rendezvous::Requests requestsIn(const std::string &folder) {
  Rendezvous::Requests requests;
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const auto rank = name.starts_with("rank-") ? parseInt(name.substr(5)) : std::nullopt;
    if (!rank || *rank < 0)
      continue;
    const std::vector<std::string> lines = linesOf(entry.path(), kRequestHead);
    if (lines.size() != 3)
      continue;
    if (const auto ranks = parseInt(lines[0]))
      requests[*rank] = {*ranks, lines[1], lines[2]};
  }
  return requests;
}

/// When the file was last touched, by the clock of its file system; std::nullopt if it is missing.
/// Opening it makes a network file system ask anew.
std::optional<std::chrono::nanoseconds> touchedAt(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return std::nullopt;
  struct stat info = {};
  const bool isKnown = fstat(fd, &info) == 0;
  close(fd);
  if (!isKnown)
    return std::nullopt;
  return std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
}
void touch(const std::string &path) {
  (void)utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

void removeIf(const std::string &path, const std::string &contains) {
  if (contentOf(path).find(contains) != std::string::npos)
    ::unlink(path.c_str());
}

std::string hexOf(const CommunicatorId &id) {
  std::string text;
  char digits[3];
  for (const std::byte byte : id) {
    std::snprintf(digits, sizeof(digits), "%02x", unsigned(byte));
    text += digits;
  }
  return text;
}

/// What the file of a rank that lives contains: how processes of its host can look for it.
std::string aliveText(const std::string &nonce, uint64_t batches) {
  return nonce + "\n" + thisHost() + "\n" + std::to_string(getpid()) + "\n" +
         std::to_string(batches) + "\n";
}
constexpr size_t kAliveLines = 4;
constexpr const char *kFailedLine = "failed\n"; ///< Follows them.

/// Makes the folder for this user alone, if it is missing.
Status makeFolder(const std::string &path) {
  std::error_code error;
  fs::create_directories(fs::absolute(path, error).parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return {Code::Failed, "cannot make the folder '" + path + "' for the ranks to meet: " +
                              std::strerror(errno) + "; name another one"};
  return Status::ok();
}

} // namespace

std::optional<CommunicatorId> parseId(std::string_view digits) {
  CommunicatorId id;
  if (digits.size() != 2 * id.size())
    return std::nullopt;
  for (size_t i = 0; i < id.size(); ++i) {
    unsigned byte = 0;
    const char *const begin = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, byte, 16);
    if (error != std::errc() || end != begin + 2)
      return std::nullopt;
    id[i] = std::byte(byte);
  }
  return id;
}

Result<std::string> defaultRendezvousFolder(const RankEnvironment &environment) {
  const std::string next = "; name a folder that all ranks share, on a network file system if they "
                           "are on several hosts";
  if (environment.localRanks != environment.ranks)
    return Status(Code::Usage, "the " + std::to_string(environment.ranks) + " ranks " +
                                   (environment.localRanks ? "are" : "may be") +
                                   " on several hosts, which have no folder in common that cgc "
                                   "knows of" +
                                   next);
  if (environment.run.empty())
    return Status(Code::Usage, environment.launcher +
                                   " gives the run no name, by which its ranks could find each "
                                   "other" +
                                   next);
  std::string run = environment.run.substr(0, 100);
  for (char &c : run)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.')
      c = '_';
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  const std::string path =
      ((error ? "/tmp" : temporary) / ("cgc-ranks-" + std::to_string(getuid()) + "-" + run))
          .string();
  CGC_TRY(makeFolder(path));
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != getuid() ||
      (info.st_mode & 077))
    return Status(Code::Failed, "the folder '" + path +
                                    "' for the ranks to meet is not one of this user alone; remove "
                                    "it" +
                                    next);
  return path;
}

/// The thread that touches this rank's file and looks at those of others.
struct Rendezvous::Pulse {
  Pulse(std::string file, std::string content)
      : path(std::move(file)), nonce(std::move(content)), thread([this] { run(); }) {}
  Pulse(const Pulse &) = delete;
  Pulse &operator=(const Pulse &) = delete;
  ~Pulse() {
    {
      const std::lock_guard lock(mutex);
      isEnding = true;
    }
    ended.notify_all();
    thread.join();
    if (!hasFailed)
      removeIf(path, nonce);
  }
  void run() {
    std::unique_lock lock(mutex);
    do {
      if (const uint64_t now = batches;
          now == written || hasFailed || !writeFile(path, aliveText(nonce, now)).isOk())
        touch(path);
      else
        written = now;
      if (look)
        look();
    } while (!ended.wait_for(lock, kPulsePeriod, [&] { return isEnding; }));
  }

  std::string path, nonce;
  std::atomic<uint64_t> batches = 0; ///< That the rank has read.
  uint64_t written = 0;              ///< Those of the file.
  std::mutex mutex;
  std::condition_variable ended;
  bool isEnding = false;
  bool hasFailed = false;     ///< The file says so, and stays.
  std::function<void()> look; ///< At the other ranks.
  std::thread thread;         ///< The last member: it uses the others.
};

Rendezvous::Rendezvous(RendezvousOptions options)
    : options_(std::move(options)), deadline_(Clock::now() + options_.timeout),
      nonce_(randomHex()) {}

Rendezvous::~Rendezvous() {
  if (options_.ranks == 1)
    return;
  pulse_.reset();
  removeIf(path("rank-", options_.rank), nonce_);
  if (options_.rank == 0)
    removeIf(options_.folder + "/" + kPublication, nonce_);
  if (options_.isTemporary)
    ::rmdir(options_.folder.c_str()); // Others may still have files there.
}

std::string Rendezvous::path(const char *kind, int rank) const {
  return options_.folder + "/" + kind + std::to_string(rank);
}

Result<std::unique_ptr<Rendezvous>>
Rendezvous::join(RendezvousOptions options, const std::function<Result<CommunicatorId>()> &makeId) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    return Status(Code::Usage, "rank " + std::to_string(options.rank) + " is not one of " +
                                   std::to_string(options.ranks) + " ranks; count them from 0");
  if (options.timeout < 1ms || options.timeout > std::chrono::hours(24 * 365))
    return Status(Code::Usage, "the timeout for the ranks to meet is from 1 ms to a year");
  if (options.ranks > 1 && options.folder.empty())
    return Status(Code::Usage, "several ranks need a folder to meet in; name one that all share");
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(std::move(options)));
  CGC_TRY(rendezvous->meet(makeId));
  return rendezvous;
}

Status Rendezvous::meet(const std::function<Result<CommunicatorId>()> &makeId) {
  if (options_.ranks == 1) {
    CGC_ASSIGN_OR_RETURN(id_, makeId());
    return Status::ok();
  }
  CGC_TRY(makeFolder(options_.folder));
  const std::string alive = path("alive-", options_.rank);
  CGC_TRY(writeFile(alive, aliveText(nonce_, 0)));
  pulse_ = std::make_unique<Pulse>(alive, nonce_);
  CGC_TRY(writeRequest());
  return options_.rank == 0 ? lead(makeId) : follow();
}

Status Rendezvous::writeRequest() const {
  return writeFile(path("rank-", options_.rank), std::string(kRequestHead) + "\n" +
                                                     std::to_string(options_.ranks) + "\n" +
                                                     nonce_ + "\n" + thisProcess() + "\n");
}

/// Writes this rank's request anew if somebody removed it. Usage if another process has replaced
/// it.
Status Rendezvous::checkRequest(const Requests &requests) const {
  const auto mine = requests.find(options_.rank);
  if (mine == requests.end()) {
    CGC_TRY(makeFolder(options_.folder));
    return writeRequest();
  }
  if (mine->second.nonce != nonce_)
    return {Code::Usage, "two processes are rank " + std::to_string(options_.rank) +
                             " in the folder '" + options_.folder + "' (" + thisProcess() +
                             ", and " + printable(mine->second.process) +
                             "); give each run a folder of its own"};
  return Status::ok();
}

/// Sleeps until files may have changed. Failed after a signal.
Status Rendezvous::wait() const {
  std::this_thread::sleep_for(kPollPeriod);
  if (requestedStop())
    return {Code::Failed, "interrupted by a signal while waiting for the other ranks"};
  return Status::ok();
}

Status Rendezvous::timeoutStatus(const std::vector<int> &missing) const {
  const std::string waited =
      "rank " + std::to_string(options_.rank) + " waited " + secondsText(options_.timeout) + ": ";
  if (missing.empty())
    return {Code::Failed, waited + "rank 0 has not answered in the folder '" + options_.folder +
                              "'; look at its output"};
  return {Code::Failed, waited + ranksText(missing) + " of " + std::to_string(options_.ranks) +
                            (missing.size() == 1 ? " has" : " have") + " not come to the folder '" +
                            options_.folder +
                            "'; check that all were started and share this folder"};
}

/// Writes `content` for the ranks with these requests.
Status Rendezvous::publish(const Requests &to, const std::string &content) const {
  std::string text = std::string(kPublicationHead) + "\n" + content + "\n";
  for (const auto &[rank, request] : to)
    text += std::to_string(rank) + " " + request.nonce + "\n";
  return writeFile(options_.folder + "/" + kPublication, text);
}

Status Rendezvous::lead(const std::function<Result<CommunicatorId>()> &makeId) {
  Requests requests;
  Requests published; ///< To whom the id was published; empty before.
  std::vector<bool> hasAccepted(options_.ranks);
  std::map<int, std::chrono::nanoseconds> firstTouches;
  /// Whether a rank has touched its file since this was first asked.
  const auto lives = [&](int rank) {
    const auto touched = touchedAt(path("alive-", rank));
    return touched && firstTouches.emplace(rank, *touched).first->second != *touched;
  };
  const auto round = [&]() -> Result<bool> {
    requests = requestsIn(options_.folder);
    CGC_TRY(checkRequest(requests));
    for (const auto &[rank, request] : requests)
      if (request.ranks != options_.ranks && lives(rank)) // Else it may be of an earlier run.
        return Status(Code::Usage, "rank " + std::to_string(rank) + " (" +
                                       printable(request.process) + ") was started for " +
                                       std::to_string(request.ranks) + " ranks, and rank 0 for " +
                                       std::to_string(options_.ranks) +
                                       "; start all with the same number");
    std::erase_if(requests, [&](const auto &item) {
      return item.second.ranks != options_.ranks || item.first >= options_.ranks;
    });
    bool isNew = published.empty();
    if (isNew && int(requests.size()) < options_.ranks)
      return false;
    for (int rank = 1; rank < options_.ranks && !published.empty(); ++rank) {
      const auto request = requests.find(rank);
      if (request == requests.end())
        hasAccepted[rank] = true; // It has removed its request.
      else if (!hasAccepted[rank] && request->second.nonce != published[rank].nonce)
        isNew = true; // The request before was of an earlier run.
    }
    if (isNew) {
      if (published.empty()) {
        CGC_ASSIGN_OR_RETURN(id_, makeId());
      }
      for (const auto &[rank, request] : requests)
        published[rank] = request;
      CGC_TRY(publish(published, "id " + hexOf(id_)));
    }
    return std::ranges::count(hasAccepted, true) == options_.ranks - 1;
  };
  Status failure;
  for (;;) {
    const Result<bool> isDone = round();
    if (isDone.isOk() && *isDone) {
      removeIf(options_.folder + "/" + kPublication, nonce_);
      removeIf(path("rank-", 0), nonce_);
      return Status::ok();
    }
    failure = isDone.isOk() ? wait() : isDone.status();
    if (failure.isOk() && Clock::now() >= deadline_) {
      std::vector<int> missing;
      for (int rank = 1; rank < options_.ranks; ++rank)
        if (published.empty() ? !requests.contains(rank) : !hasAccepted[rank])
          missing.push_back(rank);
      failure = timeoutStatus(missing);
    }
    if (!failure.isOk())
      break;
  }
  // Tell those that wait, until they have read it.
  Requests told = requestsIn(options_.folder);
  told[0] = {options_.ranks, nonce_, ""}; // By which the destructor knows the file.
  const std::string reason = std::to_string(int(failure.code())) + " " + failure.message();
  if (!publish(told, "failure " + printable(reason, 2000)).isOk())
    return failure;
  const auto isWaiting = [&](const auto &item) {
    const auto at = told.find(item.first);
    return item.first != 0 && at != told.end() && at->second.nonce == item.second.nonce &&
           silence(item.first).value_or(kSilence) < kSilence;
  };
  for (const auto end = Clock::now() + kFarewell;
       Clock::now() < end && std::ranges::any_of(requestsIn(options_.folder), isWaiting);)
    std::this_thread::sleep_for(kPollPeriod);
  return failure;
}

Status Rendezvous::follow() {
  const std::string mine = std::to_string(options_.rank) + " " + nonce_;
  for (;;) {
    const Requests requests = requestsIn(options_.folder);
    const std::vector<std::string> lines =
        linesOf(options_.folder + "/" + kPublication, kPublicationHead);
    if (std::ranges::find(lines, mine) != lines.end()) {
      removeIf(path("rank-", options_.rank), nonce_);
      const std::string &content = lines[0];
      if (const auto id = content.starts_with("id ") ? parseId(content.substr(3)) : std::nullopt) {
        id_ = *id;
        return Status::ok();
      }
      std::istringstream failure(content);
      std::string word, reason;
      int code = int(Code::Failed);
      failure >> word >> code;
      std::getline(failure >> std::ws, reason);
      return {Code(code), reason};
    }
    CGC_TRY(checkRequest(requests));
    CGC_TRY(wait());
    if (Clock::now() < deadline_)
      continue;
    std::vector<int> missing;
    for (int rank = 0; rank < options_.ranks; ++rank)
      if (!requests.contains(rank))
        missing.push_back(rank);
    return timeoutStatus(missing);
  }
}

/// How long the rank has not touched its file; std::nullopt if it has none or has failed.
std::optional<std::chrono::nanoseconds> Rendezvous::silence(int rank) const {
  const std::string mine = path("alive-", options_.rank), other = path("alive-", rank);
  touch(mine); // The present, by the clock of the file system.
  const auto now = touchedAt(mine), last = touchedAt(other);
  if (!now || !last || linesOf(other).size() > kAliveLines)
    return std::nullopt;
  return *now - *last;
}

/// Whether the rank has failed or its process is gone. A silent process of another host may live:
/// network file systems are slow to tell.
bool Rendezvous::isLost(int rank) const {
  const std::vector<std::string> lines = linesOf(path("alive-", rank));
  if (lines.size() != kAliveLines)
    return lines.size() > kAliveLines;
  const std::optional<int> process = parseInt(lines[2]);
  return lines[1] == thisHost() && process && kill(*process, 0) != 0 && errno == ESRCH &&
         silence(rank).value_or(0s) >= kSilence; // Else another namespace has the process.
}

void Rendezvous::watch(std::function<void()> onLoss) {
  if (!pulse_)
    return;
  const std::lock_guard lock(pulse_->mutex);
  pulse_->look = [this, onLoss = std::move(onLoss), wasLost = false]() mutable {
    bool isAnyLost = false;
    for (int rank = 0; rank < options_.ranks; ++rank)
      isAnyLost |= rank != options_.rank && isLost(rank);
    if (isAnyLost && wasLost) // This rank had a second to find the failure of all ranks itself.
      onLoss();
    wasLost = isAnyLost;
  };
}

void Rendezvous::noteBatches(uint64_t batches) {
  if (pulse_)
    pulse_->batches = batches;
}

/// The ranks that live and, two periods from now, have read fewer batches than this one has now.
std::vector<int> Rendezvous::ranksBehind() const {
  const uint64_t own = pulse_->batches;
  const auto behind = [&] {
    std::vector<int> ranks;
    for (int rank = 0; rank < options_.ranks; ++rank)
      if (const auto lines = linesOf(path("alive-", rank));
          lines.size() == kAliveLines && std::strtoull(lines[3].c_str(), nullptr, 10) < own)
        ranks.push_back(rank);
    return ranks;
  };
  if (behind().empty())
    return {};
  std::this_thread::sleep_for(2 * kPulsePeriod); // Their files may be a period old.
  return behind();
}

Status Rendezvous::explain(const Status &failure) {
  if (failure.isOk() || !pulse_)
    return failure;
  {
    const std::lock_guard lock(pulse_->mutex);
    pulse_->look = nullptr;
    pulse_->hasFailed =
        writeFile(pulse_->path, aliveText(nonce_, pulse_->batches) + kFailedLine).isOk();
  }
  const auto begin = Clock::now();
  std::chrono::nanoseconds least = std::chrono::nanoseconds::max();
  std::vector<int> silent, ended;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (rank == options_.rank)
      continue;
    // A rank that lives touches its file soon.
    std::optional<std::chrono::nanoseconds> time;
    while ((time = silence(rank)) && *time < kSilence && *time > Clock::now() - begin &&
           Clock::now() < begin + kSilence + kPulsePeriod)
      std::this_thread::sleep_for(kPollPeriod);
    if (!time) {
      ended.push_back(rank);
    } else if (*time >= kSilence) {
      silent.push_back(rank);
      least = std::min(least, *time);
    }
  }
  std::string text = failure.message();
  if (!silent.empty()) // Those that ended may have ended for this.
    text += "; " + ranksText(silent) + (silent.size() == 1 ? " has" : " have") +
            " shown no sign of life for " +
            std::to_string(std::chrono::floor<std::chrono::seconds>(least).count()) + " s";
  else if (!ended.empty())
    text += "; " + ranksText(ended) + (ended.size() == 1 ? " has" : " have") +
            " ended: look at the output there";
  else if (const std::vector<int> behind = ranksBehind(); !behind.empty())
    text += "; " + ranksText(behind) + (behind.size() == 1 ? " has" : " have") +
            " read fewer batches than this one: look at the data there";
  return {failure.code(), text};
}

} // namespace cgc::tool

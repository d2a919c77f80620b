// Reads many pictures on several threads.
#include "batch.h"

#include "jpeg.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace cgc_images {
namespace {

class PixelReader : public RowReader {
public:
  explicit PixelReader(const Pixels &pixels) : pixels_(pixels) {
    height_ = int(pixels.height);
    width_ = columns_ = int(pixels.width);
  }
  int chooseColumns(int first, int end) override {
    columns_ = end - first;
    return first_ = first;
  }
  void read(uint8_t *rows, ptrdiff_t pitch, int count) override {
    for (int i = 0; i < count; ++i, ++row_)
      std::memcpy(rows + i * pitch, pixels_.data + (row_ * width_ + first_) * 3,
                  size_t(columns_) * 3);
  }
  void skip(int count) override { row_ += count; }

private:
  Pixels pixels_;
  int first_ = 0;
  int64_t row_ = 0;
};

[[noreturn]] void cannotRead(int error) {
  throw PictureError(CGC_INVALID_FILE, "cannot be read: " + std::generic_category().message(error));
}

/// Reads the file, or its first bytes if they are not those of a JPEG.
void readFile(const std::string &path, std::vector<uint8_t> &bytes) {
  struct Descriptor {
    ~Descriptor() {
      if (number >= 0)
        close(number);
    }
    int number;
  } const file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status;
  if (file.number < 0 || fstat(file.number, &status) != 0)
    cannotRead(errno);
  if (S_ISDIR(status.st_mode))
    cannotRead(EISDIR);
  size_t size = 0;
  bytes.resize(size_t(status.st_size) + 1);
  while (true) {
    if (size == bytes.size())
      bytes.resize(2 * size + 65536);
    const ssize_t count = ::read(file.number, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      cannotRead(errno);
    size += size_t(count);
    if (count == 0 || (size >= 3 && !isJpeg({bytes.data(), size})))
      break;
  }
  bytes.resize(size);
}

/// What works on pictures, one after the other, and keeps its memory for the next.
struct Worker {
  std::vector<uint8_t> file;
  Scratch scratch;

  /// What is the same for all pictures of a call.
  struct Call {
    const Consume &consume;
    int64_t maxPixels;
  };

  void run(const std::string &path, size_t i, const Call &call) {
    readFile(path, file);
    run(std::span<const uint8_t>(file), i, call);
  }
  void run(std::span<const uint8_t> bytes, size_t i, const Call &call) {
    if (bytes.empty())
      throw PictureError(CGC_INVALID_FILE, "is empty: it has 0 bytes");
    if (!isJpeg(bytes))
      throw ForPillow();
    try {
      call.consume(i, *readJpeg(bytes, call.maxPixels, &scratch.coefficients), scratch);
    } catch (const Flawed &) {
      call.consume(i, *readJpeg(bytes, call.maxPixels, nullptr), scratch);
    }
  }
  void run(const Pixels &pixels, size_t i, const Call &call) {
    if (pixels.height == 0 || pixels.width == 0)
      throw PictureError(CGC_INVALID_FILE, "is empty: it has " + std::to_string(pixels.width) +
                                               " x " + std::to_string(pixels.height) + " pixels");
    checkPixels(pixels.height, pixels.width, call.maxPixels);
    PixelReader reader(pixels);
    call.consume(i, reader, scratch);
  }

  std::optional<Failure> run(const Source &source, size_t i, const Call &call) {
    try {
      std::visit([&](const auto &each) { run(each, i, call); }, source);
      return std::nullopt;
    } catch (const ForPillow &) {
      return Failure{std::nullopt, "is for Pillow"};
    } catch (const PictureError &error) {
      return Failure{error.code(), error.what()};
    } catch (const std::bad_alloc &) {
      return Failure{CGC_OUT_OF_MEMORY, "does not fit into memory"};
    }
  }
};

/// Workers between two calls. New memory is slow: the kernel clears it.
class Workers {
public:
  Workers() { idle_.reserve(kMost); }

  std::unique_ptr<Worker> take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty())
      return std::make_unique<Worker>();
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }
  void giveBack(std::unique_ptr<Worker> worker) {
    constexpr size_t kMostBytes = 16 << 20;
    const std::scoped_lock lock(mutex_);
    if (worker->file.capacity() + worker->scratch.bytes() <= kMostBytes && idle_.size() < kMost)
      idle_.push_back(std::move(worker));
  }

private:
  static constexpr size_t kMost = 64;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

} // namespace

std::vector<std::optional<Failure>> readAll(const std::vector<Source> &sources,
                                            const Consume &consume, int threads,
                                            int64_t maxPixels) {
  static Workers workers;
  std::vector<std::optional<Failure>> failures(sources.size());
  std::atomic<size_t> next = 0;
  const auto work = [&](std::unique_ptr<Worker> worker) {
    for (size_t i; (i = next++) < sources.size();)
      failures[i] = worker->run(sources[i], i, {consume, maxPixels});
    workers.giveBack(std::move(worker));
  };
  std::vector<std::jthread> helpers;
  try {
    while (int(helpers.size()) + 1 < threads && helpers.size() + 1 < sources.size())
      helpers.emplace_back(work, workers.take());
  } catch (const std::system_error &) {
    // The threads that there are do all of the work.
  }
  work(workers.take());
  helpers.clear();
  return failures;
}

} // namespace cgc_images

// OpLibrary: a shared library with the user's own ops. It is opened only if the user names its
// file.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/op_library_abi.h"
#include "runtime/plan/plan.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc {

/// The command-line option that names op libraries, for messages.
inline constexpr const char *kOpLibraryOption = "--op-library";

class LibraryFile;

/// A loaded op library. It stays loaded until the process ends.
class OpLibrary final {
public:
  /// Opens the library at `path`. InvalidFile if it is missing or not an op library, Failed if it
  /// has another ABI.
  static Result<std::shared_ptr<const OpLibrary>> open(const std::string &path);

  const std::string &path() const { return path_; }
  /// The identity that a plan records: the file's name and the xxhash64 of its bytes.
  const OpLibraryId &id() const { return id_; }
  /// The op called `op`; null if the library has none.
  const CgcOp *find(std::string_view op) const;

private:
  friend Result<std::vector<std::shared_ptr<const OpLibrary>>>
  openOpLibraries(const PlanData &plan, std::span<const std::string> paths);
  static Result<std::shared_ptr<const OpLibrary>> load(LibraryFile &file, const std::string &path);
  OpLibrary(std::string path, OpLibraryId id, const CgcOpLibrary &table)
      : path_(std::move(path)), id_(std::move(id)), table_(table) {}
  std::string path_;
  OpLibraryId id_;
  const CgcOpLibrary &table_;
};

/// Opens those libraries of `paths` that `plan` calls, and returns them in the order of
/// plan.opLibraries. A library is loaded only if its bytes are those that the plan was compiled
/// with. Usage, naming the library and the option, if a library is not given or its file has other
/// bytes; Device if a file is missing or cannot be loaded.
Result<std::vector<std::shared_ptr<const OpLibrary>>>
openOpLibraries(const PlanData &plan, std::span<const std::string> paths);

/// The hash as 16 hexadecimal digits: "0123456789abcdef".
std::string hashText(uint64_t hash);

/// Owns the arguments that a CgcOpCall points to. The `data` and `sizes` of the tensors are
/// borrowed and must outlive it.
class OpArguments final {
public:
  OpArguments(std::span<const CgcOpTensor> inputs, const CgcOpTensor &output,
              std::span<const int64_t> ints, std::span<const double> floats)
      : inputs_(inputs.begin(), inputs.end()), ints_(ints.begin(), ints.end()),
        floats_(floats.begin(), floats.end()), output_(output) {}

  /// The call with pointers into this object, which must outlive it.
  CgcOpCall call() const {
    return {inputs_.data(),
            ints_.data(),
            floats_.data(),
            uint32_t(inputs_.size()),
            uint32_t(ints_.size()),
            uint32_t(floats_.size()),
            output_};
  }

private:
  std::vector<CgcOpTensor> inputs_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  CgcOpTensor output_;
};

/// Unsupported, naming the library, if `op` has no implementation for `target` or refuses these
/// arguments.
Status checkOpCall(const OpLibrary &library, const CgcOp &op, const OpArguments &arguments,
                   DeviceKind target);

} // namespace cgc

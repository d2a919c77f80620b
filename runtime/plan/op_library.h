// OpLibrary: a library with ops of the user's own, opened because the user named it.
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

/// How the user names op libraries, for messages.
inline constexpr const char *kOpLibraryOption = "--op-library";

class LibraryFile;

/// Stays loaded until the process ends.
class OpLibrary final {
public:
  /// Opens the library at `path`. InvalidFile if it is missing or no op library, Failed if it has
  /// another ABI.
  static Result<std::shared_ptr<const OpLibrary>> open(const std::string &path);

  const std::string &path() const { return path_; }
  /// What a plan that calls it records: its file's name, and the xxhash64 of its bytes.
  const OpLibraryId &id() const { return id_; }
  /// Null if it has no such op.
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

/// Opens those libraries of `paths` that `plan` calls, in the order of plan.opLibraries. Nothing is
/// opened before its bytes are seen to be those that the plan was compiled with. Usage, naming the
/// library and the option, if none is given or one with other bytes; Device if a file is missing or
/// cannot be loaded.
Result<std::vector<std::shared_ptr<const OpLibrary>>>
openOpLibraries(const PlanData &plan, std::span<const std::string> paths);

/// "0123456789abcdef"
std::string hashText(uint64_t hash);

/// The arguments of one call: what a CgcOpCall points at. Borrows `sizes` of the tensors.
class OpArguments final {
public:
  OpArguments(std::span<const CgcOpTensor> inputs, const CgcOpTensor &output,
              std::span<const int64_t> ints, std::span<const double> floats)
      : inputs_(inputs.begin(), inputs.end()), ints_(ints.begin(), ints.end()),
        floats_(floats.begin(), floats.end()), output_(output) {}

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

/// Ok, or why `op` cannot run this call on `target`; names the library.
Status checkOpCall(const OpLibrary &library, const CgcOp &op, const OpArguments &arguments,
                   DeviceKind target);

} // namespace cgc

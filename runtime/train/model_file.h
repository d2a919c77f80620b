// ModelFile: the parameters and buffers of a file of safetensors, as values for a plan's states.
#pragma once

#include "runtime/plan/plan.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/trainer.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc {

/// A state and the name of its tensor in a file.
struct FileTensor {
  std::string name;
  const State *state;
};

class ModelFile final {
public:
  /// Opens a file that has a tensor for each of `tensors`, of the state's sizes and of its dtype
  /// or, for f32, of 16 bits. A folder stands for its `model.safetensors`. The states are borrowed.
  /// InvalidFile if it is no whole file of safetensors; Usage, naming the tensors, if one is
  /// missing or does not fit.
  static Result<ModelFile> open(const std::string &path, std::vector<FileTensor> tensors,
                                const TrainerWords &words);

  /// Calls `write` with the index in the list of `tensors` and the dense bytes, in the state's
  /// dtype, of each state. Fails as `write` does.
  Status forEach(const std::function<Status(size_t, std::span<const std::byte>)> &write) const;
  /// The names of the tensors that no state takes.
  std::vector<std::string> unused() const;

private:
  ModelFile(SafetensorsFile file, std::vector<FileTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  SafetensorsFile file_;
  std::vector<FileTensor> tensors_;
};

/// A view of the bytes of a state, which are only read.
TensorView viewOf(const State &state, std::span<const std::byte> bytes);

} // namespace cgc

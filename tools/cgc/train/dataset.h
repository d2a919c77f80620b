// Dataset: the samples of a training, in mapped files.
#pragma once

#include "runtime/base/file.h"
#include "runtime/plan/plan.h"
#include "runtime/train/safetensors.h"

#include <cstddef>
#include <string>
#include <vector>

namespace cgc::tool {

/// The samples for the inputs of a training step. Reads files only when a sample is used.
class Dataset final {
public:
  /// Opens the values of --data for a step with these inputs, which have the batch as dimension 0.
  /// Each value is one of:
  ///  - NAME=FILE.npy: the input NAME of all samples, which are dimension 0 of the array;
  ///  - FILE.safetensors: tensors named like the inputs, with samples as dimension 0;
  ///  - FILE.tar: one member KEY.NAME.npy for each sample KEY and input NAME.
  /// Several files of the last two kinds follow one another; kinds are not mixed. Other tensors and
  /// members are left out. Usage if an input has no data, shapes or dtypes do not fit, inputs have
  /// different numbers of samples, or there are fewer than a batch needs. InvalidFile for a bad
  /// file.
  static Result<Dataset> open(const std::vector<std::string> &data,
                              const std::vector<IoTensor> &inputs);

  size_t samples() const { return rows_.empty() ? 0 : rows_[0].size(); }
  /// The bytes of the sample `sample` of the input `input`.
  std::span<const std::byte> row(size_t input, size_t sample) const {
    return {rows_[input][sample], rowBytes_[input]};
  }
  const std::vector<IoTensor> &inputs() const { return inputs_; }

private:
  explicit Dataset(const std::vector<IoTensor> &inputs);
  std::vector<int64_t> rowSizes(size_t input) const;
  Status addNpy(size_t input, const std::string &path);
  Status addSafetensors(const std::string &path);
  Status addTar(const std::string &path);
  /// Adds the samples of an array. `what` names it in messages.
  Status addRows(size_t input, DType dtype, const std::vector<int64_t> &sizes,
                 std::span<const std::byte> bytes, const std::string &what);
  Status check() const;

  std::vector<IoTensor> inputs_;
  std::vector<MappedFile> files_;
  std::vector<SafetensorsFile> safetensors_;
  std::vector<size_t> rowBytes_;                     ///< By input.
  std::vector<std::vector<const std::byte *>> rows_; ///< By input and sample, in the files.
};

} // namespace cgc::tool

// Dataset: finds the samples in the files and checks them against the inputs.
#include "tools/cgc/train/dataset.h"

#include "runtime/base/printable.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/io/npy.h"
#include "tools/cgc/train/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cgc::tool {
namespace {

enum class Kind { Npy, Safetensors, Tar };

/// A value of --data.
struct Source {
  Kind kind;
  std::string input; ///< Only for an .npy file.
  std::string path;
};

constexpr const char *kForms = "NAME=FILE.npy, FILE.safetensors or FILE.tar";

Result<Source> parseSource(const std::string &text) {
  if (text.ends_with(".safetensors"))
    return Source{Kind::Safetensors, "", text};
  if (text.ends_with(".tar"))
    return Source{Kind::Tar, "", text};
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Status(Code::Usage, fmt::format("--data {}: give {}", text, kForms));
  return Source{Kind::Npy, text.substr(0, equals), text.substr(equals + 1)};
}

std::string inputNames(const std::vector<IoTensor> &inputs) {
  std::vector<std::string> names;
  for (const IoTensor &input : inputs)
    names.push_back(input.name);
  return joinNames(names);
}

std::optional<size_t> indexOf(const std::vector<IoTensor> &inputs, std::string_view name) {
  const auto found = std::ranges::find(inputs, name, &IoTensor::name);
  if (found == inputs.end())
    return std::nullopt;
  return static_cast<size_t>(found - inputs.begin());
}

/// The key and the input of a member KEY.NAME.npy: the key ends at the first dot behind the last
/// slash, as in WebDataset. Nothing for other members.
std::optional<std::pair<std::string_view, std::string_view>> splitMember(std::string_view member) {
  constexpr std::string_view kSuffix = ".npy";
  const size_t slash = member.rfind('/');
  const size_t dot = member.find('.', slash == std::string_view::npos ? 0 : slash);
  if (!member.ends_with(kSuffix) || dot + kSuffix.size() >= member.size())
    return std::nullopt;
  return std::pair(member.substr(0, dot),
                   member.substr(dot + 1, member.size() - kSuffix.size() - dot - 1));
}

} // namespace

Dataset::Dataset(const std::vector<IoTensor> &inputs) : inputs_(inputs), rows_(inputs.size()) {
  for (size_t i = 0; i < inputs.size(); ++i)
    rowBytes_.push_back(*tensorBytes(inputs[i].dtype, rowSizes(i)));
}

std::vector<int64_t> Dataset::rowSizes(size_t input) const {
  const std::vector<int64_t> &sizes = inputs_[input].sizes;
  return {sizes.begin() + 1, sizes.end()};
}

Result<Dataset> Dataset::open(const std::vector<std::string> &data,
                              const std::vector<IoTensor> &inputs) {
  for (const IoTensor &input : inputs)
    if (input.sizes.empty() || input.sizes[0] != inputs[0].sizes[0])
      return Status(Code::Usage,
                    fmt::format("input '{}' is {}: its dimension 0 is not the batch, which cgc "
                                "train needs for every input",
                                input.name, formatShape(dtypeName(input.dtype), input.sizes)));
  Dataset dataset(inputs);
  std::optional<Source> first;
  for (const std::string &text : data) {
    CGC_ASSIGN_OR_RETURN(const Source source, parseSource(text));
    if (first && first->kind != source.kind)
      return Status(Code::Usage, fmt::format("--data {} and {}: give files of one kind only",
                                             first->path, source.path));
    first = source;
    switch (source.kind) {
    case Kind::Npy: {
      const auto input = indexOf(inputs, source.input);
      if (!input)
        return Status(Code::Usage, fmt::format("--data {}: the step has no input '{}'; it has {}",
                                               text, source.input, inputNames(inputs)));
      if (!dataset.rows_[*input].empty())
        return Status(Code::Usage,
                      fmt::format("--data {}: the data of '{}' is given twice; give it once", text,
                                  source.input));
      CGC_TRY(dataset.addNpy(*input, source.path));
      break;
    }
    case Kind::Safetensors:
      CGC_TRY(dataset.addSafetensors(source.path));
      break;
    case Kind::Tar:
      CGC_TRY(dataset.addTar(source.path));
      break;
    }
  }
  CGC_TRY(dataset.check());
  return dataset;
}

Status Dataset::addNpy(size_t input, const std::string &path) {
  CGC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  CGC_ASSIGN_OR_RETURN(const NpyArray array, parseNpy(file.bytes(), path));
  if (array.isFortran && array.sizes.size() > 1)
    return {Code::Usage,
            fmt::format("'{}' is in Fortran order, in which samples are not in one piece; save "
                        "numpy.ascontiguousarray of it",
                        path)};
  files_.push_back(std::move(file)); // The mapping keeps its address.
  return addRows(input, array.dtype, array.sizes, array.data, fmt::format("'{}'", path));
}

Status Dataset::addSafetensors(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const SafetensorsTensor *found = file.find(inputs_[i].name);
    if (!found) {
      std::vector<std::string> names;
      for (const SafetensorsTensor &tensor : file.tensors())
        names.push_back(tensor.name);
      return {Code::Usage, fmt::format("'{}' has no tensor '{}', which the step takes; it has {}",
                                       path, inputs_[i].name, printable(joinNames(names), 1000))};
    }
    CGC_TRY(addRows(i, found->dtype, found->sizes, found->bytes,
                    fmt::format("'{}' of '{}'", inputs_[i].name, path)));
    if (rows_[i].size() != rows_[0].size())
      return {Code::Usage,
              fmt::format("'{}' has {} samples of '{}' and {} of '{}'; give each sample all inputs",
                          path, rows_[0].size(), inputs_[0].name, rows_[i].size(),
                          inputs_[i].name)};
  }
  safetensors_.push_back(std::move(file)); // The mapping keeps its address.
  return Status::ok();
}

Status Dataset::addTar(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  CGC_ASSIGN_OR_RETURN(const auto members, readTar(file.bytes(), path));
  files_.push_back(std::move(file));
  std::string_view key; // Of the sample whose members are being read.
  const auto missing = [&]() -> Status {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (rows_[i].size() != rows_[0].size() || (!key.empty() && rows_[0].empty()))
        return {Code::Usage,
                fmt::format("'{}': the sample '{}' does not have each of {} once; "
                            "write {}.NAME.npy for every input, one sample after "
                            "another",
                            path, printable(key), inputNames(inputs_), printable(key))};
    return Status::ok();
  };
  for (const TarMember &member : members) {
    const auto split = splitMember(member.name);
    const auto input = split ? indexOf(inputs_, split->second) : std::nullopt;
    if (!input)
      continue;
    if (split->first != key) {
      CGC_TRY(missing());
      key = split->first;
    }
    const std::string name = printable(member.name);
    const std::string what = fmt::format("'{}' of '{}'", name, path);
    CGC_ASSIGN_OR_RETURN(NpyArray array, parseNpy(member.bytes, name));
    if (array.isFortran && array.sizes.size() > 1)
      return {Code::Usage, what + " is in Fortran order; save numpy.ascontiguousarray of it"};
    array.sizes.insert(array.sizes.begin(), 1);
    CGC_TRY(addRows(*input, array.dtype, array.sizes, array.data, what));
  }
  return missing();
}

Status Dataset::addRows(size_t input, DType dtype, const std::vector<int64_t> &sizes,
                        std::span<const std::byte> bytes, const std::string &what) {
  std::vector<int64_t> wanted = rowSizes(input);
  if (dtype != inputs_[input].dtype || sizes.empty() ||
      !std::equal(sizes.begin() + 1, sizes.end(), wanted.begin(), wanted.end())) {
    std::string shape = formatShape(dtypeName(inputs_[input].dtype), wanted);
    shape.insert(shape.find('[') + 1, wanted.empty() ? "N" : "N,");
    return {Code::Usage,
            fmt::format("{} is {}, and input '{}' takes {} for N samples; convert it", what,
                        formatShape(dtypeName(dtype), sizes), inputs_[input].name, shape)};
  }
  for (int64_t i = 0; i < sizes[0]; ++i)
    rows_[input].push_back(bytes.data() + static_cast<size_t>(i) * rowBytes_[input]);
  return Status::ok();
}

Status Dataset::check() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (rows_[i].empty())
      return {Code::Usage,
              fmt::format("--data has no samples of input '{}'; give {} for each of {}",
                          inputs_[i].name, kForms, inputNames(inputs_))};
    if (rows_[i].size() != rows_[0].size())
      return {Code::Usage,
              fmt::format("--data has {} samples of '{}' and {} of '{}'; give as many of each",
                          rows_[0].size(), inputs_[0].name, rows_[i].size(), inputs_[i].name)};
  }
  const auto batch = static_cast<size_t>(inputs_[0].sizes[0]);
  if (samples() < batch)
    return {Code::Usage, fmt::format("--data has {} samples, fewer than a batch of {}; give more, "
                                     "or compile the step for a smaller batch",
                                     samples(), batch)};
  return Status::ok();
}

} // namespace cgc::tool

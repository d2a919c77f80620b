// Data files: writes the files of training data that the tests read.
#pragma once

#include "tests/temp_folder.h"
#include "tools/cgc/io/npy.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace cgc::tool {

inline void writeBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A tensor of these values.
template <class T>
HostTensor tensorOf(DType dtype, std::vector<int64_t> sizes, const std::vector<T> &values) {
  HostTensor tensor = makeTensor("", dtype, std::move(sizes));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

/// The bytes of the .npy file that holds `tensor`.
inline std::string npyText(const HostTensor &tensor) {
  const auto bytes = formatNpy(tensor);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// A file of safetensors with these tensors, whose names are given.
inline std::string safetensorsText(const std::vector<std::pair<std::string, HostTensor>> &tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto &[name, tensor] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
    header[name] = {{"dtype", tensor.dtype == DType::F32 ? "F32" : "I64"},
                    {"shape", tensor.sizes},
                    {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) + text + data;
}

/// A member of a tar archive, of the type `type`.
inline std::string tarMember(const std::string &name, const std::string &content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[13];
  std::snprintf(size, sizeof(size), "%011lo", static_cast<unsigned long>(content.size()));
  header.replace(124, 11, size);
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(263, 2, "00");
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  std::snprintf(size, sizeof(size), "%06o", sum);
  header.replace(148, 7, std::string(size, 7));
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512);
  return header + padded;
}

/// The end of a tar archive.
inline const std::string kTarEnd(1024, '\0');

} // namespace cgc::tool

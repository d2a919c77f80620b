// Weights: the parameters, buffers and constants of a .pt2 archive.
#pragma once

#include "frontend/exported/archive.h"
#include "frontend/exported/program.h"
#include "ir/type.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace cgc::exported {

struct Weight {
  std::shared_ptr<const ir::TensorData> data; ///< Null if cgc cannot hold it.
  std::string refusal;                        ///< Why not: "a complex64 tensor".
  bool isParameter = false, requiresGrad = false;
};

class Weights final {
public:
  /// Reads the lists of weights of the program `name`. InvalidFile if one is missing or malformed.
  /// Borrows the archive.
  static Result<Weights> open(const Archive &archive, const std::string &name);

  /// Reads a weight. Weights that are the same view of one storage share their data, and a dense
  /// one shares the memory of its storage. InvalidFile, naming the member, if there is no such
  /// weight, or if it is pickled or reaches past its bytes.
  Result<Weight> get(const std::string &name);

private:
  struct Entry {
    Payload payload;
    std::string member; ///< "data/weights/weight_3"
  };

  explicit Weights(const Archive &archive) : archive_(&archive) {}
  Status list(const std::string &folder, const std::vector<std::string> &configs);
  Result<std::shared_ptr<const ir::TensorData>> load(const Entry &entry, const TensorMeta &meta);
  Result<std::shared_ptr<const Bytes>> storage(const std::string &member);

  using Key = std::tuple<std::string, DType, std::vector<int64_t>, std::vector<int64_t>, int64_t>;

  const Archive *archive_;
  llvm::StringMap<Entry> entries_;                               ///< Never iterated.
  std::map<std::string, std::shared_ptr<const Bytes>> storages_; ///< Never iterated.
  std::map<Key, std::shared_ptr<const ir::TensorData>> tensors_; ///< Never iterated.
};

} // namespace cgc::exported

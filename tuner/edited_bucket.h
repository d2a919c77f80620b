// EditedBucket: a bucket whose products are replaced.
#pragma once

#include "tuner/product_site.h"

namespace cgc::tuner {

/// A bucket with memory for a cuBLASLt call anywhere in it, behind its arena: one at a time runs.
class EditedBucket final {
public:
  EditedBucket(Bucket bucket, int64_t workspaceBytes);

  const Bucket &bucket() const { return bucket_; }
  /// For a call of cuBLASLt in the place of `record`, which may be one with a workspace already.
  TensorId workspaceOf(const LaunchRecord &record) const;

  /// How many products of this description there are.
  size_t count(const std::string &description) const;
  /// The bucket's records with `choice` for each product of this description.
  std::vector<LaunchRecord> recordsWith(const std::string &description, const Choice &choice) const;
  void setRecords(std::vector<LaunchRecord> records) { bucket_.records = std::move(records); }

  /// The bucket as it is now, with the workspace only if a record uses it.
  Bucket take() &&;

private:
  Bucket bucket_;
  TensorId workspace_;
  uint64_t arenaBytes_; ///< Without the workspace.
};

} // namespace cgc::tuner

// EditedBucket: a bucket with GEMMs replaced by other kernels or library calls.
#pragma once

#include "backend/gemm_record.h"

namespace cgc::tuner {

/// A copy of a bucket with a workspace for cuBLASLt calls behind its arena. All calls share it,
/// because they run one at a time.
class EditedBucket final {
public:
  EditedBucket(Bucket bucket, int64_t workspaceBytes);

  const Bucket &bucket() const { return bucket_; }
  /// The workspace for a call of cuBLASLt in place of `record`: its own if it is such a call.
  TensorId workspaceOf(const LaunchRecord &record) const;

  /// The number of GEMMs with this description (backend::describe).
  size_t count(const std::string &description) const;
  /// The bucket's records, with `choice` for each GEMM of this description.
  std::vector<LaunchRecord> recordsWith(const std::string &description,
                                        const backend::GemmChoice &choice) const;
  void setRecords(std::vector<LaunchRecord> records) { bucket_.records = std::move(records); }

  /// Moves the bucket out, with the workspace only if a record uses it.
  Bucket take() &&;

private:
  Bucket bucket_;
  TensorId workspace_;
  uint64_t arenaBytes_; ///< Without the workspace.
};

} // namespace cgc::tuner

// EditedBucket: a bucket with GEMMs replaced by other kernels or library calls.
#pragma once

#include "backend/gemm_record.h"

namespace cgc::tuner {

/// A copy of a bucket with workspaces for cuBLASLt calls behind its arena. The calls of one branch
/// share one, because they run one at a time. So do those of branches 0 and 1.
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

  /// Moves the bucket out, without the workspaces at the end that no record uses.
  Bucket take() &&;

private:
  bool isUsed(TensorId tensor) const;

  Bucket bucket_;
  std::vector<TensorId> workspaces_; ///< The first is that of branches 0 and 1.
  uint64_t arenaBytes_;              ///< Without the workspaces.
};

} // namespace cgc::tuner

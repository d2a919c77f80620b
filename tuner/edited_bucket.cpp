// EditedBucket: replaces records, and adds a workspace behind the arena.
#include "tuner/edited_bucket.h"

#include "runtime/base/checked.h"

#include <algorithm>
#include <utility>

namespace cgc::tuner {

EditedBucket::EditedBucket(Bucket bucket, int64_t workspaceBytes) : bucket_(std::move(bucket)) {
  const uint64_t offset = *alignUp(bucket_.arenaBytes, kBufferAlignment);
  workspace_ = TensorId(bucket_.tensors.size());
  bucket_.tensors.push_back({{BufferKind::Arena, 0, offset}, DType::U8, {workspaceBytes}, {1}});
  arenaBytes_ = std::exchange(bucket_.arenaBytes, offset + uint64_t(workspaceBytes));
}

TensorId EditedBucket::workspaceOf(const LaunchRecord &record) const {
  const auto *call = std::get_if<LibraryCall>(&record.op);
  return call ? call->writes[1] : workspace_;
}

size_t EditedBucket::count(const std::string &description) const {
  return size_t(std::ranges::count_if(bucket_.records, [&](const LaunchRecord &record) {
    const auto gemm = backend::decodeGemm(record, bucket_);
    return gemm && describe(gemm->problem) == description;
  }));
}

std::vector<LaunchRecord> EditedBucket::recordsWith(const std::string &description,
                                                    const backend::GemmChoice &choice) const {
  std::vector<LaunchRecord> records = bucket_.records;
  for (LaunchRecord &record : records)
    if (auto gemm = backend::decodeGemm(record, bucket_);
        gemm && describe(gemm->problem) == description) {
      gemm->choice = choice;
      gemm->workspace = workspaceOf(record);
      record.op = encodeGemm(*gemm);
    }
  return records;
}

Bucket EditedBucket::take() && {
  const auto usesIt = [&](const LaunchRecord &record) {
    return std::ranges::count(recordWrites(record), workspace_) > 0;
  };
  if (std::ranges::none_of(bucket_.records, usesIt)) {
    bucket_.tensors.pop_back();
    bucket_.arenaBytes = arenaBytes_;
  }
  return std::move(bucket_);
}

} // namespace cgc::tuner

// EditedBucket: replaces records, and adds workspaces behind the arena.
#include "tuner/edited_bucket.h"

#include "runtime/base/checked.h"
#include "runtime/plan/branches.h"

#include <algorithm>
#include <utility>

namespace cgc::tuner {

EditedBucket::EditedBucket(Bucket bucket, int64_t workspaceBytes)
    : bucket_(std::move(bucket)), arenaBytes_(bucket_.arenaBytes) {
  const uint32_t count = std::max(1u, largestBranch(bucket_));
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = *alignUp(bucket_.arenaBytes, kBufferAlignment);
    workspaces_.push_back(TensorId(bucket_.tensors.size()));
    bucket_.tensors.push_back({{BufferKind::Arena, 0, offset}, DType::U8, {workspaceBytes}, {1}});
    bucket_.arenaBytes = offset + uint64_t(workspaceBytes);
  }
}

TensorId EditedBucket::workspaceOf(const LaunchRecord &record) const {
  const auto *call = std::get_if<LibraryCall>(&record.op);
  return call ? call->writes[1] : workspaces_[std::max(1u, record.branch) - 1];
}

bool EditedBucket::isUsed(TensorId tensor) const {
  return std::ranges::any_of(bucket_.records, [&](const LaunchRecord &record) {
    return std::ranges::count(recordWrites(record), tensor) > 0;
  });
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
  while (!workspaces_.empty() && !isUsed(workspaces_.back())) {
    workspaces_.pop_back();
    const TensorRef &workspace = bucket_.tensors.back();
    bucket_.arenaBytes = workspaces_.empty() ? arenaBytes_ : workspace.slot.offset;
    bucket_.tensors.pop_back();
  }
  return std::move(bucket_);
}

} // namespace cgc::tuner

// CollectiveCall: conversion to a record and back, with the checks of a record.
#include "runtime/plan/collective_call.h"

#include "runtime/plan/invalid.h"

#include <algorithm>
#include <array>

namespace cgc {
namespace {

/// By CollectiveKind.
constexpr std::array kNames = {"all_reduce", "all_gather", "reduce_scatter", "broadcast"};

/// Whether `whole` has the sizes of `ranks` tensors like `part`, one after another in dimension 0.
bool isGathered(const TensorRef &part, const TensorRef &whole, int64_t ranks) {
  if (part.sizes.empty() || part.sizes.size() != whole.sizes.size() ||
      !std::equal(part.sizes.begin() + 1, part.sizes.end(), whole.sizes.begin() + 1))
    return false;
  return whole.sizes[0] % ranks == 0 && whole.sizes[0] / ranks == part.sizes[0];
}

} // namespace

const char *collectiveName(CollectiveKind kind) {
  return kNames[size_t(kind)];
}

bool hasRanks(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

bool mayHaveShard(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast;
}

bool isCollective(const LibraryCall &call) {
  return call.library == kCollectiveLibrary &&
         std::ranges::find(kNames, call.function) != kNames.end();
}

bool isCollective(const LaunchRecord &record) {
  const auto *const call = std::get_if<LibraryCall>(&record.op);
  return call && isCollective(*call);
}

LibraryCall libraryCall(const CollectiveCall &c) {
  LibraryCall call;
  call.library = kCollectiveLibrary;
  call.function = collectiveName(c.kind);
  call.reads = c.operands;
  call.writes = c.results;
  call.ints = {int64_t(c.reduction), c.ranks};
  if (c.shard)
    call.ints.push_back(*c.shard);
  return call;
}

Result<CollectiveCall> collectiveCall(const LibraryCall &call, std::span<const TensorRef> tensors) {
  if (call.reads.empty() || call.reads.size() != call.writes.size() || call.ints.size() < 2 ||
      call.ints.size() > 3 || !call.floats.empty() || !call.algorithm.empty())
    return invalidFile("the number of arguments is not that of a collective");
  const auto kind = CollectiveKind(std::ranges::find(kNames, call.function) - kNames.begin());
  if (call.ints[0] < 0 || call.ints[0] > int64_t(Reduction::Max))
    return invalidFile("there is no such reduction");
  CollectiveCall c{.kind = kind,
                   .reduction = Reduction(call.ints[0]),
                   .ranks = call.ints[1],
                   .operands = call.reads,
                   .results = call.writes};
  if (call.ints.size() == 3) {
    if (!mayHaveShard(kind) || call.ints[2] < 0 || call.ints[2] > UINT32_MAX)
      return invalidFile("only all_reduce and broadcast have a shard, a number of 32 bits");
    c.shard = uint32_t(call.ints[2]);
  }
  if (!reduces(kind) && c.reduction != Reduction::Sum)
    return invalidFile("only all_reduce and reduce_scatter have a reduction");
  if (hasRanks(kind) ? c.ranks < 1 || c.ranks > kMaxRanks : c.ranks != 0)
    return invalidFile("the number of ranks is not that of the collective");
  std::vector<const TensorRef *> results;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    if (c.operands[i] == kNoTensor || c.results[i] == kNoTensor)
      return invalidFile("no tensor of a collective is absent");
    const TensorRef &operand = tensors[uint32_t(c.operands[i])],
                    &result = tensors[uint32_t(c.results[i])];
    if (operand.dtype != result.dtype || (reduces(kind) && !isReducible(operand.dtype)))
      return invalidFile(
          "operand and result differ in element type, or it is none that NCCL reduces");
    if (c.reduction == Reduction::Mean && !isFloating(operand.dtype))
      return invalidFile("a mean is of a floating element type");
    if (!isDense(operand.sizes, operand.strides) || !isDense(result.sizes, result.strides))
      return invalidFile("the tensors of a collective have to be dense");
    const bool fits = kind == CollectiveKind::AllGather       ? isGathered(operand, result, c.ranks)
                      : kind == CollectiveKind::ReduceScatter ? isGathered(result, operand, c.ranks)
                                                              : operand.sizes == result.sizes;
    if (!fits)
      return invalidFile("the sizes are not those of the collective");
    results.push_back(&result);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (overlap(*results[i], *results[j]))
        return invalidFile("two results of a collective overlap");
    for (size_t j = 0; j < c.operands.size(); ++j) {
      const TensorRef &operand = tensors[uint32_t(c.operands[j])];
      if (overlap(*results[i], operand) && (i != j || hasRanks(kind) || !(operand == *results[i])))
        return invalidFile("a result of a collective overlaps an operand that it is not");
    }
  }
  return c;
}

} // namespace cgc

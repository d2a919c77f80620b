// A training plan whose moments are divided among ranks.
#pragma once

#include "runtime/plan/collective_call.h"
#include "tests/unit/runtime/training_plan.h"

namespace cgc::test {

/// A record that sends the state of tensor `tensor` from the rank with `shard`.
inline LaunchRecord sent(TensorId tensor, uint32_t shard) {
  return {.op = libraryCall({.kind = CollectiveKind::Broadcast,
                             .operands = {tensor},
                             .results = {tensor},
                             .shard = shard}),
          .branch = kCollectiveBranch};
}

/// Puts the moment of trainingPlan() into shard 0, and adds the parameters "w1", "w2" and so on,
/// which begin as "w" and get the same gradient, with their moments in shards of their own.
inline void shardMoments(SamplePlan &sample, uint32_t shards) {
  std::vector<State> &states = sample.plan.states;
  Bucket &step = sample.plan.entries[0].buckets[0];
  const auto isCall = [](const char *op) {
    return [op](const LaunchRecord &record) {
      const auto *const call = std::get_if<AtenCall>(&record.op);
      return call && call->op == op;
    };
  };
  const auto momentum = std::ranges::find_if(step.records, isCall("aten::momentum"));
  const AtenCall move = std::get<AtenCall>(momentum->op),
                 descend = std::get<AtenCall>(std::next(momentum)->op);
  states[2].shard = 0;
  std::vector<LaunchRecord> records = {{move}, {descend}, sent(descend.outputs[0], 0)};
  for (uint32_t shard = 1; shard < shards; ++shard) {
    const std::string name = "w" + std::to_string(shard);
    const auto add = [&](State state) {
      step.tensors.push_back(
          dense(BufferKind::State, uint32_t(states.size()), 0, DType::F32, {kTrained}));
      states.push_back(std::move(state));
      return id(step.tensors.size() - 1);
    };
    const TensorId parameter = add({name, StateRole::Parameter, DType::F32, {kTrained}, 0});
    const TensorId moment = add({.name = name + ":exp_avg",
                                 .role = StateRole::Optimizer,
                                 .dtype = DType::F32,
                                 .sizes = {kTrained},
                                 .shard = shard});
    AtenCall ownMove = move, ownDescend = descend;
    ownMove.args[0] = moment;
    ownMove.outputs = {moment};
    ownDescend.args[0] = parameter;
    ownDescend.args[1] = moment;
    ownDescend.outputs = {parameter};
    records.insert(records.end(), {{ownMove}, {ownDescend}, sent(parameter, shard)});
  }
  const auto at = step.records.erase(momentum, momentum + 2);
  step.records.insert(at, records.begin(), records.end());
}

} // namespace cgc::test

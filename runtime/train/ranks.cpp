// Trainer: what several ranks compare and share.
#include "runtime/exec/communicator_impl.h"
#include "runtime/train/trainer_impl.h"

namespace cgc {

Status Trainer::Impl::compareRanks() {
  if (!communicator())
    return Status::ok();
  std::string weights;
  for (const Weight &weight : plan->data().weights)
    weights += std::to_string(weight.hash) + ' ';
  const SharedFact facts[] = {
      {"the version of cgc", CGC_VERSION},
      {"the plan", "a plan of the structure " + structureHash()},
      {"the values in the plan", "values of the hash " + hashDigits(weights)},
  };
  return communicator()->agree(facts);
}

Status Trainer::Impl::shareStates() {
  if (!communicator())
    return Status::ok();
  const SharedFact facts[] = {
      {"the number of steps", std::to_string(steps)},
      {"the number of micro-batches", std::to_string(microBatches)},
  };
  CGC_TRY(communicator()->agree(facts));
  CGC_TRY(withRanks("the states of rank 0",
                    [&] { return implOf(*context).broadcastStates(*communicator()); }));
  return moveSeed();
}

Status Trainer::Impl::transfer(size_t index, const TensorView &view, bool toState) {
  if (!isDivided(index))
    return implOf(*context).transferState(index, view, toState);
  Status moved = noThrow([&] {
    return withRanks("the state '" + plan->data().states[index].name + "'", [&] {
      return implOf(*context).moveState(*communicator(), index, view, toState);
    });
  });
  if (!moved.isOk())
    communicator()->abort(moved); // The other ranks wait for this one.
  return moved;
}

Status Trainer::Impl::refuseMicroBatches(uint64_t number) const {
  if (number == 0 || !communicator() || communicator()->ranks() == 1)
    return Status::ok();
  return {Code::Usage, std::to_string(number) +
                           " micro-batches have been accumulated, of which each rank has the "
                           "gradients of its own alone; call update() first"};
}

Status Trainer::Impl::moveSeed() {
  const std::optional<size_t> state = plan->data().findState(kSeedState);
  if (!communicator() || !state)
    return Status::ok();
  uint64_t seed = 0; // Unsigned, so that the sum may wrap around.
  const TensorView view{&seed, DType::I64, DeviceKind::Cpu, {}, {}};
  CGC_TRY(implOf(*context).transferState(*state, view, /*toState=*/false));
  seed += uint64_t(communicator()->rank());
  return implOf(*context).transferState(*state, view, /*toState=*/true);
}

} // namespace cgc

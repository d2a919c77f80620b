// random: ops that draw random numbers by a generator, which a plan does not have.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerRandom(const ir::Node &, BucketBuilder &) {
  return {Code::Unsupported, "a random op has no lowering: run the pass 'random-numbers' first"};
}

} // namespace cgc::backend

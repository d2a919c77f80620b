// RequestMix: the kinds of requests that `cgc bench` puts on a session, and how often each occurs.
#pragma once

#include "tools/cgc/io/inputs.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace cgc::tool {

/// One part of --mix: the share of the requests that have this batch is its weight over the sum.
struct MixPart {
  int64_t batch = 0;
  double weight = 0;
};
/// Parses `BATCH:WEIGHT,...`, for example `1:70,4:20,64:10`. Usage, stating the expected form, if
/// the text is malformed or a batch occurs twice.
Result<std::vector<MixPart>> parseMix(const std::string &text);

/// Requests of one entry with the same shapes.
struct RequestKind {
  std::string entry;
  std::vector<IoTensor> inputs, outputs;
  int64_t rows = 0; ///< The batch; 1 for inputs without a batch.
  double weight = 0;
};

/// The kinds of requests for `mix` of each chosen entry. Sizes other than the batch are those of
/// the entry's first bucket. Without a mix: one kind for each chosen bucket, with equal weights.
/// Usage if the plan has no such entry, or if an entry cannot run a batch.
Result<std::vector<RequestKind>> requestKinds(const PlanData &plan, const BucketChoice &choice,
                                              const std::vector<MixPart> &mix);

/// Picks kinds at random by their weights. The same seed gives the same picks on every machine.
class KindPicker final {
public:
  KindPicker(const std::vector<RequestKind> &kinds, uint64_t seed);
  size_t next();
  /// A random number in [0, 1).
  double uniform();

private:
  std::vector<double> ends_; ///< The sum of the weights up to each kind.
  std::mt19937_64 random_;
};

} // namespace cgc::tool

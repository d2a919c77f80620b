// check_indices: the launch shape, the arguments and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// One CTA, so that the first index out of range is found without a second pass over memory.
inline constexpr uint32_t kCheckIndicesThreads = 1024;

/// The numbers of a report, in order.
enum IndexReport {
  kReportedCheck,    ///< `check` of the launch that found an index out of range, or 0: none has.
  kReportedPosition, ///< Its first index out of range, in row-major order of x.
  kReportedValue,
  kReportedBegin, ///< As given to the launch; so are the next two.
  kReportedCount,
  kReportedTotal,
  kReportNumbers
};

/// The numbers of a launch, in the order of its ints. An index may be `exempt`, or from `least` to
/// `end` - 1. The others are for the report: `check` is not 0.
struct CheckIndicesNumbers {
  int64_t least = 0, end = 0, exempt = 0, check = 0, begin = 0, count = 0, total = 0;

  static constexpr size_t kCount = 7;
  static CheckIndicesNumbers of(std::span<const int64_t> ints) {
    return {ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6]};
  }
};

/// InvalidFile if the kernel does not take the launch.
Result<CheckIndicesNumbers> checkCheckIndices(const LaunchView &launch);

} // namespace cgc

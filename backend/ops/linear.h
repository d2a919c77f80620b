// What linear and cgc.linear share.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the records of `input` times the transpose of `weight`, plus `bias` if there is one, into
/// `result`.
void multiplyInto(const Place &input, const Place &weight, const ir::Arg &bias, const Place &result,
                  BucketBuilder &builder);

/// Adds the record of `activation`, one of those of cgc.linear but for "none", from `input` into
/// `result`.
void activateInto(llvm::StringRef activation, const Place &input, const Place &result,
                  BucketBuilder &builder);

} // namespace cgc::backend

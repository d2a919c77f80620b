// Lowers sums of the rows of a matrix.
#pragma once

#include "backend/bucket_builder.h"

namespace cgc::backend {

/// Launches result = the sums of the columns of all rows of `input`, [..., columns]. Returns false
/// and adds nothing if no kernel takes them.
bool launchColumnSums(const Place &input, const Place &result, BucketBuilder &builder);

} // namespace cgc::backend

// lower_uniform: the random numbers of cgc.uniform, for all ops that draw some.
#pragma once

#include "backend/bucket_builder.h"

namespace cgc::backend {

/// Adds the records that fill `result`, f32, with the numbers of cgc.uniform. `seed` and `offset`
/// are i64[].
void fillUniform(const Place &result, const Place &seed, const Place &offset, int64_t stream,
                 BucketBuilder &builder);

} // namespace cgc::backend

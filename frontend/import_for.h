// ImportFor: the plans that an imported module is compiled to.
#pragma once

#include <cstdint>

namespace cgc::frontend {

enum class ImportFor : uint8_t {
  Inference,
  /// Parameters become states: of the role `buffer` if they require no gradient.
  Training,
};

} // namespace cgc::frontend

// fnv1a: a hash of short texts that the compiler evaluates.
#pragma once

#include <cstdint>
#include <string_view>

namespace cgc {

/// The 64-bit FNV-1a hash of the bytes of `text`, as draft-eastlake-fnv defines it.
constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

} // namespace cgc

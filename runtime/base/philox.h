// Philox4x32-10: random numbers that are a function of a key and a counter (Salmon et al., 2011).
// Host and device code.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CGC_HOST_DEVICE __host__ __device__
#else
#define CGC_HOST_DEVICE
#endif

namespace cgc {

struct PhiloxWords {
  uint32_t words[4];
};

// Of Philox4x32.
inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxFactors[2] = {0xD2511F53, 0xCD9E8D57},
                          kPhiloxKeySteps[2] = {0x9E3779B9, 0xBB67AE85};

/// The four random words of a counter.
CGC_HOST_DEVICE inline PhiloxWords philox(PhiloxWords counter, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kFactor0 = kPhiloxFactors[0], kFactor1 = kPhiloxFactors[1],
                     kKeyStep0 = kPhiloxKeySteps[0], kKeyStep1 = kPhiloxKeySteps[1];
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint32_t *c = counter.words;
    const uint64_t product0 = uint64_t(kFactor0) * c[0], product1 = uint64_t(kFactor1) * c[2];
    counter = {{uint32_t(product1 >> 32) ^ c[1] ^ key0, uint32_t(product1),
                uint32_t(product0 >> 32) ^ c[3] ^ key1, uint32_t(product0)}};
    key0 += kKeyStep0;
    key1 += kKeyStep1;
  }
  return counter;
}

/// The words of which cgc.uniform makes elements 4 `block` to 4 `block` + 3.
CGC_HOST_DEVICE inline PhiloxWords uniformWords(uint32_t block, uint32_t stream, int64_t seed,
                                                int64_t offset) {
  return philox({{block, stream, uint32_t(offset), uint32_t(uint64_t(offset) >> 32)}},
                uint32_t(seed), uint32_t(uint64_t(seed) >> 32));
}

/// A number in [0, 1) from the upper 24 bits of a word.
CGC_HOST_DEVICE inline float uniformNumber(uint32_t word) {
  return float(word >> 8) * 0x1p-24f;
}

} // namespace cgc

#undef CGC_HOST_DEVICE

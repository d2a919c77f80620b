// gather(): the content of a chunk of the weights' buffer.
#include "runtime/exec/upload.h"

#include <gtest/gtest.h>

#include <vector>

namespace cgc::test {
namespace {

TEST(Gather, EveryChunkHoldsItsBytesAndZerosBetween) {
  std::vector<std::byte> bytes(40);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(i + 1);
  const std::span<const std::byte> all(bytes);
  // Adjacent pieces, separate pieces, an empty piece, and one that spans many chunks.
  const std::vector<UploadPiece> pieces = {{all.subspan(0, 3), 0},
                                           {all.subspan(3, 2), 3},
                                           {all.subspan(5, 0), 8},
                                           {all.subspan(5, 1), 8},
                                           {all.subspan(6, 30), 16}};
  std::vector<std::byte> expected(50);
  for (const UploadPiece &piece : pieces)
    std::copy(piece.bytes.begin(), piece.bytes.end(), expected.begin() + piece.offset);
  for (const size_t chunk : {1u, 3u, 8u, 16u, 50u})
    for (size_t begin = 0; begin < expected.size(); begin += chunk) {
      std::vector<std::byte> got(std::min(chunk, expected.size() - begin), std::byte{0xab});
      gather(pieces, begin, got);
      EXPECT_EQ(got, std::vector<std::byte>(expected.begin() + begin,
                                            expected.begin() + begin + got.size()))
          << "chunk of " << chunk << " at " << begin;
    }
}

TEST(Gather, NoPiecesAreZeros) {
  std::vector<std::byte> got(4, std::byte{0xab});
  gather({}, 100, got);
  EXPECT_EQ(got, std::vector<std::byte>(4));
}

} // namespace
} // namespace cgc::test

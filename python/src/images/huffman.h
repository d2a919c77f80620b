// A faster Huffman decoder for libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdio> // For jpeglib.h.

// The order matters.
#include <jpeglib.h>

#include <jpegint.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace cgc_images {

/// Decodes the coefficients of a scan in place of libjpeg-turbo's own decoder: jpegint.h, the part
/// of its interface between its modules.
///
/// It removes the stuffing of the data beforehand, and looks up the lengths of a code and its value
/// together. It decodes only what has no flaw. At a code that is not in the table, a value of too
/// many bits or data that do not end with their last code, it gives up, and the picture is decoded
/// again without it.
class HuffmanDecoder : public jpeg_entropy_decoder {
public:
  /// A decoder of the scan that jpeg_start_decompress(decoder) has found, installed in `decoder`.
  /// It and `memory`, which it uses, must live until jpeg_destroy_decompress. Null for files that
  /// it does not decode: progressive, several scans, arithmetic coding, and markers after the
  /// data's begin that are not the expected restarts and the file's end.
  static std::unique_ptr<HuffmanDecoder> install(jpeg_decompress_struct &decoder,
                                                 std::vector<uint8_t> &memory);

  bool gaveUp() const { return gaveUp_; }

private:
  static constexpr int kPeek = 10;
  /// The code that the next kPeek bits begin with.
  struct Entry {
    uint8_t total; ///< Bits of the code and its value. 0: the code is longer than kPeek, or there
                   ///< is none.
    uint8_t code;  ///< Bits of the code.
    uint8_t size;  ///< Bits of the value.
    uint8_t step;  ///< 1 + the coefficients of 0 before the value.
  };
  /// The one or two AC coefficients that the next kPeek bits begin with.
  struct Pair {
    int16_t values[2]; ///< The second is the first again if there is one.
    uint8_t steps[2];  ///< From the coefficient before. The second may be 0.
    uint8_t total;     ///< Bits. 0: not even one coefficient.
    bool endsBlock;    ///< The code of a block's end follows, and is one of the bits.
  };
  struct Table {
    Entry entries[1 << kPeek];
    Pair pairs[1 << kPeek];
    uint32_t ends[17]; ///< By length, of codes aligned left to 16 bits: the first that is longer.
    int offsets[17];   ///< By length: the index in symbols of code 0.
    const uint8_t *symbols = nullptr;
    bool hasZeros; ///< The symbols are those of AC coefficients, zeros * 16 + size, else sizes.
  };
  struct Bits;

  explicit HuffmanDecoder(std::vector<uint8_t> &memory) : jpeg_entropy_decoder{}, data_(memory) {}
  static Entry entryOf(const Table &table, int symbol, int length);
  static void makeTable(const JHUFF_TBL &from, bool hasZeros, Table &table);
  static Pair pairOf(const Table &table, uint64_t bits);
  static boolean decodeUnit(j_decompress_ptr decoder, JBLOCKROW *blocks);
  static bool decodeBlock(Bits &bits, const Table &dc, const Table &ac, int &last, JCOEF *block);
  bool removeStuffing(const jpeg_source_mgr &source);
  bool beginInterval(unsigned units);
  bool decodeUnit(const jpeg_decompress_struct &decoder, JBLOCKROW *blocks);

  bool gaveUp_ = false;
  /// The data without stuffing and restart markers, and zeros.
  std::vector<uint8_t> &data_;
  /// Where each interval between restart markers ends in the data.
  std::vector<size_t> ends_;
  size_t interval_ = 0;              ///< The number of intervals that have begun.
  unsigned unitsLeft_ = 0;           ///< In the interval.
  uint64_t buffer_ = 0;              ///< The next bits, aligned left.
  int count_ = 0;                    ///< Of bits.
  const uint8_t *next_ = nullptr;    ///< After the buffer.
  int last_[MAX_COMPS_IN_SCAN] = {}; ///< DC coefficients.
  Table dc_[NUM_HUFF_TBLS], ac_[NUM_HUFF_TBLS];
};

} // namespace cgc_images

// A faster Huffman decoder for libjpeg-turbo.
#include "huffman.h"

#include <algorithm>
#include <cstring>

namespace cgc_images {
namespace {

/// The position of each coefficient of the file in a block.
constexpr uint8_t kOrder[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/// Zeros after the data: more than a block can read in vain.
constexpr int kPadding = 64 * 32 / 8 + 16;

/// The value of `size` bits after the code that `bits` begin with: negative if it begins with 0.
/// There is no branch on its sign, which could not be predicted.
int valueOf(uint64_t bits, int code, int size) {
  const auto value = int64_t(bits << code);
  const int isPositive = int(value >> 63), below = 1 - (1 << size);
  return int(uint64_t(value) >> 1 >> (63 - size)) + (~isPositive & below);
}

} // namespace

/// A copy of the reader's state for a loop, in registers.
struct HuffmanDecoder::Bits {
  uint64_t buffer;
  int count;
  const uint8_t *next;

  /// Leaves at least 56 bits: two codes with their values.
  void fill() {
    uint64_t bytes;
    std::memcpy(&bytes, next, 8);
    // Bits beyond whole bytes get into the buffer too, and come again.
    buffer |= __builtin_bswap64(bytes) >> count;
    next += unsigned(63 - count) / 8;
    count |= 56;
  }
  void drop(int bits) {
    buffer <<= bits;
    count -= bits;
  }
  Entry find(const Table &table) const {
    const Entry entry = table.entries[buffer >> (64 - kPeek)];
    return entry.total != 0 ? entry : findLong(table);
  }
  Entry findLong(const Table &table) const {
    const auto code = uint32_t(buffer >> 48);
    for (int length = kPeek + 1; length <= 16; ++length)
      if (code < table.ends[length])
        return entryOf(table, table.symbols[table.offsets[length] + int(code >> (16 - length))],
                       length);
    return {};
  }
};

/// The entry of a code of `length` bits. Sizes that no file of 8 bits has are taken for no code.
HuffmanDecoder::Entry HuffmanDecoder::entryOf(const Table &table, int symbol, int length) {
  const int size = table.hasZeros ? symbol % 16 : symbol,
            step = 1 + (table.hasZeros ? symbol / 16 : 0);
  if (size > 11)
    return {};
  return {uint8_t(length + size), uint8_t(length), uint8_t(size), uint8_t(step)};
}

/// What kPeek bits, followed by zeros, begin with.
HuffmanDecoder::Pair HuffmanDecoder::pairOf(const Table &table, uint64_t bits) {
  Pair pair{};
  for (int i = 0; i < 3; ++i) {
    const Entry entry = table.entries[bits >> (64 - kPeek)];
    if (entry.total == 0 || pair.total + entry.total > kPeek)
      break;
    if (entry.size == 0) {
      pair.endsBlock = i > 0 && entry.step != 16;
      pair.total += pair.endsBlock ? entry.total : 0;
      break;
    }
    if (i == 2)
      break;
    pair.steps[i] = entry.step;
    pair.values[i] = pair.values[1] = int16_t(valueOf(bits, entry.code, entry.size));
    pair.total += entry.total;
    bits <<= entry.total;
  }
  return pair;
}

void HuffmanDecoder::makeTable(const JHUFF_TBL &from, bool hasZeros, Table &table) {
  std::memset(table.entries, 0, sizeof table.entries);
  table.symbols = from.huffval;
  table.hasZeros = hasZeros;
  uint32_t code = 0; // Aligned left to 16 bits.
  int index = 0;
  for (int length = 1; length <= 16; ++length) {
    table.offsets[length] = index - int(code >> (16 - length));
    for (int i = 0; i < from.bits[length]; ++i, ++index, code += 1U << (16 - length))
      if (length <= kPeek)
        std::fill_n(table.entries + (code >> (16 - kPeek)), 1 << (kPeek - length),
                    entryOf(table, from.huffval[index], length));
    table.ends[length] = code;
  }
  if (hasZeros)
    for (uint64_t i = 0; i < 1 << kPeek; ++i)
      table.pairs[i] = pairOf(table, i << (64 - kPeek));
}

/// False if a restart marker has a wrong number, or the file's end is not the marker after the
/// data.
bool HuffmanDecoder::removeStuffing(const jpeg_source_mgr &source) {
  const uint8_t *from = source.next_input_byte, *const end = from + source.bytes_in_buffer;
  if (data_.size() < source.bytes_in_buffer + kPadding)
    data_.resize(source.bytes_in_buffer + kPadding);
  uint8_t *to = data_.data();
  while (true) {
    const auto *const mark = static_cast<const uint8_t *>(std::memchr(from, 0xFF, end - from));
    if (!mark || end - mark < 2)
      return false;
    std::memcpy(to, from, mark - from);
    to += mark - from;
    from = mark + 2;
    if (mark[1] == 0) {
      *to++ = 0xFF;
      continue;
    }
    const size_t number = ends_.size();
    ends_.push_back(to - data_.data());
    if (mark[1] == JPEG_EOI)
      break;
    if (mark[1] != JPEG_RST0 + number % 8)
      return false;
  }
  std::memset(to, 0, kPadding);
  return true;
}

std::unique_ptr<HuffmanDecoder> HuffmanDecoder::install(jpeg_decompress_struct &decoder,
                                                        std::vector<uint8_t> &memory) {
  if (decoder.progressive_mode || decoder.arith_code || jpeg_has_multiple_scans(&decoder))
    return nullptr;
  std::unique_ptr<HuffmanDecoder> huffman(new HuffmanDecoder(memory));
  if (!huffman->removeStuffing(*decoder.src))
    return nullptr;
  for (int i = 0; i < decoder.comps_in_scan; ++i) {
    const int dc = decoder.cur_comp_info[i]->dc_tbl_no, ac = decoder.cur_comp_info[i]->ac_tbl_no;
    if (!huffman->dc_[dc].symbols)
      makeTable(*decoder.dc_huff_tbl_ptrs[dc], false, huffman->dc_[dc]);
    if (!huffman->ac_[ac].symbols)
      makeTable(*decoder.ac_huff_tbl_ptrs[ac], true, huffman->ac_[ac]);
  }
  // Without restarts there is one interval, longer than any file.
  huffman->beginInterval(decoder.restart_interval ? decoder.restart_interval : ~0U);
  huffman->decode_mcu = decodeUnit;
  decoder.entropy = huffman.get();
  return huffman;
}

/// False if there is none, or bytes are left of the last one.
bool HuffmanDecoder::beginInterval(unsigned units) {
  const size_t begin = interval_ == 0 ? 0 : ends_[interval_ - 1];
  if (interval_ == ends_.size() || (interval_ > 0 && data_.data() + begin != next_ - count_ / 8))
    return false;
  ++interval_;
  next_ = data_.data() + begin;
  buffer_ = 0;
  count_ = 0;
  unitsLeft_ = units;
  std::fill_n(last_, MAX_COMPS_IN_SCAN, 0);
  return true;
}

/// False at a flaw. Zeros are in `block` beforehand.
inline bool HuffmanDecoder::decodeBlock(Bits &bits, const Table &dc, const Table &ac, int &last,
                                        JCOEF *block) {
  bits.fill();
  const Entry first = bits.find(dc);
  last += valueOf(bits.buffer, first.code, first.size);
  bits.drop(first.total);
  if (first.total == 0 || last != JCOEF(last))
    return false;
  block[0] = JCOEF(last);

  int k = 0;
  bool flaw = false;
  const auto peek = [&] { return ac.pairs[bits.buffer >> (64 - kPeek)]; };
  // Reads the pair, or else one code. Returns whether the block goes on.
  const auto read = [&](const Pair &pair) {
    const int one = k + pair.steps[0], two = one + pair.steps[1];
    // After the last coefficient there is no code of the block's end: the bits may be those of the
    // next block.
    if (pair.total != 0 && two < 63) [[likely]] {
      bits.drop(pair.total);
      block[kOrder[one]] = pair.values[0];
      block[kOrder[two]] = pair.values[1];
      k = two;
      return !pair.endsBlock;
    }
    const Entry entry = bits.find(ac);
    const int value = valueOf(bits.buffer, entry.code, entry.size);
    bits.drop(entry.total);
    bits.fill();
    k += entry.step;
    flaw = entry.total == 0 || (entry.size != 0 && k > 63);
    if (flaw)
      return false;
    if (entry.size == 0)
      return entry.step == 16 && k < 63; // Else the block's end.
    block[kOrder[k]] = JCOEF(value);
    return k < 63;
  };
  // There are bits for three pairs, or for two and a code. Filling takes longer than reading a
  // pair, so the first pair does not wait for it.
  Pair pair = peek();
  do {
    bits.fill();
    if (!read(pair) || !read(peek()) || !read(peek()))
      break;
    pair = peek();
  } while (true);
  return !flaw;
}

// BMI2 has shifts that do not need a certain register.
__attribute__((target_clones("bmi2", "default"))) bool
HuffmanDecoder::decodeUnit(const jpeg_decompress_struct &decoder, JBLOCKROW *blocks) {
  if (unitsLeft_ == 0 && !beginInterval(decoder.restart_interval))
    return false;
  --unitsLeft_;
  Bits bits{buffer_, count_, next_};
  const uint8_t *const end = data_.data() + ends_[interval_ - 1];
  for (int i = 0; i < decoder.blocks_in_MCU; ++i) {
    const int component = decoder.MCU_membership[i];
    const jpeg_component_info &info = *decoder.cur_comp_info[component];
    JCOEF skipped[DCTSIZE2];
    if (!decodeBlock(bits, dc_[info.dc_tbl_no], ac_[info.ac_tbl_no], last_[component],
                     blocks ? *blocks[i] : skipped) ||
        bits.next - bits.count / 8 > end)
      return false;
  }
  buffer_ = bits.buffer;
  count_ = bits.count;
  next_ = bits.next;
  return true;
}

boolean HuffmanDecoder::decodeUnit(j_decompress_ptr decoder, JBLOCKROW *blocks) {
  auto &self = *static_cast<HuffmanDecoder *>(decoder->entropy);
  self.gaveUp_ = self.gaveUp_ || !self.decodeUnit(*decoder, blocks);
  return self.gaveUp_ ? FALSE : TRUE;
}

} // namespace cgc_images

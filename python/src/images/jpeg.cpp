// Decodes JPEG files by libjpeg-turbo, with the settings of Pillow.
#include "jpeg.h"

#include "huffman.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <jerror.h>

namespace cgc_images {
namespace {

/// libjpeg's messages by code. Its own table is beside code that no shared library can link.
constexpr const char *kMessages[] = {
#define JCOPYRIGHT_SHORT "" // No errors.
#define JVERSION ""
#define JMESSAGE(code, text) text,
#include <jerror.h>
};

/// libjpeg's errors jump to the call that failed; its warnings are passed over.
struct Errors : jpeg_error_mgr {
  std::jmp_buf jump;
  bool tooManyScans = false;

  std::string message() const {
    const char *const format = kMessages[msg_code];
    char text[JMSG_LENGTH_MAX];
    if (std::strstr(format, "%s"))
      std::snprintf(text, sizeof text, format, msg_parm.s);
    else
      std::snprintf(text, sizeof text, format, msg_parm.i[0], msg_parm.i[1], msg_parm.i[2],
                    msg_parm.i[3]);
    return text;
  }
};

/// The most scans of a progressive file, of which encoders write about 10. Each passes over all of
/// the coefficients, and may have a few bytes: a small file of many scans would take hours.
constexpr int kMostScans = 100;

/// The whole file. What libjpeg wants beyond it is missing.
struct File : jpeg_source_mgr {
  bool cutShort = false;
};

class JpegReader : public RowReader {
public:
  JpegReader(std::span<const uint8_t> file, int64_t maxPixels, std::vector<uint8_t> *memory);
  ~JpegReader() override { jpeg_destroy_decompress(&decoder_); }
  JpegReader(const JpegReader &) = delete;
  JpegReader &operator=(const JpegReader &) = delete;

  int chooseColumns(int first, int end) override;
  void read(uint8_t *rows, ptrdiff_t pitch, int count) override;
  void skip(int count) override;

private:
  /// Calls `call`, which has no objects that need destruction: an error of libjpeg jumps out of it.
  template <class Call> void guarded(const Call &call);
  void start();
  /// Whether decoding cannot go on.
  bool stopped() const { return file_.cutShort || (huffman_ && huffman_->gaveUp()); }

  jpeg_decompress_struct decoder_{};
  Errors errors_{};
  File file_{};
  jpeg_progress_mgr progress_{};
  std::unique_ptr<HuffmanDecoder> huffman_;
  std::vector<uint8_t> *memory_;
  bool started_ = false;
  int row_ = 0;
};

extern "C" {
void leave(j_common_ptr decoder) {
  std::longjmp(static_cast<Errors *>(decoder->err)->jump, 1);
}
void ignoreMessage(j_common_ptr) {}
void ignoreWarning(j_common_ptr, int) {}
void formatNothing(j_common_ptr, char *text) {
  *text = 0;
}
void doNothing(j_decompress_ptr) {}
/// libjpeg calls it for each row of blocks of each scan.
void limitScans(j_common_ptr decoder) {
  if (reinterpret_cast<j_decompress_ptr>(decoder)->input_scan_number <= kMostScans)
    return;
  static_cast<Errors *>(decoder->err)->tooManyScans = true;
  leave(decoder);
}
boolean endOfFile(j_decompress_ptr decoder) {
  static_cast<File *>(decoder->src)->cutShort = true;
  return FALSE; // Suspends.
}
void skipBytes(j_decompress_ptr decoder, long count) {
  auto *const file = static_cast<File *>(decoder->src);
  if (count <= 0)
    return;
  const size_t skipped = std::min(size_t(count), file->bytes_in_buffer);
  file->cutShort |= skipped < size_t(count);
  file->next_input_byte += skipped;
  file->bytes_in_buffer -= skipped;
}
}

template <class Call> void JpegReader::guarded(const Call &call) {
  if (setjmp(errors_.jump) != 0) {
    if (errors_.tooManyScans)
      throw PictureError(CGC_INVALID_FILE, "is a JPEG of more than " + std::to_string(kMostScans) +
                                               " scans, the limit; save it again");
    const bool noMemory = errors_.msg_code == JERR_OUT_OF_MEMORY;
    throw PictureError(noMemory ? CGC_OUT_OF_MEMORY : CGC_INVALID_FILE,
                       std::string("is no JPEG that can be decoded: ") + errors_.message());
  }
  call();
  if (stopped() && huffman_)
    throw Flawed();
  if (stopped())
    throw PictureError(CGC_INVALID_FILE, "is cut short: its JPEG data end before the last row");
}

JpegReader::JpegReader(std::span<const uint8_t> file, int64_t maxPixels,
                       std::vector<uint8_t> *memory)
    : memory_(memory) {
  decoder_.err = &errors_;
  errors_.error_exit = leave;
  errors_.output_message = ignoreMessage;
  errors_.emit_message = ignoreWarning;
  errors_.format_message = formatNothing;
  errors_.reset_error_mgr = ignoreMessage;
  file_.next_input_byte = file.data();
  file_.bytes_in_buffer = file.size();
  file_.init_source = doNothing;
  file_.fill_input_buffer = endOfFile;
  file_.skip_input_data = skipBytes;
  file_.resync_to_restart = jpeg_resync_to_restart;
  file_.term_source = doNothing;
  try {
    guarded([&] {
      jpeg_create_decompress(&decoder_);
      decoder_.src = &file_;
      progress_.progress_monitor = limitScans;
      decoder_.progress = &progress_;
      jpeg_read_header(&decoder_, TRUE);
    });
    height_ = int(decoder_.image_height);
    width_ = columns_ = int(decoder_.image_width);
    checkPixels(height_, width_, maxPixels);
    switch (decoder_.num_components) {
    case 1:
    case 3:
      decoder_.out_color_space = JCS_RGB;
      break;
    case 4:
      decoder_.out_color_space = JCS_CMYK;
      channels_ = 4;
      break;
    default:
      throw PictureError(CGC_INVALID_FILE, "is a JPEG of " +
                                               std::to_string(decoder_.num_components) +
                                               " components; 1, 3 and 4 are supported");
    }
  } catch (...) {
    jpeg_destroy_decompress(&decoder_);
    throw;
  }
}

void JpegReader::start() {
  if (started_)
    return;
  guarded([&] { jpeg_start_decompress(&decoder_); });
  if (decoder_.progressive_mode)
    for (int i = 0; i < decoder_.num_components; ++i)
      for (const int missingBits : decoder_.coef_bits[i]) // -1: all of them.
        if (missingBits != 0)
          throw ForPillow();
  if (memory_)
    huffman_ = HuffmanDecoder::install(decoder_, *memory_);
  started_ = true;
}

int JpegReader::chooseColumns(int first, int end) {
  start();
  // libjpeg gives whole blocks of columns. Those at the ends differ, because upsampling there has
  // no neighbors, so one more on each side is decoded.
  const int block = decoder_.max_h_samp_factor * DCTSIZE;
  first = std::max(0, (first / block - 1) * block);
  end = std::min(width_, (end + block - 1) / block * block + block);
  if (end - first == width_)
    return 0;
  JDIMENSION begin = first, count = end - first;
  guarded([&] { jpeg_crop_scanline(&decoder_, &begin, &count); });
  columns_ = int(count);
  return int(begin);
}

void JpegReader::read(uint8_t *rows, ptrdiff_t pitch, int count) {
  start();
  guarded([&] {
    for (int row = 0; row < count && !stopped();) {
      JSAMPROW pointers[16];
      const int most = std::min(count - row, 16);
      for (int i = 0; i < most; ++i)
        pointers[i] = rows + (row + i) * pitch;
      row += int(jpeg_read_scanlines(&decoder_, pointers, most));
    }
  });
  row_ += count;
  if (row_ == height_ && !huffman_)
    guarded([&] { // Refuses wrong markers after the data, and lets the last marker be missing.
      jpeg_finish_decompress(&decoder_);
      file_.cutShort = false;
    });
  if (channels_ == 4)
    for (int row = 0; row < count; ++row)
      for (int i = 0; i < columns_ * 4; ++i)
        rows[row * pitch + i] = ~rows[row * pitch + i];
}

void JpegReader::skip(int count) {
  start();
  if (count == 0)
    return;
  // Libjpeg does not decode what is skipped up to the end: whether the file is cut short shows in
  // its last row.
  const bool toEnd = row_ + count == height_;
  if (const int skipped = count - int(toEnd); skipped > 0) {
    guarded([&] { jpeg_skip_scanlines(&decoder_, skipped); });
    row_ += skipped;
  }
  if (toEnd) {
    std::vector<uint8_t> last(size_t(columns_) * channels_);
    read(last.data(), 0, 1);
  }
}

} // namespace

bool isJpeg(std::span<const uint8_t> file) {
  return file.size() >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
}

std::unique_ptr<RowReader> readJpeg(std::span<const uint8_t> file, int64_t maxPixels,
                                    std::vector<uint8_t> *memory) {
  return std::make_unique<JpegReader>(file, maxPixels, memory);
}

} // namespace cgc_images

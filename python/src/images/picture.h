// What the parts of cgc._images share: the rows of a picture, and what is wrong with it.
#pragma once

#include <cgc.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace cgc_images {

/// A picture that cannot be used. The message completes "the picture ...".
class PictureError : public std::runtime_error {
public:
  PictureError(cgc_code code, const std::string &message)
      : std::runtime_error(message), code_(code) {}
  cgc_code code() const { return code_; }

private:
  cgc_code code_;
};

/// Throws PictureError for a picture of more than `most` pixels.
inline void checkPixels(int64_t height, int64_t width, int64_t most) {
  if (height * width > most)
    throw PictureError(CGC_INVALID_FILE,
                       "has " + std::to_string(width) + " x " + std::to_string(height) +
                           " pixels, more than the limit of " + std::to_string(most));
}

/// The rows of a picture from top to bottom, uint8 [height, width, channels].
class RowReader {
public:
  virtual ~RowReader() = default;
  int height() const { return height_; }
  int width() const { return width_; }
  /// 3: RGB. 4: CMYK as Pillow keeps it, where 0 is no ink.
  int channels() const { return channels_; }

  /// Lets read() give only columns [first, end), and perhaps some beside them. Returns the column
  /// that read() now begins with. Call it once, before read() and skip().
  virtual int chooseColumns(int first, int end) = 0;
  /// The number of columns that read() gives.
  int columns() const { return columns_; }
  /// Writes `count` rows to `rows`, `pitch` bytes apart.
  virtual void read(uint8_t *rows, ptrdiff_t pitch, int count) = 0;
  /// Passes over `count` rows.
  virtual void skip(int count) = 0;

protected:
  int height_ = 0, width_ = 0, channels_ = 3, columns_ = 0;
};

} // namespace cgc_images

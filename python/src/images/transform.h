// open_clip's transform for inference: resize, crop or pad, convert to RGB, normalize.
#pragma once

#include "picture.h"
#include "resample.h"

#include <span>
#include <vector>

namespace cgc_images {

enum class ResizeMode { Shortest, Longest, Squash };

/// What open_clip's PreprocessCfg says of sizes.
struct Sizes {
  int height, width; ///< Of the result, in pixels.
  Filter filter;
  ResizeMode mode;
  int fill; ///< The value of all channels beside a picture, 0..255, before the conversion to RGB.
  int edge; ///< Shortest, as transformers has it: the shorter edge of the resized picture, at least
            ///< those of the result; 0: as open_clip has it.
};

/// Where the result lies in the resized picture.
struct Placement {
  int height, width; ///< Of the resized picture. 0: the resize gives no pixels.
  int top,
      left; ///< The pixel of the resized picture at the upper left of the result. Below 0: padding.
};

/// The arithmetic of torchvision's Resize and CenterCrop, of open_clip's ResizeKeepRatio and
/// CenterCropOrPad, and with `edge` of transformers' resize and center_crop.
Placement place(const Sizes &sizes, int height, int width);

/// Memory of a thread that its pictures use one after the other.
struct Scratch {
  std::vector<uint8_t> coefficients, band, middle, resized, row;

  size_t bytes() const {
    return coefficients.capacity() + band.capacity() + middle.capacity() + resized.capacity() +
           row.capacity();
  }
};

/// Where a picture's result goes: result(y, x, c) = table[c * 256 + value], of `elementSize` bytes
/// (1, 2 or 4).
struct Result {
  std::span<const std::byte> table; ///< [3, 256]
  int elementSize;
  bool channelsLast; ///< [height, width, 3], else [3, height, width].
  std::byte *data;
};

/// Reads the picture to its end, and writes its result. Throws PictureError, and then has written
/// nothing.
void transform(const Sizes &sizes, RowReader &picture, const Result &result, Scratch &scratch);

/// Where a picture goes for the op cgc.resize, which resizes it: a row of the op's pixels, and one
/// of its table, whose layout the op's documentation has.
struct Packed {
  std::span<uint8_t> pixels;
  std::span<int32_t> table; ///< 3 + (height + width) (1 + taps) of the result.

  int taps(const Sizes &sizes) const;
};

/// Reads the picture to its end, and writes the pixels that its result needs, and the table. A
/// picture of which the row cannot hold these pixels, whose taps the table cannot hold, or that is
/// not RGB is resized here: `packed.pixels` must hold the result. Throws PictureError.
void pack(const Sizes &sizes, RowReader &picture, const Packed &packed, Scratch &scratch);

} // namespace cgc_images

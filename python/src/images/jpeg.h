// Decodes JPEG files as Pillow does.
#pragma once

#include "picture.h"

#include <memory>
#include <span>
#include <vector>

namespace cgc_images {

/// Whether Pillow takes this file for a JPEG: it begins with FF D8 FF.
bool isJpeg(std::span<const uint8_t> file);

/// A reader of a JPEG file in memory, which must outlive it. Reads the header, and allocates no
/// memory for the pixels.
///
/// Every row equals that of Pillow: the accurate integer DCT and smooth upsampling, grey as RGB,
/// CMYK and YCCK with Adobe's inversion undone whether or not there is Adobe's marker, and no
/// rotation by EXIF. read() and skip() refuse a file that ends before its last row, and go on with
/// a warning's data as Pillow does. Throws PictureError: damaged, cut short, a process or a number
/// of components that is not supported, more than `maxPixels` pixels, or more than 100 scans.
/// With `memory`, which must outlive the reader, a faster decoder throws Flawed at the first flaw
/// in the coefficients. Of a progressive file without all of its scans, the first call of a reader
/// throws ForPillow: libjpeg smooths what it has, and each release in another way.
std::unique_ptr<RowReader> readJpeg(std::span<const uint8_t> file, int64_t maxPixels,
                                    std::vector<uint8_t> *memory);

/// The file has a flaw, perhaps one that readJpeg passes over without `memory`.
struct Flawed {};

/// Only Pillow reads the file as Pillow does.
struct ForPillow {};

} // namespace cgc_images

// References of patches_*.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void patches(const ReferenceArguments &a) {
  const TensorView &image = a.reads[0], &y = a.writes[0];
  const int64_t height = a.ints[0], width = a.ints[1], columns = y.sizes[1];
  const int64_t images = image.sizes[0], channels = image.sizes[1], imageHeight = image.sizes[2],
                imageWidth = image.sizes[3];
  T *to = resultOf<T>(y);
  for (int64_t i = 0; i < images; ++i)
    for (int64_t down = 0; down < imageHeight / height; ++down)
      for (int64_t across = 0; across < imageWidth / width; ++across) {
        T *const end = to + columns;
        for (int64_t channel = 0; channel < channels; ++channel)
          for (int64_t line = 0; line < height; ++line) {
            const int64_t row = (i * channels + channel) * imageHeight + down * height + line;
            to = std::copy_n(dataOf<T>(image) + row * imageWidth + across * width, width, to);
          }
        to = std::fill_n(to, end - to, fromFloat<T>(0));
      }
}

} // namespace

CGC_FLOAT_REFERENCES(patches, patches)

} // namespace cgc::reference

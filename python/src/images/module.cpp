// The extension module cgc._images: preprocessing of pictures. cgc/preprocess.py wraps it.
#include "batch.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;
using namespace cgc_images;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Picture = nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Source sourceOf(nb::handle source) {
  if (nb::isinstance<nb::bytes>(source)) {
    const auto path = nb::borrow<nb::bytes>(source);
    return std::string(path.c_str(), path.size());
  }
  if (Bytes file; nb::try_cast(source, file, false))
    return std::span(file.data(), file.size());
  const auto picture = nb::cast<Picture>(source, false);
  return Pixels{picture.data(), int64_t(picture.shape(0)), int64_t(picture.shape(1))};
}

/// The pictures, table and results are arrays of the caller, which hold their memory during the
/// call.
std::vector<std::optional<std::pair<int, std::string>>>
run(const Sizes &sizes, const nb::list &sources, const Bytes &table, bool channelsLast,
    const WritableBytes &results, int threads, int64_t maxPixels) {
  const int elementSize = int(table.size() / (3 * 256));
  if (results.size() != nb::len(sources) * sizes.height * sizes.width * 3 * elementSize)
    throw nb::value_error("the results have another size");
  std::vector<Source> all;
  for (const nb::handle source : sources)
    all.push_back(sourceOf(source));
  const Result result{std::as_bytes(std::span(table.data(), table.size())), elementSize,
                      channelsLast, reinterpret_cast<std::byte *>(results.data())};
  std::vector<std::optional<Failure>> failures;
  {
    const nb::gil_scoped_release released;
    failures = transformAll(sizes, all, result, threads, maxPixels);
  }
  std::vector<std::optional<std::pair<int, std::string>>> pairs;
  for (const std::optional<Failure> &failure : failures)
    pairs.push_back(
        failure ? std::optional(std::pair(int(failure->code.value_or(CGC_OK)), failure->message))
                : std::nullopt);
  return pairs;
}

Sizes sizesOf(int height, int width, const std::string &filter, const std::string &mode, int fill,
              int edge) {
  return {height,
          width,
          filter == "bilinear" ? Filter::Bilinear : Filter::Bicubic,
          mode == "squash"    ? ResizeMode::Squash
          : mode == "longest" ? ResizeMode::Longest
                              : ResizeMode::Shortest,
          fill,
          edge};
}

} // namespace

NB_MODULE(_images, m) {
  m.doc() = "Preprocessing of pictures. Use cgc.preprocess.";
  nb::class_<Sizes>(m, "Sizes")
      .def(
          "__init__",
          [](Sizes *self, int height, int width, const std::string &filter, const std::string &mode,
             int fill,
             int edge) { new (self) Sizes(sizesOf(height, width, filter, mode, fill, edge)); },
          "height"_a, "width"_a, "interpolation"_a, "resize_mode"_a, "fill_color"_a, "edge"_a)
      .def(
          "place",
          [](const Sizes &self, int height, int width) {
            const Placement at = place(self, height, width);
            return std::tuple(at.height, at.width, at.top, at.left);
          },
          "height"_a, "width"_a)
      .def("run", &run, "sources"_a, "table"_a, "channels_last"_a, "results"_a, "threads"_a,
           "max_pixels"_a);
  m.def("uses_avx2", &usesAvx2);
  m.def("set_avx2", &setAvx2, "use"_a);
}

// The extension module cgc._images: preprocessing of pictures. cgc/preprocess.py wraps it.
#include "batch.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;
using namespace cgc_images;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Picture = nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
template <class T> using WritableRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
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

/// For each picture None, or the code and the message of its failure.
using Failures = std::vector<std::optional<std::pair<int, std::string>>>;

/// Reads the sources, which are arrays and paths of the caller, without the GIL.
Failures readEach(const nb::list &sources, const Consume &consume, int threads, int64_t maxPixels) {
  std::vector<Source> all;
  for (const nb::handle source : sources)
    all.push_back(sourceOf(source));
  std::vector<std::optional<Failure>> failures;
  {
    const nb::gil_scoped_release released;
    failures = readAll(all, consume, threads, maxPixels);
  }
  Failures pairs;
  for (const std::optional<Failure> &failure : failures)
    pairs.push_back(
        failure ? std::optional(std::pair(int(failure->code.value_or(CGC_OK)), failure->message))
                : std::nullopt);
  return pairs;
}

/// The table and the results are arrays of the caller, which hold their memory during the call.
Failures run(const Sizes &sizes, const nb::list &sources, const Bytes &table, bool channelsLast,
             const WritableBytes &results, int threads, int64_t maxPixels) {
  const int elementSize = int(table.size() / (3 * 256));
  const size_t size = size_t(sizes.height) * sizes.width * 3 * elementSize;
  if (results.size() != nb::len(sources) * size)
    throw nb::value_error("the results have another size");
  const Result first{std::as_bytes(std::span(table.data(), table.size())), elementSize,
                     channelsLast, reinterpret_cast<std::byte *>(results.data())};
  const auto consume = [&](size_t i, RowReader &picture, Scratch &scratch) {
    Result result = first;
    result.data += i * size;
    transform(sizes, picture, result, scratch);
  };
  return readEach(sources, consume, threads, maxPixels);
}

/// Rows of `pixels` and `tables` are those of the sources.
Failures packEach(const Sizes &sizes, const nb::list &sources, const WritableRows<uint8_t> &pixels,
                  const WritableRows<int32_t> &tables, int threads, int64_t maxPixels) {
  const size_t bytes = pixels.shape(1), integers = tables.shape(1);
  if (pixels.shape(0) != nb::len(sources) || tables.shape(0) != nb::len(sources) ||
      bytes < size_t(sizes.height) * sizes.width * 3 || integers <= 3 ||
      (integers - 3) % size_t(sizes.height + sizes.width) != 0 ||
      Packed{{}, {tables.data(), integers}}.taps(sizes) < 1)
    throw nb::value_error("the pixels or the tables have another size");
  const auto consume = [&](size_t i, RowReader &picture, Scratch &scratch) {
    pack(sizes, picture,
         {{pixels.data() + i * bytes, bytes}, {tables.data() + i * integers, integers}}, scratch);
  };
  return readEach(sources, consume, threads, maxPixels);
}

const std::map<std::string, Filter> kFilters{{"bicubic", Filter::Bicubic},
                                             {"bilinear", Filter::Bilinear}};
const std::map<std::string, ResizeMode> kResizeModes{{"shortest", ResizeMode::Shortest},
                                                     {"longest", ResizeMode::Longest},
                                                     {"squash", ResizeMode::Squash}};

Sizes sizesOf(int height, int width, const std::string &filter, const std::string &mode, int fill,
              int edge) {
  return {height, width, kFilters.at(filter), kResizeModes.at(mode), fill, edge};
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
           "max_pixels"_a)
      .def("pack", &packEach, "sources"_a, "pixels"_a, "tables"_a, "threads"_a, "max_pixels"_a);
  m.def("uses_avx2", &usesAvx2);
  m.def("set_avx2", &setAvx2, "use"_a);
}

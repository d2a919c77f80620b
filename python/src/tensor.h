// Tensor: an array of the caller, imported without a copy.
#pragma once

#include <cgc.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <variant>
#include <vector>

namespace cgc_python {

/// A dense array that a request reads or writes. Keeps its memory alive.
class Tensor final {
public:
  /// Imports `array` through DLPack or the buffer protocol. `what` names it in errors, such as
  /// "input 'image'". Usage for an object that is no array, has memory that is strided, freed,
  /// read-only where `writable`, neither on the host nor on a CUDA GPU, or an element type that no
  /// plan has.
  Tensor(nanobind::handle array, const char *what, bool writable);

  /// Memory of the caller, which lives until the request is complete. `dtype` is a name of cgc.h.
  Tensor(uintptr_t address, const char *dtype, std::vector<int64_t> sizes, bool onGpu);
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;

  /// Valid as long as this object.
  const cgc_tensor &view() const { return view_; }
  nanobind::tuple shape() const;
  /// The index of the GPU; std::nullopt if the memory is the host's.
  std::optional<int> gpu() const;

private:
  using Readable = nanobind::ndarray<nanobind::ro>;
  using Writable = nanobind::ndarray<>;
  /// Imports `array` and returns true, unless it is no array or, for Writable, read-only. `dtype`
  /// replaces the element type that the array has.
  template <class Array>
  bool read(nanobind::handle array, const char *what, std::optional<cgc_dtype> dtype);
  /// Checks the properties of an imported array and sets view_.
  template <class Array>
  void describe(const Array &array, const char *what, std::optional<cgc_dtype> dtype);

  std::variant<Readable, Writable> array_;
  std::vector<int64_t> sizes_; ///< Without an array.
  cgc_tensor view_ = {};
  int device_ = 0;
};

/// The views, in order. They live as long as the tensors.
std::vector<cgc_tensor> viewsOf(const std::vector<const Tensor *> &tensors);

} // namespace cgc_python

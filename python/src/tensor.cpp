// Tensor: an array of the caller, imported without a copy.
#include "tensor.h"

#include "raise.h"

#include <algorithm>

namespace nb = nanobind;

namespace cgc_python {
namespace {

using nb::dlpack::dtype_code;

/// An element type of DLPack and that of cgc.
struct ElementType {
  dtype_code code;
  int bits;
  cgc_dtype dtype;
};
constexpr ElementType kElementTypes[] = {
    {dtype_code::Float, 32, CGC_F32},   {dtype_code::Float, 16, CGC_F16},
    {dtype_code::Bfloat, 16, CGC_BF16}, {dtype_code::Float, 64, CGC_F64},
    {dtype_code::Int, 64, CGC_I64},     {dtype_code::Int, 32, CGC_I32},
    {dtype_code::Int, 16, CGC_I16},     {dtype_code::Int, 8, CGC_I8},
    {dtype_code::UInt, 8, CGC_U8},      {dtype_code::Bool, 8, CGC_BOOL},
};

std::optional<cgc_dtype> dtypeOf(nb::dlpack::dtype given) {
  for (const ElementType &type : kElementTypes)
    if (int(type.code) == given.code && type.bits == given.bits && given.lanes == 1)
      return type.dtype;
  return std::nullopt;
}

std::string text(nb::handle object) {
  return nb::str(object).c_str();
}

[[noreturn]] void refuse(const std::string &what, const std::string &why) {
  raise(CGC_USAGE, what + " " + why);
}

/// Refuses an object that could not be imported, with the cause that it gives itself.
[[noreturn]] void refuseObject(nb::handle object, const std::string &what, bool writable) {
  if (nb::ndarray<nb::ro> readable; writable && nb::try_cast(object, readable, false))
    refuse(what, "is read-only; give an array that may be written");
  const std::string type = "is of type " + text(object.type().attr("__name__"));
  try {
    if (nb::hasattr(object, "__dlpack__"))
      object.attr("__dlpack__")(); // Nanobind has dropped its error.
  } catch (nb::python_error &error) {
    refuse(what, type + ", which does not give its memory: " + text(error.value()));
  }
  refuse(what, type +
                   ", which is no array whose memory can be read; give a NumPy array or an object "
                   "with __dlpack__, such as a torch tensor");
}

bool isBFloat16OfNumPy(nb::handle array) {
  return nb::hasattr(array, "dtype") && nb::hasattr(array, "__array_interface__") &&
         text(array.attr("dtype")) == "bfloat16";
}

template <class Array> bool isDense(const Array &array) {
  int64_t step = 1;
  bool dense = true;
  for (size_t d = array.ndim(); d-- > 0;) {
    if (array.shape_ptr()[d] == 0)
      return true;
    dense &= array.shape_ptr()[d] == 1 || array.stride_ptr()[d] == step;
    step *= array.shape_ptr()[d];
  }
  return dense;
}

} // namespace

template <class Array>
void Tensor::describe(const Array &array, const char *what, std::optional<cgc_dtype> dtype) {
  if (!dtype)
    dtype = dtypeOf(array.dtype());
  if (!dtype)
    refuse(what, "has an element type that no plan has");
  switch (array.device_type()) {
  case nb::device::cpu::value:
  case nb::device::cuda_host::value:
    view_.memory = CGC_HOST;
    break;
  case nb::device::cuda::value:
  case nb::device::cuda_managed::value:
    view_.memory = CGC_GPU;
    break;
  default:
    refuse(what, "is on a device of DLPack's type " + std::to_string(array.device_type()) +
                     "; give memory of the host or of a CUDA GPU");
  }
  if (!isDense(array))
    refuse(what,
           "is strided; give a dense copy, such as np.ascontiguousarray(x) or x.contiguous()");
  if (array.size() > 0 && !array.data())
    refuse(what, "has no memory: it was freed");
  view_.data = const_cast<void *>(static_cast<const void *>(array.data()));
  view_.sizes = array.shape_ptr();
  view_.rank = int32_t(array.ndim());
  view_.dtype = *dtype;
  device_ = array.device_id();
}

template <class Array>
bool Tensor::read(nb::handle array, const char *what, std::optional<cgc_dtype> dtype) {
  Array imported;
  if (!nb::try_cast(array, imported, false))
    return false;
  describe(imported, what, dtype);
  array_ = std::move(imported);
  return true;
}

Tensor::Tensor(nb::handle array, const char *what, bool writable) {
  // torch exports the memory of a tensor with the negative bit, which has the numbers negated.
  if (nb::hasattr(array, "is_neg") && nb::cast<bool>(array.attr("is_neg")()))
    refuse(what, "is the negative of its memory (torch's negative bit); give x.resolve_neg()");
  const auto readAs = [&](nb::handle object, std::optional<cgc_dtype> dtype) {
    return writable ? read<Writable>(object, what, dtype) : read<Readable>(object, what, dtype);
  };
  if (readAs(array, std::nullopt))
    return;
  // NumPy does not export the bfloat16 of ml_dtypes: a view of its bits is read instead.
  if (!isBFloat16OfNumPy(array) || !readAs(array.attr("view")("uint16"), CGC_BF16))
    refuseObject(array, what, writable);
}

Tensor::Tensor(uintptr_t address, const char *dtype, std::vector<int64_t> sizes, bool onGpu)
    : sizes_(std::move(sizes)) {
  const ElementType *const type = std::ranges::find_if(kElementTypes, [&](const ElementType &each) {
    return std::string_view(cgc_dtype_name(each.dtype)) == dtype;
  });
  if (type == std::end(kElementTypes))
    throw nb::type_error("no plan has this dtype");
  view_.data = reinterpret_cast<void *>(address);
  view_.sizes = sizes_.data();
  view_.rank = int32_t(sizes_.size());
  view_.dtype = type->dtype;
  view_.memory = onGpu ? CGC_GPU : CGC_HOST;
}

nb::tuple Tensor::shape() const {
  nb::list sizes;
  for (int32_t d = 0; d < view_.rank; ++d)
    sizes.append(view_.sizes[d]);
  return nb::tuple(sizes);
}

std::optional<int> Tensor::gpu() const {
  return view_.memory == CGC_GPU ? std::optional(device_) : std::nullopt;
}

std::vector<cgc_tensor> viewsOf(const std::vector<const Tensor *> &tensors) {
  std::vector<cgc_tensor> views;
  for (const Tensor *tensor : tensors)
    views.push_back(tensor->view());
  return views;
}

} // namespace cgc_python

// Checks of ATen arguments by value: one function for each op with dangerous arguments, and their
// table.
#include "runtime/plan/aten_values.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cgc {
namespace {

using Sizes = std::vector<int64_t>;

std::string text(const Sizes &sizes) {
  std::string list;
  for (const int64_t size : sizes)
    list += (list.empty() ? "" : ",") + std::to_string(size);
  return "[" + list + "]";
}

/// A call's arguments by their position in LibTorch's schema. Written arguments come last in the
/// schema and are not counted.
class Args {
public:
  Args(const AtenCall &call, std::span<const TensorRef> tensors) : call_(call), tensors_(tensors) {}

  const std::string &overload() const { return call_.overload; }

  /// Null if the argument is missing or of another kind.
  template <class T> const T *get(size_t i) const {
    return i < call_.args.size() ? std::get_if<T>(&call_.args[i]) : nullptr;
  }
  const TensorRef *tensor(size_t i) const {
    const auto *id = get<TensorId>(i);
    return id ? &tensors_[uint32_t(*id)] : nullptr;
  }
  std::optional<double> number(size_t i) const {
    if (const auto *integer = get<int64_t>(i))
      return double(*integer);
    const auto *real = get<double>(i);
    return real ? std::optional(*real) : std::nullopt;
  }
  /// Element `k` of a list of ints. A list of one element applies to both dimensions of an image.
  std::optional<int64_t> element(size_t i, size_t k) const {
    const auto *list = get<Sizes>(i);
    if (!list || list->empty())
      return std::nullopt;
    return list->size() == 1  ? list->front()
           : k < list->size() ? std::optional((*list)[k])
                              : std::nullopt;
  }
  /// The sizes of all tensor arguments.
  std::vector<const Sizes *> allSizes() const {
    std::vector<const Sizes *> sizes;
    for (size_t i = 0; i < call_.args.size(); ++i)
      if (const TensorRef *t = tensor(i))
        sizes.push_back(&t->sizes);
    return sizes;
  }

  /// InvalidFile unless the plan's first result has these sizes.
  Status expectResult(const Sizes &sizes) const {
    if (call_.outputs.empty() || call_.outputs[0] == kNoTensor)
      return Status::ok(); // Other checks refuse such a call.
    const Sizes &plans = tensors_[uint32_t(call_.outputs[0])].sizes;
    if (plans == sizes)
      return Status::ok();
    return {Code::InvalidFile,
            "its result is " + text(sizes) + ", and the plan has a tensor of " + text(plans)};
  }

  /// Refuses a result with gaps or permuted dimensions.
  Status expectDenseResult() const {
    for (const TensorId id : call_.outputs)
      if (id != kNoTensor) {
        const TensorRef &result = tensors_[uint32_t(id)];
        if (!isDense(result.sizes, result.strides))
          return {Code::InvalidFile, "its result has to be dense: LibTorch ignores the strides"};
      }
    return Status::ok();
  }

private:
  const AtenCall &call_;
  std::span<const TensorRef> tensors_;
};

Status refuse(const std::string &what) {
  return {Code::InvalidFile, what};
}

/// The sizes that `all` broadcast to; std::nullopt if they do not broadcast.
std::optional<Sizes> broadcast(const std::vector<const Sizes *> &all) {
  Sizes result;
  for (const Sizes *sizes : all) {
    if (sizes->size() > result.size())
      result.insert(result.begin(), sizes->size() - result.size(), 1);
    const size_t skipped = result.size() - sizes->size();
    for (size_t i = 0; i < sizes->size(); ++i) {
      int64_t &size = result[skipped + i];
      const int64_t other = (*sizes)[i];
      if (size != other && size != 1 && other != 1)
        return std::nullopt;
      size = size == 1 ? other : size;
    }
  }
  return result;
}

Status checkBroadcast(const Args &args) {
  const std::optional<Sizes> sizes = broadcast(args.allSizes());
  return sizes ? args.expectResult(*sizes) : refuse("its tensors do not broadcast to each other");
}

/// Arguments: condition, self, other. The overload with `condition` alone returns the positions of
/// true elements, so the data determine the size of its result.
Status checkWhere(const Args &args) {
  return args.overload().empty() ? refuse("it yields tensors of sizes that the data decide")
                                 : checkBroadcast(args);
}

/// Arguments: input, weight, bias, running_mean, running_var, training, ...
Status checkBatchNorm(const Args &args) {
  const bool *training = args.get<bool>(5);
  return training && !*training ? Status::ok()
                                : refuse("'training' has to be false: it would write to its "
                                         "running statistics");
}

/// Arguments: query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
/// ...
Status checkNativeAttention(const Args &args) {
  const int64_t *heads = args.get<int64_t>(4);
  if (!heads || *heads < 1)
    return refuse("'num_head' has to be at least 1");
  for (const size_t i : {0, 1, 2, 5, 6, 7, 8})
    if (!args.tensor(i) || args.tensor(i)->dtype != args.tensor(0)->dtype)
      return refuse("its tensors have to be of one element type");
  return Status::ok();
}

/// Arguments: query, key, value, mask, dropout_p, is_causal, scale, enable_gqa.
Status checkAttention(const Args &args) {
  if (args.number(4) != 0)
    return refuse("'dropout_p' has to be 0: its result would be random");
  const TensorRef *tensors[] = {args.tensor(0), args.tensor(1), args.tensor(2)};
  std::vector<Sizes> batches;
  for (const TensorRef *tensor : tensors) {
    if (!tensor || tensor->sizes.size() < 2 || tensor->dtype != tensors[0]->dtype)
      return refuse("its query, key and value have to be matrices of one element type");
    // LibTorch's CPU kernel divides by the number of heads.
    if (tensor->sizes.size() > 2 && *(tensor->sizes.end() - 3) == 0)
      return refuse("its query, key and value have to have a head");
    batches.emplace_back(tensor->sizes.begin(), tensor->sizes.end() - 2);
  }
  // LibTorch makes the result like the query. If another dimension has the stride 1 of the columns,
  // the columns of that result may be strided, and the CPU kernel writes them as if they were
  // dense.
  for (size_t d = 0; d + 1 < tensors[0]->sizes.size(); ++d)
    if (tensors[0]->strides[d] == 1 && tensors[0]->sizes[d] > 1 &&
        tensors[0]->strides.back() == 1 && tensors[0]->sizes.back() > 1)
      return refuse("its query has elements that overlap: two of its dimensions have stride 1");
  const auto rows = [](const TensorRef *tensor) { return *(tensor->sizes.end() - 2); };
  if (rows(tensors[1]) != rows(tensors[2]))
    return refuse("its key and value have to have the same number of rows");
  // With enable_gqa (argument 7), each head of the keys and values serves several heads of the
  // query.
  const bool *grouped = args.get<bool>(7);
  if (grouped && *grouped)
    for (Sizes *batch : {&batches[1], &batches[2]}) {
      if (batch->empty() || batches[0].empty() || batches[0].back() % batch->back() != 0)
        return refuse(
            "the number of its key's and value's heads has to divide that of its query's");
      batch->back() = batches[0].back();
    }
  std::optional<Sizes> result = broadcast({&batches[0], &batches[1], &batches[2]});
  if (!result)
    return refuse("its query, key and value do not broadcast to each other");
  result->push_back(rows(tensors[0]));
  result->push_back(tensors[2]->sizes.back());
  return args.expectResult(*result);
}

/// Arguments: (end), (start, end) or (start, end, step), depending on the overload.
Status checkArange(const Args &args) {
  const bool hasStart = args.overload().starts_with("start");
  const bool hasStep = args.overload() == "start_step" || args.overload() == "start_out";
  const auto start = hasStart ? args.number(0) : 0.0, end = args.number(hasStart ? 1 : 0),
             step = hasStep ? args.number(2) : 1.0;
  if (!start || !end || !step)
    return refuse("its bounds have to be numbers");
  const double count = std::ceil((*end - *start) / *step);
  // A double represents every count up to 2^53 exactly, and no tensor of a plan has more elements.
  if (!(count >= 0 && count <= 0x1p53))
    return refuse("the number of its elements is negative or too large");
  return args.expectResult({int64_t(count)});
}

/// Arguments: self, pad, ... `pad` has two numbers for each dimension, from the last dimension on.
Status checkPad(const Args &args) {
  const TensorRef *self = args.tensor(0);
  const auto *pad = args.get<Sizes>(1);
  if (!self || !pad || pad->size() % 2 != 0 || pad->size() / 2 > self->sizes.size())
    return refuse("'pad' has to be two numbers for each dimension that is padded");
  Sizes sizes = self->sizes;
  for (size_t i = 0; i < pad->size(); ++i) {
    int64_t &size = sizes[sizes.size() - 1 - i / 2];
    if (__builtin_add_overflow(size, (*pad)[i], &size))
      return refuse("'pad' is too large");
  }
  return args.expectResult(sizes);
}

/// Arguments: self, output_size.
Status checkAdaptivePool(const Args &args) {
  const TensorRef *self = args.tensor(0);
  const auto height = args.element(1, 0), width = args.element(1, 1);
  if (!self || self->sizes.size() < 2 || !height || !width)
    return refuse("its image has to have a height and a width, and 'output_size' both");
  Sizes sizes = self->sizes;
  sizes[sizes.size() - 2] = *height;
  sizes[sizes.size() - 1] = *width;
  return args.expectResult(sizes);
}

/// The number of windows along one dimension of an image; std::nullopt if an argument is out of
/// range.
std::optional<int64_t> windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                               int64_t dilation) {
  constexpr int64_t kMost = int64_t(1) << 31;
  const auto within = [](int64_t value, int64_t least) { return value >= least && value <= kMost; };
  if (!within(size, 0) || !within(kernel, 1) || !within(stride, 1) || !within(padding, 0) ||
      !within(dilation, 1))
    return std::nullopt;
  const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? std::nullopt : std::optional(room / stride + 1);
}

/// Arguments: input, weight, bias, stride, padding, dilation, groups.
template <size_t kSpatial> Status checkConvolution(const Args &args) {
  const TensorRef *input = args.tensor(0), *weight = args.tensor(1);
  const int64_t *groups = args.get<int64_t>(6);
  if (!input || input->sizes.size() < kSpatial + 1 || !weight ||
      weight->sizes.size() != kSpatial + 2 || !groups || *groups < 1)
    return refuse("its image, weight or number of groups is none");
  Sizes sizes = input->sizes;
  sizes[sizes.size() - kSpatial - 1] = weight->sizes[0];
  for (size_t i = 0; i < kSpatial; ++i) {
    const auto stride = args.element(3, i), padding = args.element(4, i),
               dilation = args.element(5, i);
    int64_t &size = sizes[sizes.size() - kSpatial + i];
    const auto count = stride && padding && dilation
                           ? windows(size, weight->sizes[2 + i], *stride, *padding, *dilation)
                           : std::nullopt;
    if (!count)
      return refuse("its stride, padding or dilation is out of range for its image");
    size = *count;
  }
  return args.expectResult(sizes);
}

/// Arguments: input, weight, bias, stride, padding, output_padding, groups, dilation.
Status checkTransposedConvolution(const Args &args) {
  const TensorRef *input = args.tensor(0), *weight = args.tensor(1);
  const int64_t *groups = args.get<int64_t>(6);
  constexpr int64_t kMost = int64_t(1) << 20; // No product below overflows.
  if (!input || input->sizes.size() < 3 || !weight || weight->sizes.size() != 4 || !groups ||
      *groups < 1 || *groups > kMost || weight->sizes[1] > kMost)
    return refuse("its image, weight or number of groups is none");
  Sizes sizes = input->sizes;
  sizes[sizes.size() - 3] = weight->sizes[1] * *groups;
  for (const size_t i : {0, 1}) {
    const auto stride = args.element(3, i), padding = args.element(4, i),
               extra = args.element(5, i), dilation = args.element(7, i);
    int64_t &size = sizes[sizes.size() - 2 + i];
    const auto within = [](std::optional<int64_t> value, int64_t least) {
      return value && *value >= least && *value <= kMost;
    };
    if (!within(stride, 1) || !within(padding, 0) || !within(extra, 0) || !within(dilation, 1) ||
        !within(size, 1) || !within(weight->sizes[2 + i], 1))
      return refuse("its stride, padding or dilation is out of range for its image");
    size =
        (size - 1) * *stride - 2 * *padding + *dilation * (weight->sizes[2 + i] - 1) + *extra + 1;
  }
  return args.expectResult(sizes);
}

/// Arguments: self, dim, index.
Status checkIndexSelect(const Args &args) {
  const TensorRef *self = args.tensor(0), *index = args.tensor(2);
  const int64_t *dim = args.get<int64_t>(1);
  const int64_t rank = self ? std::ssize(self->sizes) : 0;
  if (!self || !index || index->sizes.size() > 1 || !dim || *dim < -std::max(rank, int64_t(1)) ||
      *dim >= std::max(rank, int64_t(1)))
    return refuse("its dimension does not exist, or its index is no list");
  Sizes sizes = self->sizes;
  if (rank > 0)
    sizes[*dim < 0 ? *dim + rank : *dim] = index->sizes.empty() ? 1 : index->sizes[0];
  return args.expectResult(sizes);
}

/// Arguments: self, output_size, ..., scales_h, scales_w. LibTorch multiplies coordinates by the
/// inverse of a scale and converts the product to an integer, which indexes the image.
template <size_t kFirstScale> Status checkUpsample(const Args &args) {
  for (const size_t i : {kFirstScale, kFirstScale + 1})
    if (const auto scale = args.number(i); scale && !(*scale >= 0x1p-20 && *scale <= 0x1p20))
      return refuse("its scales have to be between 2^-20 and 2^20");
  const TensorRef *self = args.tensor(0);
  const auto height = args.element(1, 0), width = args.element(1, 1);
  if (!self || self->sizes.size() != 4 || !height || !width)
    return refuse("its image has to be [N, C, H, W], and 'output_size' a height and a width");
  return args.expectResult({self->sizes[0], self->sizes[1], *height, *width});
}

/// LibTorch 2.11 writes `out` of these ops as if it were dense, or not at all.
Status checkDenseResult(const Args &args) {
  return args.expectDenseResult();
}

/// An op with dangerous arguments: the overloads that a plan may call, and their check. Other
/// overloads of the op are refused.
struct Row {
  std::string_view op;
  std::vector<std::string_view> overloads;
  Status (*check)(const Args &);
};

const std::vector<Row> &rows() {
  static const std::vector<Row> table = {
      {"aten::_native_multi_head_attention", {"", "out"}, &checkNativeAttention},
      {"aten::_softmax", {"", "out"}, &checkDenseResult},
      {"aten::adaptive_avg_pool2d", {"", "out"}, &checkAdaptivePool},
      {"aten::arange", {"", "out", "start", "start_out", "start_step"}, &checkArange},
      {"aten::batch_norm", {""}, &checkBatchNorm},
      {"aten::constant_pad_nd", {"", "out"}, &checkPad},
      {"aten::conv1d", {""}, &checkConvolution<1>},
      {"aten::conv2d", {""}, &checkConvolution<2>},
      {"aten::conv_transpose2d", {"input"}, &checkTransposedConvolution},
      {"aten::floor_divide", {"", "Scalar", "Scalar_out", "out"}, &checkBroadcast},
      {"aten::gelu", {"", "out"}, &checkDenseResult},
      {"aten::index_select", {"", "out"}, &checkIndexSelect},
      {"aten::scaled_dot_product_attention", {""}, &checkAttention},
      {"aten::upsample_bicubic2d", {"", "out"}, &checkUpsample<3>},
      {"aten::upsample_bilinear2d", {"", "out"}, &checkUpsample<3>},
      {"aten::upsample_nearest2d", {"", "out"}, &checkUpsample<2>},
      {"aten::where", {"", "Scalar", "ScalarOther", "ScalarSelf", "self", "self_out"}, &checkWhere},
  };
  return table;
}

} // namespace

Status checkAtenValues(const AtenCall &call, std::span<const TensorRef> tensors) {
  if (std::ranges::all_of(call.outputs, [](TensorId id) { return id == kNoTensor; }))
    return refuse("it writes nothing");
  const auto row = std::ranges::find(rows(), call.op, &Row::op);
  if (row == rows().end())
    return Status::ok();
  if (std::ranges::find(row->overloads, call.overload) == row->overloads.end())
    return refuse("this cgc does not know its overload");
  return row->check(Args(call, tensors));
}

} // namespace cgc

// Checks of ATen arguments by value: one function for each op with dangerous arguments, and their
// table. Those of ops on images are in aten_image_values.cpp.
#include "runtime/plan/aten_values.h"

#include "runtime/plan/aten_call_args.h"

#include <algorithm>
#include <cmath>

namespace cgc {

using namespace aten_values;

namespace {

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

/// Refuses an argument that is neither none nor a dense list of `channels` elements: LibTorch does
/// not check the sizes of statistics.
Status checkChannels(const Args &args, size_t i, int64_t channels) {
  const TensorRef *list = args.tensor(i);
  if (!list || (list->sizes == Sizes{channels} && isDense(list->sizes, list->strides)))
    return Status::ok();
  return refuse("its parameters and statistics have to be dense, with an element for each channel");
}

/// Arguments: input, weight, bias, (running_mean, running_var,) training, momentum, eps. LibTorch
/// reads statistics that do not exist if 'training' is false.
template <bool kTracked> Status checkBatchNormTrain(const Args &args) {
  const TensorRef *input = args.tensor(0);
  if (!input || input->sizes.size() < 2 || input->sizes[1] == 0)
    return refuse("its input has no channels");
  const bool *training = args.get<bool>(kTracked ? 5 : 3);
  if (!training || !*training)
    return refuse("'training' has to be true");
  for (size_t i = 1; i < (kTracked ? 5 : 3); ++i) {
    if (i >= 3 && !args.tensor(i))
      return refuse("its running statistics are none");
    CGC_TRY(checkChannels(args, i, input->sizes[1]));
  }
  return args.expectResult(input->sizes);
}

/// Arguments: grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train,
/// ...
Status checkBatchNormBackward(const Args &args) {
  const TensorRef *grad = args.tensor(0), *input = args.tensor(1);
  const bool *train = args.get<bool>(7);
  if (!grad || !input || grad->sizes != input->sizes || input->sizes.size() < 2 ||
      input->sizes[1] == 0)
    return refuse("its gradient has to have the sizes of its input, which has channels");
  if (!train || !*train || !args.tensor(5) || !args.tensor(6))
    return refuse("'train' has to be true, and its statistics are those of the batch");
  for (size_t i = 2; i < 7; ++i)
    CGC_TRY(checkChannels(args, i, input->sizes[1]));
  return args.expectResult(input->sizes);
}

/// Arguments: grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask. LibTorch
/// checks neither the sizes of the gradient and the statistics nor whether they are dense.
Status checkLayerNormBackward(const Args &args) {
  const TensorRef *grad = args.tensor(0), *input = args.tensor(1);
  const auto *shape = args.get<Sizes>(2);
  if (!grad || !input || !shape || grad->sizes != input->sizes ||
      shape->size() > input->sizes.size() || !isDense(grad->sizes, grad->strides))
    return refuse("its gradient has to be dense and of the sizes of its input");
  Sizes rows = input->sizes;
  std::fill(rows.end() - static_cast<ptrdiff_t>(shape->size()), rows.end(), 1);
  for (const size_t i : {3, 4})
    if (const TensorRef *statistics = args.tensor(i);
        !statistics || statistics->sizes != rows ||
        !isDense(statistics->sizes, statistics->strides))
      return refuse("its statistics have to be dense, with an element for each row");
  return args.expectResult(input->sizes);
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

/// Arguments: query, key, value, mask, dropout_p, is_causal, (dropout_mask,) scale, enable_gqa,
/// which is argument kGrouped.
template <size_t kGrouped> Status checkAttention(const Args &args) {
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
  // With enable_gqa, each head of the keys and values serves several heads of the query.
  const bool *grouped = args.get<bool>(kGrouped);
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

/// Arguments: x1, x2, p, compute_mode.
Status checkDistances(const Args &args) {
  const TensorRef *x1 = args.tensor(0), *x2 = args.tensor(1);
  if (!x1 || !x2 || x1->sizes.size() < 2 || x2->sizes.size() < 2 ||
      x1->sizes.back() != x2->sizes.back())
    return refuse("its tensors have to be matrices with as many columns");
  const Sizes leading[] = {{x1->sizes.begin(), x1->sizes.end() - 2},
                           {x2->sizes.begin(), x2->sizes.end() - 2}};
  std::optional<Sizes> sizes = broadcast({&leading[0], &leading[1]});
  if (!sizes)
    return refuse("its tensors do not broadcast to each other");
  sizes->insert(sizes->end(), {*(x1->sizes.end() - 2), *(x2->sizes.end() - 2)});
  return args.expectResult(*sizes);
}

/// Arguments: self, p.
Status checkPairDistances(const Args &args) {
  const TensorRef *self = args.tensor(0);
  constexpr int64_t kMost = int64_t(1) << 31; // The product below does not overflow.
  if (!self || self->sizes.size() != 2 || self->sizes[0] > kMost)
    return refuse("it takes a matrix");
  const int64_t rows = self->sizes[0];
  return args.expectResult({rows == 0 ? 0 : rows * (rows - 1) / 2});
}

/// Arguments: self, indices, values, accumulate. LibTorch checks that the indices are inside of
/// `self` when the call runs.
Status checkIndexPut(const Args &args) {
  const TensorRef *self = args.tensor(0);
  const auto *indices = args.get<std::vector<TensorId>>(1);
  if (!self || !indices)
    return refuse("it has no tensor or no indices");
  for (const TensorId id : *indices)
    if (id != kNoTensor && args.at(id).dtype != DType::I64 && args.at(id).dtype != DType::I32)
      return refuse("its indices have to be integers: how many elements a mask picks depends on "
                    "data");
  return args.expectResult(self->sizes);
}

/// Arguments: self, mask, source. LibTorch checks that the source has enough elements when the call
/// runs.
Status checkMaskedScatter(const Args &args) {
  const TensorRef *self = args.tensor(0), *mask = args.tensor(1);
  if (!self || !mask || mask->dtype != DType::Bool)
    return refuse("its mask has to be a tensor of bools");
  const std::optional<Sizes> sizes = broadcast({&self->sizes, &mask->sizes});
  return sizes ? args.expectResult(*sizes) : refuse("its tensors do not broadcast to each other");
}

/// Arguments: self, ... The result is like self.
Status checkSelfSizes(const Args &args) {
  const TensorRef *self = args.tensor(0);
  return self ? args.expectResult(self->sizes) : refuse("it has no tensor");
}

/// LibTorch 2.11 writes `out` of these ops as if it were dense, or not at all.
Status checkDenseResult(const Args &args) {
  return args.expectDenseResult();
}

const std::vector<Row> &rows() {
  static const std::vector<Row> table = [] {
    std::vector<Row> all = {
        {"aten::_native_batch_norm_legit", {"no_stats"}, &checkBatchNormTrain<false>},
        {"aten::_native_batch_norm_legit_functional", {""}, &checkBatchNormTrain<true>},
        {"aten::_native_multi_head_attention", {"", "out"}, &checkNativeAttention},
        {"aten::_scaled_dot_product_attention_math", {""}, &checkAttention<8>},
        {"aten::_softmax", {"", "out"}, &checkDenseResult},
        {"aten::arange", {"", "out", "start", "start_out", "start_step"}, &checkArange},
        {"aten::batch_norm", {""}, &checkBatchNorm},
        {"aten::cdist", {""}, &checkDistances},
        {"aten::floor_divide", {"", "Scalar", "Scalar_out", "out"}, &checkBroadcast},
        {"aten::gelu", {"", "out"}, &checkDenseResult},
        {"aten::gelu_backward", {"", "grad_input"}, &checkDenseResult},
        {"aten::index_put", {""}, &checkIndexPut},
        {"aten::index_select", {"", "out"}, &checkIndexSelect},
        {"aten::masked_scatter", {""}, &checkMaskedScatter},
        {"aten::native_batch_norm_backward", {""}, &checkBatchNormBackward},
        {"aten::native_layer_norm_backward", {""}, &checkLayerNormBackward},
        {"aten::pdist", {""}, &checkPairDistances},
        {"aten::reflection_pad3d", {"", "out"}, &checkDenseResult},
        {"aten::replication_pad3d", {"", "out"}, &checkDenseResult},
        {"aten::scaled_dot_product_attention", {""}, &checkAttention<7>},
        {"aten::scatter_reduce", {"two", "two_out"}, &checkSelfSizes},
        {"aten::where",
         {"", "Scalar", "ScalarOther", "ScalarSelf", "self", "self_out"},
         &checkWhere},
    };
    const std::vector<Row> images = imageRows();
    all.insert(all.end(), images.begin(), images.end());
    return all;
  }();
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

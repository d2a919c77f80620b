// Mutator of plan files: edits fields, lists and shapes of a plan and writes it with matching
// checksums.
#include "runtime/plan/aten_ops.h"
#include "runtime/plan/layout.h"
#include "tests/fuzz/plan_bytes.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <tuple>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace cgc::fuzz {
namespace {

using Random = std::minstd_rand;

// Calls `f` with every field of a table.
template <class F> void fields(fb::TensorT &t, F &f) {
  f(t.buffer), f(t.index), f(t.offset), f(t.dtype), f(t.sizes), f(t.strides);
}
template <class F> void fields(fb::ArgT &a, F &f) {
  f(a.kind), f(a.number), f(a.text), f(a.numbers), f(a.reals), f(a.tensors);
}
template <class F> void fields(fb::RecordT &r, F &f) {
  f(r.kind), f(r.location), f(r.name), f(r.function), f(r.reads), f(r.writes), f(r.ints);
  f(r.floats), f(r.launch), f(r.abi_hash), f(r.algorithm), f(r.args), f(r.flag);
  f(r.branch);
}
template <class F> void fields(fb::IndexBoundT &bound, F &f) {
  f(bound.end), f(bound.offset), f(bound.sizes), f(bound.strides), f(bound.least);
}
template <class F> void fields(fb::IoT &io, F &f) {
  f(io.name), f(io.dtype), f(io.sizes), f(io.index_bounds), f(io.batch_dim);
}
template <class F> void fields(fb::BucketT &b, F &f) {
  f(b.inputs), f(b.outputs), f(b.tensors), f(b.records), f(b.arena_bytes);
  f(b.expected_micros), f(b.is_measured);
}
template <class F> void fields(fb::EntryT &e, F &f) {
  f(e.name), f(e.buckets), f(e.rows_independent), f(e.rows_op), f(e.rows_reason);
  f(e.rows_location);
}
template <class F> void fields(fb::WeightT &w, F &f) {
  f(w.name), f(w.dtype), f(w.sizes), f(w.is_computed);
}
template <class F> void fields(fb::LocationT &l, F &f) {
  f(l.file), f(l.line), f(l.module_path);
}
template <class F> void fields(fb::OpLibraryT &l, F &f) {
  f(l.name), f(l.hash);
}
template <class F> void fields(fb::ParameterGroupT &g, F &f) {
  for (std::string &glob : g.globs)
    f(glob);
  f(g.lr_scale);
}
template <class F> void fields(fb::ParameterClampT &c, F &f) {
  f(c.path), f(c.min), f(c.max);
}
template <class F> void fields(fb::TrainingT &t, F &f) {
  f(t.method), f(t.loss), f(t.autocast), f(t.rule), f(t.schedule), f(t.numbers), f(t.nesterov);
  f(t.groups), f(t.clamps), f(t.growth_interval), f(t.keeps_gradients), f(t.copies);
}
template <class F> void fields(fb::PlanT &p, F &f) {
  f(p.target), f(p.producer), f(p.entries), f(p.weights), f(p.locations), f(p.precision);
  f(p.gpu), f(p.multiprocessors), f(p.op_libraries), f(p.tf32);
  if (p.training)
    fields(*p.training, f);
}

/// All fields of a plan, grouped by type. Elements of number lists count as fields.
class Pools {
public:
  explicit Pools(fb::PlanT &plan) { fields(plan, *this); }

  template <class T> std::vector<T *> &of() { return std::get<std::vector<T *>>(pools_); }
  /// Calls `f` with the pool of each type.
  template <class F> void each(F f) {
    std::apply([&](auto &...pool) { (f(pool), ...); }, pools_);
  }

  template <class T> void operator()(T &field) { of<T>().push_back(&field); }
  template <class T> void operator()(std::vector<T> &list) {
    of<std::vector<T>>().push_back(&list);
    for (T &item : list)
      (*this)(item);
  }
  template <class T> void operator()(std::vector<std::unique_ptr<T>> &list) {
    of<std::vector<std::unique_ptr<T>>>().push_back(&list);
    for (auto &item : list)
      fields(*item, *this);
  }

private:
  template <class T> using Tables = std::vector<std::vector<std::unique_ptr<T>> *>;
  std::tuple<std::vector<int32_t *>, std::vector<uint8_t *>, std::vector<uint32_t *>,
             std::vector<uint64_t *>, std::vector<int64_t *>, std::vector<double *>,
             std::vector<std::string *>, std::vector<std::vector<uint8_t> *>,
             std::vector<std::vector<uint32_t> *>, std::vector<std::vector<int64_t> *>,
             std::vector<std::vector<double> *>, Tables<fb::IoT>, Tables<fb::TensorT>,
             Tables<fb::RecordT>, Tables<fb::ArgT>, Tables<fb::BucketT>, Tables<fb::EntryT>,
             Tables<fb::WeightT>, Tables<fb::LocationT>, Tables<fb::OpLibraryT>,
             Tables<fb::IndexBoundT>, Tables<fb::ParameterGroupT>, Tables<fb::ParameterClampT>>
      pools_;
};

class Mutator {
public:
  Mutator(fb::PlanT &plan, Random &random) : plan_(plan), random_(random) {}

  /// Makes one or two edits, mostly of fields that affect the plan's meaning.
  void mutate() {
    for (size_t edits = 1 + below(2); edits > 0; --edits)
      switch (below(8)) {
      case 0:
        renameOp();
        break;
      case 1:
        resize();
        break;
      case 2:
      case 3:
      case 4:
        editArgument();
        break;
      case 5:
        editTensor();
        break;
      default:
        editField();
      }
    if (below(4) != 0)
      repair();
  }

private:
  size_t below(size_t n) { return random_() % n; }
  template <class T> T &anyOf(std::vector<T> &list) { return list[below(list.size())]; }

  /// Edits one field. Every type of field is equally likely.
  void editField() {
    Pools pools(plan_);
    size_t types = 0;
    pools.each([&](auto &pool) { types += !pool.empty(); });
    size_t chosen = below(types);
    pools.each([&](auto &pool) {
      if (!pool.empty() && chosen-- == 0)
        edit(*anyOf(pool), pool);
    });
  }

  int64_t anyNumber() {
    static constexpr int64_t kEdges[] = {0,
                                         1,
                                         -1,
                                         2,
                                         7,
                                         127,
                                         256,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         int64_t(1) << 32,
                                         int64_t(1) << 40,
                                         int64_t(1) << 53,
                                         int64_t(1) << 61,
                                         int64_t(1) << 62,
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<int64_t>::min()};
    return below(2) ? int64_t(below(9)) - 2 : kEdges[below(std::size(kEdges))];
  }

  template <class T> void edit(T &number, std::vector<T *> &pool) {
    switch (below(5)) {
    case 0:
      number = static_cast<T>(anyNumber());
      break;
    case 1:
      number = *anyOf(pool);
      break;
    case 2:
      number = static_cast<T>(static_cast<uint64_t>(number) + 1);
      break;
    case 3:
      number = static_cast<T>(static_cast<uint64_t>(number) - 1);
      break;
    case 4:
      number = static_cast<T>(static_cast<uint64_t>(number) ^ uint64_t(1) << below(64));
    }
  }
  void edit(double &number, std::vector<double *> &pool) {
    static constexpr double kEdges[] = {
        0,    -0.0,  0.5,   1,     -1,       1e-38,
        1e30, 1e300, 1e-45, 65536, INFINITY, std::numeric_limits<double>::quiet_NaN()};
    number = below(4) ? kEdges[below(std::size(kEdges))] : *anyOf(pool);
  }
  void edit(std::string &text, std::vector<std::string *> &pool) {
    static constexpr const char *kTexts[] = {"",     "out",  "Tensor", "Scalar", "tanh",
                                             "none", "dim",  "floor",  "trunc",  "mean",
                                             "ij",   "\xff", "aten::", "a/b"};
    if (below(2))
      text = *anyOf(pool);
    else
      text = kTexts[below(std::size(kTexts))];
  }
  template <class T> void edit(std::vector<T> &list, std::vector<std::vector<T> *> &pool) {
    switch (below(4)) {
    case 0:
      list = std::vector<T>(*anyOf(pool));
      break;
    case 1:
      if (list.size() < 20)
        list.insert(list.begin() + below(list.size() + 1), static_cast<T>(anyNumber()));
      break;
    default:
      rearrange(list);
    }
  }
  template <class T>
  void edit(std::vector<std::unique_ptr<T>> &list,
            std::vector<std::vector<std::unique_ptr<T>> *> &pool) {
    const auto &other = *anyOf(pool);
    if (below(2) || other.empty())
      return rearrange(list);
    list.insert(list.begin() + below(list.size() + 1),
                std::make_unique<T>(*other[below(other.size())]));
  }
  template <class List> void rearrange(List &list) {
    if (list.empty())
      return;
    if (below(2))
      list.erase(list.begin() + below(list.size()));
    else
      std::swap(anyOf(list), anyOf(list));
  }

  /// Every table of this type in the plan.
  template <class T> std::vector<T *> all() {
    Pools pools(plan_);
    std::vector<T *> tables;
    for (auto *list : pools.template of<std::vector<std::unique_ptr<T>>>())
      for (auto &table : *list)
        tables.push_back(table.get());
    return tables;
  }

  /// Changes an ATen argument's value or, rarely, its kind.
  void editArgument() {
    const std::vector<fb::ArgT *> args = all<fb::ArgT>();
    if (args.empty())
      return editField();
    fb::ArgT &arg = *args[below(args.size())];
    if (below(8) == 0) {
      arg.kind = below(11);
      return;
    }
    std::vector<double *> reals;
    std::vector<std::vector<int64_t> *> numbers{&arg.numbers};
    switch (arg.kind) {
    case 1: // TensorId
    case 7: // DType
      arg.number = below(12);
      break;
    case 2:
      if (arg.tensors.empty() || below(4) == 0)
        arg.tensors.push_back(below(12));
      else
        anyOf(arg.tensors) = below(8) ? below(12) : 0xffffffff;
      break;
    case 4: {
      double value = 0;
      reals = {&value};
      edit(value, reals);
      arg.number = std::bit_cast<int64_t>(value);
      break;
    }
    case 5:
      arg.number = !arg.number;
      break;
    case 6: {
      std::vector<std::string *> texts{&arg.text};
      edit(arg.text, texts);
      break;
    }
    case 9:
      if (arg.numbers.empty() || below(4) == 0)
        edit(arg.numbers, numbers);
      else
        anyOf(arg.numbers) = anyNumber();
      break;
    default:
      arg.number = anyNumber();
    }
  }

  /// Changes a tensor's view of its memory: strides, offset or one size.
  void editTensor() {
    const std::vector<fb::TensorT *> tensors = all<fb::TensorT>();
    if (tensors.empty())
      return;
    fb::TensorT &tensor = *tensors[below(tensors.size())];
    const size_t rank = std::min(tensor.sizes.size(), tensor.strides.size());
    const size_t dim = rank ? below(rank) : 0;
    switch (below(rank ? 5 : 1)) {
    case 0:
      tensor.offset = below(2) ? below(16) * 16 : all<fb::TensorT>()[below(tensors.size())]->offset;
      break;
    case 1:
      tensor.strides[dim] = below(3) ? int64_t(below(5)) : anyNumber();
      break;
    case 2:
      tensor.strides[dim] = int64_t(uint64_t(tensor.strides[dim]) * 2);
      break;
    case 3:
      tensor.sizes[dim] = below(3) ? int64_t(below(9)) : anyNumber();
      break;
    case 4:
      std::swap(tensor.strides[dim], anyOf(tensor.strides));
      std::swap(tensor.sizes[dim], anyOf(tensor.sizes));
    }
  }

  /// Changes an ATen call's op or overload and keeps its arguments.
  void renameOp() {
    static constexpr const char *kOverloads[] = {
        "",        "out",         "Tensor",     "Tensor_out",  "Scalar",      "Scalar_out",
        "dim",     "dim_out",     "self",       "values",      "Tensor_mode", "int",
        "default", "int_out",     "start",      "start_step",  "dim_IntList", "dim_values",
        "other",   "IntList_out", "ScalarSelf", "ScalarOther", "dim_int",     "correction"};
    const std::vector<fb::RecordT *> records = all<fb::RecordT>();
    if (records.empty())
      return;
    fb::RecordT &record = *records[below(records.size())];
    record.kind = 2;
    if (below(2))
      record.name = kAllowedAtenOps[below(std::size(kAllowedAtenOps))];
    else
      record.function = kOverloads[below(std::size(kOverloads))];
    record.flag = below(2);
  }

  /// Replaces one size by another number wherever it occurs as a size. Most tensors become dense;
  /// some keep their strides or stay unchanged.
  void resize() {
    const std::vector<fb::TensorT *> tensors = all<fb::TensorT>();
    std::vector<std::vector<int64_t> *> sizes;
    for (fb::TensorT *tensor : tensors)
      if (below(8) != 0)
        sizes.push_back(&tensor->sizes);
    for (fb::IoT *io : all<fb::IoT>())
      sizes.push_back(&io->sizes);
    for (fb::WeightT *weight : all<fb::WeightT>())
      sizes.push_back(&weight->sizes);
    std::erase_if(sizes, [](auto *s) { return s->empty(); });
    if (sizes.empty())
      return;
    const int64_t from = anyOf(*anyOf(sizes)), to = below(3) ? int64_t(below(10)) : anyNumber();
    for (auto *s : sizes)
      std::ranges::replace(*s, from, to);
    for (fb::TensorT *tensor : tensors)
      if (below(8) != 0)
        makeDense(*tensor);
  }

  static void makeDense(fb::TensorT &tensor) {
    tensor.strides.assign(tensor.sizes.size(), 1);
    for (size_t i = tensor.sizes.size(); i-- > 1;)
      tensor.strides[i - 1] =
          int64_t(uint64_t(tensor.strides[i]) * uint64_t(std::max<int64_t>(tensor.sizes[i], 1)));
  }

  /// Adjusts the element types of weights, inputs and outputs, and the arena's size, so that the
  /// plan is not refused for these alone.
  void repair() {
    for (auto &entry : plan_.entries)
      for (auto &bucket : entry->buckets) {
        uint64_t end = 0;
        for (auto &tensor : bucket->tensors) {
          const uint32_t i = tensor->index;
          if (tensor->buffer == 0 && i < plan_.weights.size())
            plan_.weights[i]->dtype = tensor->dtype;
          else if (tensor->buffer == 2 && i < bucket->inputs.size())
            bucket->inputs[i]->dtype = tensor->dtype;
          else if (tensor->buffer == 3 && i < bucket->outputs.size())
            bucket->outputs[i]->dtype = tensor->dtype;
          if (tensor->buffer != 1 || tensor->dtype >= kNumDTypes)
            continue;
          const auto extent = tensorExtent({{BufferKind::Arena, 0, tensor->offset},
                                            DType(tensor->dtype),
                                            tensor->sizes,
                                            tensor->strides});
          if (extent && tensor->offset < 1 << 20 && *extent < 1 << 24)
            end = std::max(end, tensor->offset + *extent);
        }
        bucket->arena_bytes = std::max(bucket->arena_bytes, *alignUp(end, kBufferAlignment));
      }
  }

  fb::PlanT &plan_;
  Random &random_;
};

/// Changes bytes of the metadata, including FlatBuffers' own structure.
std::vector<uint8_t> withChangedBytes(std::span<const uint8_t> file, size_t maxSize) {
  PlanHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  std::vector<uint8_t> metadata(file.begin() + sizeof(header),
                                file.begin() + sizeof(header) + header.metadataBytes);
  const size_t size = metadata.size();
  metadata.resize(std::max(size, maxSize));
  metadata.resize(LLVMFuzzerMutate(metadata.data(), size, metadata.size()));
  return sealedFile(metadata, std::as_bytes(file.subspan(header.weightsOffset)), header.features);
}

} // namespace
} // namespace cgc::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  using namespace cgc::fuzz;
  Random random(seed);
  random.discard(1); // Nearby seeds give similar first numbers.
  auto file = PlanFile::parse({data, size});
  const unsigned how = random() % 32;
  if (!file || how == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::vector<uint8_t> changed;
  if (how < 3) {
    changed = withChangedBytes({data, size}, maxSize);
  } else {
    Mutator(file->plan, random).mutate();
    changed = file->write();
  }
  if (changed.size() > maxSize)
    return size;
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}

// toText: a stable listing of a plan, for people and tests.
#include "runtime/plan/plan_file.h"

#include <charconv>
#include <functional>

namespace cgc {
namespace {

/// The shortest text that parses back to the same number, in every locale.
std::string number(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}
std::string number(int64_t value) {
  return std::to_string(value);
}

std::string quoted(const std::string &text) {
  std::string s = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      s += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      static constexpr char kHex[] = "0123456789abcdef";
      s += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    } else {
      s += c;
    }
  }
  return s + '"';
}

std::string hex(uint64_t value) {
  char buffer[16];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, 16);
  return "0x" + std::string(buffer, end);
}

std::string name(TensorId id) {
  return id == kNoTensor ? "none" : "t" + std::to_string(uint32_t(id));
}

template <class T, class F> std::string list(const std::vector<T> &items, F &&text) {
  std::string s;
  for (const T &item : items)
    s += (s.empty() ? "" : ", ") + text(item);
  return s;
}

/// Formats a tensor.
using TensorText = std::function<std::string(TensorId)>;

template <class T> std::string numbers(const std::vector<T> &values) {
  return '[' + list(values, [](T v) { return number(v); }) + ']';
}

struct ArgText {
  const TensorText &name;

  std::string operator()(NoneArg) const { return "none"; }
  std::string operator()(DeviceArg) const { return "device"; }
  std::string operator()(TensorId id) const { return name(id); }
  std::string operator()(const std::vector<TensorId> &ids) const {
    return '[' + list(ids, name) + ']';
  }
  std::string operator()(int64_t value) const { return number(value); }
  std::string operator()(double value) const {
    const std::string s = number(value);
    return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
  }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string &value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(dtypeName(value)); }
  std::string operator()(const std::vector<int64_t> &values) const { return numbers(values); }
  std::string operator()(const std::vector<double> &values) const { return numbers(values); }
};

std::string scalars(const std::vector<int64_t> &ints, const std::vector<double> &floats) {
  return (ints.empty() ? "" : " ints=" + numbers(ints)) +
         (floats.empty() ? "" : " floats=" + numbers(floats));
}

struct RecordText {
  const TensorText &name;

  std::string operator()(const KernelLaunch &r) const {
    const auto dim3 = [](const uint32_t(&d)[3]) {
      return std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]);
    };
    return '(' + list(r.reads, name) + ')' + scalars(r.ints, r.floats) + " grid=" + dim3(r.grid) +
           " block=" + dim3(r.block) +
           (r.sharedBytes ? " shared=" + std::to_string(r.sharedBytes) : "") +
           " abi=" + hex(r.abiHash);
  }
  std::string operator()(const LibraryCall &r) const {
    return '(' + list(r.reads, name) + ')' + scalars(r.ints, r.floats) +
           (r.algorithm.empty() ? "" : " algorithm=" + std::to_string(r.algorithm.size()) + "B");
  }
  std::string operator()(const AtenCall &r) const {
    return '(' + list(r.args, [&](const AtenArg &a) { return std::visit(ArgText{name}, a); }) +
           ')' + (r.writesOut ? "" : " copy");
  }
  std::string operator()(const Memcpy &r) const { return '(' + name(r.source) + ')'; }
  std::string operator()(const Memset &r) const { return '(' + std::to_string(r.value) + ')'; }
  std::string operator()(const HostCall &r) const { return '(' + list(r.reads, name) + ')'; }
};

std::string place(const Slot &slot) {
  const std::string at = "+" + std::to_string(slot.offset);
  switch (slot.buffer) {
  case BufferKind::Weight:
    return "weight " + std::to_string(slot.index) + at;
  case BufferKind::Arena:
    return "arena" + at;
  case BufferKind::Input:
    return "input " + std::to_string(slot.index) + at;
  case BufferKind::Output:
    return "output " + std::to_string(slot.index) + at;
  case BufferKind::State:
    return "state " + std::to_string(slot.index) + at;
  }
  return {};
}

std::string ioList(const std::vector<IoTensor> &tensors) {
  return list(tensors,
              [](const IoTensor &t) { return t.name + ": " + shapeText(t.dtype, t.sizes); });
}

} // namespace

std::string recordText(const LaunchRecord &record, const TensorText &tensorText) {
  return list(recordWrites(record), tensorText) + " = " + recordName(record) +
         std::visit(RecordText{tensorText}, record.op) +
         (record.branch ? " branch=" + std::to_string(record.branch) : "");
}

std::string toText(const PlanData &plan) {
  std::string s = "plan target=" + std::string(deviceName(plan.target)) +
                  " producer=" + quoted(plan.producer) +
                  (plan.precision ? " precision=" + std::string(dtypeName(*plan.precision)) : "") +
                  (plan.tf32 ? " tf32" : "");
  if (plan.gpu)
    s += " gpu=" + quoted(plan.gpu->name) + " sms=" + std::to_string(plan.gpu->multiprocessors) +
         (plan.gpu->tuned ? " tuned" : "");
  s += "\n";
  if (plan.training) {
    const TrainingStep &step = *plan.training;
    s += "training " + quoted(step.method) + " loss=" + std::to_string(step.loss) +
         (step.autocast ? " autocast=" + std::string(dtypeName(*step.autocast)) : "");
    for (const auto &[option, value] : optionTexts(step.optimizer))
      s += " " + option + "=" + quoted(value);
    s += "\n";
  }
  for (const OpLibraryId &library : plan.opLibraries)
    s += "op library " + quoted(library.name) + " " + hex(library.hash) + "\n";
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const Weight &w = plan.weights[i];
    s += "weight " + std::to_string(i) + " " + quoted(w.name) + " " + shapeText(w.dtype, w.sizes) +
         (w.isComputed ? " computed\n" : "\n");
  }
  for (size_t i = 0; i < plan.states.size(); ++i) {
    const State &state = plan.states[i];
    s += "state " + std::to_string(i) + " " + quoted(state.name) + " " +
         std::string(stateRoleName(state.role)) + " " + shapeText(state.dtype, state.sizes) +
         (state.initial == kBeginsAsZeros ? " = zeros"
                                          : " = weight " + std::to_string(state.initial)) +
         (state.shard ? " shard=" + std::to_string(*state.shard) : "") + "\n";
  }
  for (const Entry &entry : plan.entries)
    for (size_t i = 0; i < entry.buckets.size(); ++i) {
      const Bucket &bucket = entry.buckets[i];
      s += "\nentry " + quoted(entry.name) + " bucket " + std::to_string(i) + " (" +
           ioList(bucket.inputs) + ") -> (" + ioList(bucket.outputs) +
           ") arena=" + std::to_string(bucket.arenaBytes) + "\n";
      for (size_t t = 0; t < bucket.tensors.size(); ++t) {
        const TensorRef &tensor = bucket.tensors[t];
        s += "  t" + std::to_string(t) + ": " + shapeText(tensor.dtype, tensor.sizes) +
             (isDense(tensor.sizes, tensor.strides) ? "" : " strides=" + numbers(tensor.strides)) +
             " @ " + place(tensor.slot) + "\n";
      }
      for (const LaunchRecord &record : bucket.records) {
        s += "  " + recordText(record, name);
        if (record.location != kNoLocation) {
          const SourceLocation &l = plan.locations[uint32_t(record.location)];
          s += "  loc(" + quoted(l.file) + ":" + std::to_string(l.line) + " " + quoted(l.module) +
               ")";
        }
        s += "\n";
      }
    }
  return s;
}

} // namespace cgc

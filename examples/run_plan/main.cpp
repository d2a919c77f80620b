// run_plan PLAN [ENTRY [FILE...]]: lists the entries of a plan, or runs one entry on zeros or on
// files of raw bytes.
#include "runtime/session/session.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

/// Host memory for a list of tensors, initially zero, and views of it for Session::run.
class Tensors {
public:
  explicit Tensors(const std::vector<cgc::IoTensor> &types) : bytes_(types.size()) {
    for (size_t i = 0; i < types.size(); ++i) {
      // No tensor's size overflows in a plan that has been loaded.
      bytes_[i].resize(*cgc::tensorBytes(types[i].dtype, types[i].sizes));
      views_.push_back(
          {bytes_[i].data(), types[i].dtype, cgc::DeviceKind::Cpu, types[i].sizes, {}});
    }
  }

  std::vector<char> &bytes(size_t i) { return bytes_[i]; }
  const std::vector<cgc::TensorView> &views() const { return views_; }

private:
  std::vector<std::vector<char>> bytes_;
  std::vector<cgc::TensorView> views_;
};

/// A name and type as text: "image f32[1,3,224,224]".
std::string typeText(const cgc::IoTensor &tensor) {
  std::string text = tensor.name + " " + std::string(cgc::dtypeName(tensor.dtype)) + "[";
  for (size_t i = 0; i < tensor.sizes.size(); ++i)
    text += (i ? "," : "") + std::to_string(tensor.sizes[i]);
  return text + "]";
}

void printEntries(const cgc::PlanData &plan) {
  for (const cgc::Entry &entry : plan.entries)
    for (const cgc::Bucket &bucket : entry.buckets) {
      std::printf("%s:", entry.name.c_str());
      for (const cgc::IoTensor &input : bucket.inputs)
        std::printf(" %s", typeText(input).c_str());
      std::printf(" ->");
      for (const cgc::IoTensor &output : bucket.outputs)
        std::printf(" %s", typeText(output).c_str());
      std::printf("\n");
    }
}

/// Reads a file of exactly bytes.size() bytes into `bytes`.
cgc::Status readInput(const std::string &path, std::vector<char> &bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    return {cgc::Code::InvalidFile, "cannot read '" + path + "': " + std::strerror(errno)};
  if (read.size() != bytes.size())
    return {cgc::Code::InvalidFile, "'" + path + "' has " + std::to_string(read.size()) +
                                        " bytes, and the input takes " +
                                        std::to_string(bytes.size())};
  bytes = read;
  return cgc::Status::ok();
}

/// Prints each output's name and type and, for f32, its first elements.
void printOutputs(const std::vector<cgc::IoTensor> &types, Tensors &outputs) {
  for (size_t i = 0; i < types.size(); ++i) {
    std::printf("%s:", typeText(types[i]).c_str());
    if (types[i].dtype == cgc::DType::F32) {
      std::vector<float> first(std::min<size_t>(4, outputs.bytes(i).size() / sizeof(float)));
      std::memcpy(first.data(), outputs.bytes(i).data(), first.size() * sizeof(float));
      for (float value : first)
        std::printf(" %.9g", value);
    }
    std::printf("\n");
  }
}

// The README shows the lines of this function.
cgc::Status run(const std::string &path, const std::string &name,
                const std::vector<std::string> &files) {
  // Verifies the file, uploads the weights, and captures a CUDA graph for each bucket.
  CGC_ASSIGN_OR_RETURN(cgc::Session session, cgc::Session::load(path));
  const std::shared_ptr<const cgc::Plan> plan = session.plan();
  const cgc::Entry *entry = plan->data().findEntry(name);
  if (!entry)
    return {cgc::Code::Usage, path + " has no entry '" + name + "'"};

  const cgc::Bucket &bucket = entry->buckets.front();
  Tensors inputs(bucket.inputs), outputs(bucket.outputs);
  if (files.size() > bucket.inputs.size())
    return {cgc::Code::Usage, "'" + name + "' has fewer inputs than there are files"};
  for (size_t i = 0; i < files.size(); ++i)
    CGC_TRY(readInput(files[i], inputs.bytes(i)));
  // From any thread, with any batch. Returns when the outputs are complete.
  CGC_TRY(session.run(name, inputs.views(), outputs.views()));
  printOutputs(bucket.outputs, outputs);
  return cgc::Status::ok();
}

cgc::Status list(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const cgc::Plan plan, cgc::Plan::load(path, cgc::Plan::Verify::Metadata));
  printEntries(plan.data());
  return cgc::Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: run_plan PLAN [ENTRY [FILE...]]\n");
    return 2;
  }
  const cgc::Status status = arguments.size() == 1 ? list(arguments[0])
                                                   : run(arguments[0], arguments[1],
                                                         {arguments.begin() + 2, arguments.end()});
  if (!status.isOk())
    std::fprintf(stderr, "run_plan: %s: %s\n", std::string(cgc::codeName(status.code())).c_str(),
                 status.message().c_str());
  return status.isOk() ? 0 : 1;
}

// Trainer: checkpoints, and the weights of other programs.
#include "runtime/base/check.h"
#include "runtime/base/printable.h"
#include "runtime/train/finite.h"
#include "runtime/train/folder.h"
#include "runtime/train/model_file.h"
#include "runtime/train/trainer_impl.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <unordered_map>

namespace cgc {
namespace {

// The metadata of all files.
constexpr const char *kVersionKey = "cgc.checkpoint", *kPlanKey = "cgc.plan",
                     *kStepKey = "cgc.step", *kNotePrefix = "note.";
/// The version of the metadata and of the names in optimizer.safetensors.
constexpr const char *kVersion = "1";

bool isOfModel(const State &state) {
  return state.role == StateRole::Parameter || state.role == StateRole::Buffer;
}

Status another(const std::string &difference, const TrainerWords &words) {
  return {Code::Usage, "the checkpoint is of another model or optimizer: " + difference +
                           "; use the plan that wrote it, or load its weights alone with " +
                           words.loadModel};
}

std::string text(const SafetensorsMetadata &metadata, const std::string &key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

/// Adds the bytes of the tensors in `file`, which must be these and no others, to `values`.
Status match(const SafetensorsFile &file, const std::vector<FileTensor> &tensors,
             std::vector<std::pair<const State *, std::span<const std::byte>>> &values,
             const TrainerWords &words) {
  std::set<std::string> known;
  for (const auto &[name, state] : tensors) {
    const SafetensorsTensor *const tensor = file.find(name);
    if (!tensor)
      return another("it has no '" + name + "'", words);
    if (tensor->dtype != state->dtype || tensor->sizes != state->sizes)
      return another("'" + name + "' is " + shapeText(tensor->dtype, tensor->sizes) +
                         " instead of " + shapeText(state->dtype, state->sizes),
                     words);
    values.emplace_back(state, tensor->bytes);
    known.insert(name);
  }
  for (const SafetensorsTensor &tensor : file.tensors())
    if (!known.contains(tensor.name))
      return another("it has '" + printable(tensor.name) + "', which the plan does not have",
                     words);
  return Status::ok();
}

/// The tensors as safetensors.h has them.
std::vector<SafetensorsEntry> entriesOf(const std::vector<FileTensor> &tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const auto &[name, state] : tensors)
    entries.push_back({name, state->dtype, state->sizes});
  return entries;
}

} // namespace

std::string Trainer::Impl::tensorName(const State &state) const {
  std::string name = state.name;
  if (!options.prefix.empty() && name.starts_with(options.prefix) &&
      name.size() > options.prefix.size())
    name.erase(0, options.prefix.size());
  if (!isOfModel(state))
    std::ranges::replace(name, ':', '.');
  return name;
}

const State &Trainer::Impl::averaged(const State &state) const {
  return plan->data().states[averages[indexOf(state)]];
}

size_t Trainer::Impl::indexOf(const State &state) const {
  return size_t(&state - plan->data().states.data());
}

std::vector<size_t> averagesOf(std::span<const State> states) {
  std::vector<size_t> averages(states.size());
  std::iota(averages.begin(), averages.end(), size_t(0));
  std::unordered_map<std::string_view, size_t> parameters;
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].role == StateRole::Parameter)
      parameters.emplace(states[i].name, i);
  for (size_t i = 0; i < states.size(); ++i) {
    std::string_view name = states[i].name;
    if (states[i].role != StateRole::Average || !name.ends_with(kAverageSuffix))
      continue;
    name.remove_suffix(std::strlen(kAverageSuffix));
    if (const auto parameter = parameters.find(name); parameter != parameters.end())
      averages[parameter->second] = i;
  }
  return averages;
}

std::vector<bool> trainedStates(const PlanData &plan) {
  std::vector<bool> trained(plan.states.size());
  const auto mark = [&](const Slot &slot) {
    if (slot.buffer != BufferKind::State)
      return;
    const StateRole role = plan.states[slot.index].role;
    trained[slot.index] =
        role == StateRole::Parameter || role == StateRole::Optimizer || role == StateRole::Average;
  };
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        for (const TensorId written : recordWrites(record))
          mark(bucket.tensors[uint32_t(written)].slot);
  return trained;
}

std::vector<FileTensor> Trainer::Impl::tensorsOf(std::string_view file,
                                                 uint64_t microBatches) const {
  const std::vector<State> &states = plan->data().states;
  std::vector<FileTensor> tensors;
  if (file == kAverageFile &&
      std::ranges::find(states, StateRole::Average, &State::role) == states.end())
    return tensors;
  for (const State &state : states)
    if (state.role != StateRole::Average && state.role != StateRole::Copy &&
        isOfModel(state) != (file == kOptimizerFile) &&
        (state.role != StateRole::Gradient || microBatches != 0))
      tensors.push_back({tensorName(state), file == kAverageFile ? &averaged(state) : &state});
  return tensors;
}

Result<uint64_t> Trainer::Impl::microBatchesOf(const SafetensorsFile &optimizer) const {
  const std::optional<size_t> state = plan->data().findState(kMicroBatchesState);
  const SafetensorsTensor *const tensor =
      state ? optimizer.find(tensorName(plan->data().states[*state])) : nullptr;
  int64_t count = 0;
  if (tensor && tensor->bytes.size() == sizeof(count))
    std::memcpy(&count, tensor->bytes.data(), sizeof(count));
  if (const Status valid = checkMicroBatches(double(count)); !valid.isOk())
    return Status(Code::InvalidFile,
                  "'" + tensor->name + "': " + valid.message() + "; use another checkpoint");
  return uint64_t(count);
}

Status Trainer::Impl::checkFileNames() const {
  for (const std::string_view file : kCheckpointFiles) {
    std::set<std::string> names;
    for (const FileTensor &tensor : tensorsOf(file, /*microBatches=*/1)) {
      if (tensor.name == kNotesName)
        return {Code::Usage, "state '" + tensor.state->name + "' would be called '" + tensor.name +
                                 "' in a checkpoint, the name of its notes; give " +
                                 options.words.prefix};
      if (!names.insert(tensor.name).second)
        return {Code::Usage, "two states would be called '" + tensor.name +
                                 "' in a checkpoint; give " + options.words.prefix};
    }
  }
  return Status::ok();
}

std::string hashDigits(std::string_view text) {
  uint64_t hash = hash64(std::as_bytes(std::span(text)));
  std::string digits(16, '0');
  for (size_t i = digits.size(); i-- > 0; hash >>= 4)
    digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

std::string Trainer::Impl::structureHash() const {
  PlanData data = plan->data();
  data.producer.clear();
  data.training.reset(); // The records have what matters.
  data.gpu.reset();
  for (Entry &entry : data.entries)
    for (Bucket &bucket : entry.buckets)
      for (LaunchRecord &record : bucket.records)
        record.location = kNoLocation;
  return hashDigits(toText(data));
}

Status Trainer::Impl::saveFile(const std::string &path, const std::vector<FileTensor> &tensors,
                               const SafetensorsMetadata &metadata, std::deque<size_t> &moved) {
  const std::vector<SafetensorsEntry> entries = entriesOf(tensors);
  CGC_ASSIGN_OR_RETURN(const std::string header, safetensorsHeader(entries, metadata));
  CGC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  CGC_TRY(file.write(header.data(), header.size()));
  std::vector<std::byte> bytes;
  for (const size_t i : safetensorsOrder(entries)) {
    const State &state = *tensors[i].state;
    bytes.resize(*tensorBytes(state.dtype, state.sizes));
    if (isDivided(indexOf(state)))
      moved.pop_front();
    CGC_TRY(transfer(indexOf(state), viewOf(state, bytes), /*toState=*/false));
    if (trained[indexOf(state)] && !allFinite(bytes, state.dtype))
      return {Code::Failed, "after step " + std::to_string(steps) + ", '" + state.name +
                                "' has a NaN or an infinity, so that no checkpoint is written; "
                                "lower the learning rate, or go on from an earlier checkpoint"};
    CGC_TRY(file.write(bytes.data(), bytes.size()));
  }
  return file.commit();
}

Status Trainer::Impl::save(const std::string &folder,
                           const std::map<std::string, std::string> &notes) {
  CGC_TRY(noted(results.collectAll()));
  CGC_TRY(refuseMicroBatches(microBatches));
  std::deque<size_t> moved;
  for (const std::string_view file : kCheckpointFiles) {
    const std::vector<FileTensor> tensors = tensorsOf(file, microBatches);
    for (const size_t i : safetensorsOrder(entriesOf(tensors)))
      if (const size_t index = indexOf(*tensors[i].state); isDivided(index))
        moved.push_back(index);
  }
  Status saved = !communicator() || communicator()->rank() == 0 ? saveFiles(folder, notes, moved)
                                                                : Status::ok();
  // The other ranks send all states, also if rank 0 has failed.
  std::vector<std::byte> bytes;
  for (; !moved.empty(); moved.pop_front()) {
    const State &state = plan->data().states[moved.front()];
    bytes.resize(*tensorBytes(state.dtype, state.sizes));
    const Status sent = transfer(moved.front(), viewOf(state, bytes), /*toState=*/false);
    if (!sent.isOk())
      return saved.isOk() ? sent : saved;
  }
  return saved;
}

Status Trainer::Impl::saveFiles(const std::string &folder,
                                const std::map<std::string, std::string> &notes,
                                std::deque<size_t> &moved) {
  CGC_ASSIGN_OR_RETURN(NewFolder temporary, NewFolder::create(folder, kCheckpointFiles));
  // "pt" is what readers of models of PyTorch expect.
  const SafetensorsMetadata metadata = {{"format", "pt"},
                                        {kVersionKey, kVersion},
                                        {kPlanKey, structureHash()},
                                        {kStepKey, std::to_string(steps)}};
  SafetensorsMetadata withNotes = metadata;
  for (const auto &[name, note] : notes)
    withNotes[kNotePrefix + name] = note;
  for (const std::string_view file : kCheckpointFiles)
    if (const std::vector<FileTensor> tensors = tensorsOf(file, microBatches);
        !tensors.empty() || file != kAverageFile)
      CGC_TRY(saveFile(temporary.file(file), tensors, file == kOptimizerFile ? withNotes : metadata,
                       moved));
  return temporary.commit();
}

Result<CheckpointInfo> Trainer::Impl::load(const std::string &folder, const LoadOptions &how) {
  std::vector<SafetensorsFile> files;
  CheckpointInfo info;
  std::string step, planHash;
  const std::string where = "'" + folder + "'";
  uint64_t savedMicroBatches = 0;
  std::vector<std::pair<const State *, std::span<const std::byte>>> values;
  for (const std::string_view name : kCheckpointFiles) {
    const std::string path = folder + "/" + std::string(name);
    if (name == kAverageFile) {
      std::error_code ignored;
      const bool exists = std::filesystem::exists(path, ignored),
                 isWanted = !tensorsOf(name, 0).empty();
      if (exists != isWanted)
        return another(exists ? "it has averages, and the plan keeps none" : "it has no averages",
                       options.words)
            .withContext(where);
      if (!exists)
        continue;
    }
    CGC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
    const std::string version = text(file.metadata(), kVersionKey);
    if (version != kVersion)
      return Status(Code::InvalidFile,
                    where + " is " +
                        (version.empty() ? "no checkpoint of cgc; load the weights alone with " +
                                               options.words.loadModel
                                         : "a checkpoint of version " + printable(version) +
                                               ", and this cgc reads version " + kVersion +
                                               "; go on with the cgc that wrote it"));
    // What all files say must be equal.
    if (files.empty()) {
      step = text(file.metadata(), kStepKey);
      planHash = text(file.metadata(), kPlanKey);
      const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), info.step);
      if (error != std::errc() || end != step.data() + step.size() ||
          info.step > uint64_t(INT64_MAX))
        return Status(Code::InvalidFile, where + ": its " + kStepKey + " is '" + printable(step) +
                                             "', which is no number of steps; use another "
                                             "checkpoint");
    }
    if (step != text(file.metadata(), kStepKey) || planHash != text(file.metadata(), kPlanKey))
      return Status(Code::InvalidFile,
                    where + ": its files are of two checkpoints; copy all of one again");
    for (const auto &[key, note] : file.metadata())
      if (key.starts_with(kNotePrefix))
        info.notes[key.substr(std::strlen(kNotePrefix))] = note;
    files.push_back(std::move(file));
    if (name == kOptimizerFile) {
      const Result<uint64_t> count = microBatchesOf(files.back());
      CGC_TRY(count.status().withContext(where));
      savedMicroBatches = *count;
    }
    CGC_TRY(match(files.back(), tensorsOf(name, savedMicroBatches), values, options.words)
                .withContext(where));
  }
  if (!how.anyPlan && planHash != structureHash())
    return Status(
        Code::Usage,
        where +
            ": the checkpoint is of another plan with the same states: its steps would not be "
            "those of this plan, bit by bit; load it with " +
            options.words.anyPlan + ", or use the plan that wrote it");

  if (refuseMicroBatches(savedMicroBatches).code() == Code::Usage)
    return Status(Code::Usage, where + ": the checkpoint has the gradients of " +
                                   std::to_string(savedMicroBatches) +
                                   " micro-batches of one rank, and there are " +
                                   std::to_string(communicator()->ranks()) +
                                   "; go on with one, or from another checkpoint");
  CGC_TRY(recreateIfLost());
  const DeviceGuard guard(implOf(*engine).device);
  CGC_TRY(dropResults());
  // Until all states are written.
  broken = {Code::Failed, "the states are incomplete: loading '" + folder +
                              "' did not finish; call load() or reset()"};
  for (const auto &[state, bytes] : values)
    if (Status written = transfer(indexOf(*state), viewOf(*state, bytes), /*toState=*/true);
        !written.isOk()) {
      broken = std::move(written);
      return broken;
    }
  broken = refreshCopies();
  CGC_TRY(broken);
  steps = info.step;
  microBatches = savedMicroBatches;
  broken = shareStates();
  CGC_TRY(broken);
  return info;
}

Result<std::vector<std::string>> Trainer::Impl::loadModel(const std::string &path) {
  std::vector<FileTensor> tensors = tensorsOf(kModelFile, /*microBatches=*/0);
  for (size_t i = 0, count = tensors.size(); i < count; ++i)
    if (const State &average = averaged(*tensors[i].state); &average != tensors[i].state)
      tensors.push_back({tensors[i].name, &average});
  CGC_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::open(path, tensors, options.words));
  broken = {Code::Failed, "the states are incomplete: loading '" + path +
                              "' did not finish; call load() or reset()"};
  Status written = file.forEach([&](size_t i, std::span<const std::byte> bytes) {
    const State &state = *tensors[i].state;
    return transfer(indexOf(state), viewOf(state, bytes), /*toState=*/true);
  });
  broken = written.isOk() ? refreshCopies() : std::move(written);
  CGC_TRY(broken);
  broken = shareStates();
  CGC_TRY(broken);
  return file.unused();
}

} // namespace cgc

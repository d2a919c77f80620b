// cgc train: runs the steps of a training plan on data from files.
#include "runtime/base/file.h"
#include "runtime/base/printable.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/gpu.h"
#include "runtime/kernels/reference.h"
#include "runtime/train/folder.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/cli/signals.h"
#include "tools/cgc/train/training_ranks.h"
#include "tools/cgc/train/training_report.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <thread>

namespace cgc::tool {

namespace {

constexpr uint64_t kMaxSteps = 1'000'000'000;
constexpr size_t kMaxAccumulate = 65536;
/// The largest seed: the largest integer up to which doubles have all integers.
constexpr uint64_t kMaxSeed = uint64_t(1) << 53;
/// The notes of a checkpoint that say which batches come next.
constexpr const char *kSeedNote = "data.seed", *kShuffleNote = "data.shuffle",
                     *kSamplesNote = "data.samples", *kSizeNote = "data.batch_size";

struct TrainFlags {
  std::string plan, executor = "graph", resume, weights, checkpoint, curve;
  std::vector<std::string> data, validate;
  std::vector<double> lr;
  std::optional<uint64_t> steps, logEvery, validateEvery, seed;
  std::optional<int64_t> batch;
  uint64_t checkpointEvery = 0;
  size_t accumulate = 0;     ///< 0: whole steps.
  std::optional<int> device; ///< None: 0, or that of the rank's number on its host.
  int threads = 0;
  RankFlags ranks;
  bool resumeAnyPlan = false, restartable = false, shuffle = false, failOnNan = false, json = false;
  PeerFlags against;
};

/// The flags with which a restart goes on: those of --resume, if there is a checkpoint.
TrainFlags afterRestart(TrainFlags flags) {
  std::error_code ignored;
  if (!flags.restartable ||
      !std::filesystem::exists(flags.checkpoint + "/" + std::string(kModelFile), ignored))
    return flags;
  flags.resume = flags.checkpoint;
  flags.weights.clear();
  flags.shuffle = false;
  flags.seed.reset();
  return flags;
}

/// The bucket of the step that --batch chooses, or the first one.
Result<const Bucket *> chooseBucket(const PlanData &plan, const TrainFlags &options) {
  const Entry *step = plan.findEntry(kStepEntry);
  if (!step)
    return Status(Code::Usage,
                  fmt::format("'{}' is no training plan; compile one with cgc compile --train",
                              options.plan));
  if (!options.batch)
    return &step->buckets[0];
  std::vector<std::string> batches;
  for (const Bucket &bucket : step->buckets) {
    const int64_t batch =
        bucket.inputs.empty() || bucket.inputs[0].sizes.empty() ? 0 : bucket.inputs[0].sizes[0];
    if (batch == *options.batch)
      return &bucket;
    batches.push_back(std::to_string(batch));
  }
  return Status(Code::Usage, fmt::format("--batch {}: '{}' has a step for {}", *options.batch,
                                         options.plan, joinNames(batches)));
}

/// That a checkpoint could be written now, rather than after the last step.
Status checkFolder(const std::string &option, const std::string &folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  const std::filesystem::path clean = path.has_filename() ? path : path.parent_path();
  if (!std::filesystem::is_directory(clean.parent_path()))
    return {Code::Failed, fmt::format("{} {}: the folder {} does not exist; make it first", option,
                                      folder, clean.parent_path().string())};
  return NewFolder::create(folder, kCheckpointFiles).status().withContext(option);
}

/// Continues the checkpoint of --resume: its states, and the order of its data.
Status resume(Trainer &trainer, const TrainFlags &options, size_t samples, uint64_t batch,
              BatchOptions &order) {
  CGC_ASSIGN_OR_RETURN(const CheckpointInfo info,
                       trainer.load(options.resume, {.anyPlan = options.resumeAnyPlan}));
  const auto note = [&](const char *name) {
    const auto found = info.notes.find(name);
    return found == info.notes.end() ? std::string() : found->second;
  };
  const auto number = [&](const char *name, uint64_t without) -> Result<uint64_t> {
    const std::string text = note(name);
    uint64_t value = without;
    const auto end = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), end, value);
        !text.empty() && (read.ec != std::errc() || read.ptr != end))
      return Status(Code::InvalidFile,
                    fmt::format("the checkpoint {} has the note {} '{}', which is no number; "
                                "resume from another checkpoint",
                                options.resume, name, printable(text)));
    return value;
  };
  order.shuffle = note(kShuffleNote) == "true";
  CGC_ASSIGN_OR_RETURN(order.seed, number(kSeedNote, 0));
  CGC_ASSIGN_OR_RETURN(order.first, number(kBatchNote, info.step));
  CGC_ASSIGN_OR_RETURN(const uint64_t size, number(kSizeNote, batch));
  if (size == 0)
    return {Code::InvalidFile, fmt::format("the checkpoint {} has the note {} '0'; resume from "
                                           "another checkpoint",
                                           options.resume, kSizeNote)};
  if (size != batch) {
    // The same pass, from the sample at which it was left, rounded down to a batch.
    const uint64_t perPass = std::max<uint64_t>(samples / size, 1);
    order.first = order.first / perPass * (samples / batch) + order.first % perPass * size / batch;
  }
  const std::string before = note(kSamplesNote);
  if (!before.empty() && before != std::to_string(samples))
    logWarning(fmt::format("the checkpoint {} was written with {} samples, and there are {}: the "
                           "batches are not those that it would have seen",
                           options.resume, before, samples));
  return Status::ok();
}

Status writeText(const std::string &path, const std::string &text) {
  CGC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  CGC_TRY(file.write(text.data(), text.size()));
  return file.commit();
}

Result<Trainer> createTrainer(std::shared_ptr<const Plan> plan, const TrainFlags &options,
                              int device, const TrainingRanks &ranks) {
  TrainerOptions trainer;
  trainer.engine.executor = executorOf(options.executor);
  trainer.engine.device = device;
  trainer.communicator = ranks.communicator();
  trainer.engine.providerPath = providerPath();
  trainer.engine.referencePath = libraryPath(kReferenceLibrary);
  trainer.context.threads = options.threads;
  trainer.stepsInFlight = stepsInFlight(options.accumulate);
  trainer.words = {"--resume-any-plan", "--weights",
                   "to be those of the compiled module's state_dict"};
  return Trainer::create(std::move(plan), std::move(trainer));
}

/// That all ranks were told the same.
Status compareRanks(const TrainFlags &options, const Dataset &data, uint64_t batch, uint64_t steps,
                    uint64_t logEvery, const TrainingRanks &ranks) {
  std::string rates;
  for (const double rate : options.lr)
    rates += fmt::format("{} ", rate);
  const SharedFact facts[] = {
      {"the batch of a step", std::to_string(batch)},
      {"the number of samples", std::to_string(data.samples())},
      {"--steps", std::to_string(steps)},
      {"--log-every", std::to_string(logEvery)},
      {"--accumulate", std::to_string(options.accumulate)},
      {"--checkpoint", options.checkpoint.empty() ? "not given" : "given"},
      {"--checkpoint-every", std::to_string(options.checkpointEvery)},
      {"--shuffle", options.shuffle ? "given" : "not given"},
      {"--seed", std::to_string(options.seed.value_or(0))},
      {"--lr", options.lr.empty() ? "the plan's" : rates},
      {"--resume", options.resume.empty() ? "not given" : "given"},
      {"--weights", options.weights.empty() ? "not given" : "given"},
      {"--validate", options.validate.empty() ? "not given" : "given"},
      {"--fail-on-nan", options.failOnNan ? "given" : "not given"},
  };
  return ranks.agree(facts);
}

/// More threads than these make the reader no faster than the memory of a host.
constexpr size_t kReaderThreads = 4;

/// This process' part of the host's cores, for the reader.
size_t readerThreads(int localRanks) {
  return std::clamp<size_t>(std::thread::hardware_concurrency() / localRanks, 1, kReaderThreads);
}

Status trainAsRank(const TrainFlags &options, const std::shared_ptr<const Plan> &plan,
                   TrainingRanks &ranks) {
  if (!ranks.leads())
    setQuiet(); // Rank 0 says what all of them do.
  if (ranks.ranks() > 1 && !options.against.model.empty())
    return {Code::Usage, "--against trains on one GPU; leave it out, or start one rank"};
  std::error_code ignored; // Of folders that nobody may read, which have no path then.
  const auto met = std::filesystem::weakly_canonical(options.ranks.rendezvous, ignored);
  if (!options.checkpoint.empty() && !met.empty() &&
      met == std::filesystem::weakly_canonical(options.checkpoint, ignored))
    return {Code::Usage, "--checkpoint and --rendezvous name one folder, '" + options.checkpoint +
                             "', and a checkpoint replaces its own; give another one"};
  if (!options.checkpoint.empty() && ranks.leads())
    CGC_TRY(checkFolder("--checkpoint", options.checkpoint));
  CGC_TRY(checkThreads(plan->data(), options.threads, executorOf(options.executor)));
  CGC_ASSIGN_OR_RETURN(const Bucket *bucket, chooseBucket(plan->data(), options));
  if (options.accumulate != 0 && !plan->data().findEntry(kUpdateEntry))
    return {Code::Usage, fmt::format("--accumulate: '{}' has no entries that accumulate gradients; "
                                     "compile it with cgc compile --train --accumulate",
                                     options.plan)};
  CGC_ASSIGN_OR_RETURN(const Dataset data, Dataset::open(options.data, bucket->inputs));
  std::optional<Dataset> heldOut;
  const Bucket *evaluate = nullptr;
  if (!options.validate.empty()) {
    CGC_ASSIGN_OR_RETURN(evaluate, Validation::bucketOf(plan->data(), *bucket, ranks.ranks()));
    auto opened = Dataset::open(options.validate, evaluate->inputs);
    CGC_TRY(opened.status().withContext("--validate"));
    heldOut = *std::move(opened);
  }
  // The samples of a step.
  const auto batch = static_cast<uint64_t>(bucket->inputs[0].sizes[0]) * ranks.ranks();
  const auto stepBatch = static_cast<int64_t>(batch * std::max<size_t>(options.accumulate, 1));
  if (data.samples() < batch)
    return {
        Code::Usage,
        fmt::format("--data has {} samples, and a step of {} ranks needs {}; give more data, or "
                    "start fewer ranks",
                    data.samples(), ranks.ranks(), batch)};
  const uint64_t steps = options.steps.value_or(
      std::max<uint64_t>(data.samples() / static_cast<size_t>(stepBatch), 1));
  const uint64_t logEvery = options.logEvery.value_or(std::max<uint64_t>(steps / 10, 1));

  const bool onGpu = plan->data().target == DeviceKind::Cuda && options.executor != "reference";
  const int device = options.device.value_or(ranks.localRank());
  if (onGpu)
    CGC_TRY(ranks.withGpu(findGpu(device).status()));
  CGC_TRY(ranks.join(onGpu ? device : -1));
  CGC_TRY(compareRanks(options, data, batch, steps, logEvery, ranks));
  std::optional<Progress> progress(std::in_place, 1 + (options.against.model.empty() ? 1 : 2) *
                                                          (steps / logEvery));
  progress->begin("load " + options.plan);
  const DeviceGuard guard(onGpu ? device : -1);
  std::optional<PeerTraining> peer;
  if (!options.against.model.empty()) {
    CGC_ASSIGN_OR_RETURN(
        peer, PeerTraining::load(options.against, plan->data(), *bucket, onGpu, options.threads));
  }
  CGC_ASSIGN_OR_RETURN(MemoryMeter meter, MemoryMeter::create(onGpu));
  CGC_ASSIGN_OR_RETURN(Trainer trainer, createTrainer(plan, options, device, ranks));
  for (const std::string &note : trainer.notes())
    logInfo(note);
  CGC_ASSIGN_OR_RETURN(const uint64_t captured, meter.read());

  BatchOptions order{.shuffle = options.shuffle,
                     .seed = options.seed.value_or(0),
                     .pinned = onGpu,
                     .rank = static_cast<size_t>(ranks.rank()),
                     .ranks = static_cast<size_t>(ranks.ranks()),
                     .slots = batchSlots(options.accumulate),
                     .threads = readerThreads(ranks.localRanks())};
  if (!options.resume.empty()) {
    CGC_TRY(resume(trainer, options, data.samples(), batch, order));
    const SharedFact facts[] = {
        {"the position in the data", std::to_string(order.first)},
        {"the order of the data", fmt::format("{} {}", order.shuffle, order.seed)},
    };
    CGC_TRY(ranks.agree(facts));
  }
  const uint64_t made = options.restartable ? std::min(trainer.stepNumber(), steps) : 0;
  if (!options.weights.empty()) {
    auto unused = trainer.loadModel(options.weights);
    CGC_TRY(unused.status().withContext("--weights"));
    if (!unused->empty())
      logInfo(fmt::format("--weights {}: the model takes none of {}", options.weights,
                          printable(joinNames(*unused), 1000)));
  }
  if (options.seed && plan->data().findState(kSeedState))
    CGC_TRY(trainer.set(kSeedState, static_cast<double>(*options.seed)));
  if (!options.lr.empty())
    CGC_TRY(trainer.set("lr", options.lr).withContext("--lr"));
  if (options.accumulate == 0 && trainer.microBatches() != 0)
    return {Code::Usage, fmt::format("the checkpoint {} has {} micro-batches of a step; give "
                                     "--accumulate as before",
                                     options.resume, trainer.microBatches())};
  const uint64_t firstStep = trainer.stepNumber() + 1;
  if (peer)
    CGC_TRY(peer->start(trainer));
  CGC_ASSIGN_OR_RETURN(const auto reader, BatchReader::create(data, order));
  std::optional<Validation> validation;
  if (heldOut && ranks.leads()) {
    CGC_ASSIGN_OR_RETURN(validation,
                         Validation::create(plan->data(), *bucket, *evaluate, *heldOut, onGpu));
  }

  TrainingOptions training{.steps = steps - made,
                           .accumulate = options.accumulate,
                           .logEvery = logEvery,
                           .checkpoint = options.checkpoint,
                           .checkpointEvery = options.checkpointEvery,
                           .validation = validation ? &*validation : nullptr,
                           .validateEvery =
                               validation ? options.validateEvery.value_or(logEvery) : 0,
                           .failOnNan = options.failOnNan,
                           .rank = ranks.ranks() > 1 ? std::optional(ranks.rank()) : std::nullopt,
                           .notes = {{kSeedNote, std::to_string(order.seed)},
                                     {kShuffleNote, order.shuffle ? "true" : "false"},
                                     {kSamplesNote, std::to_string(data.samples())},
                                     {kSizeNote, std::to_string(batch)}},
                           .onLog = [&] { return meter.read().status(); }};
  training.onBatch = [&](uint64_t batches) { ranks.noteBatches(batches); };
  if (ranks.ranks() > 1)
    training.stops = [&] { return ranks.largest(requestedStop()); };
  deferStop();
  CGC_ASSIGN_OR_RETURN(TrainingResult result, runTraining(trainer, *reader, training, *progress));
  CGC_TRY(ranks.largest(0).status()); // A launcher may end rank 0 as soon as another one has ended.
  CGC_ASSIGN_OR_RETURN(const uint64_t steady, meter.read());
  std::optional<PeerResult> against;
  if (peer) {
    BatchOptions sameOrder = order;
    sameOrder.pinned = false;
    CGC_ASSIGN_OR_RETURN(const auto again, BatchReader::create(data, sameOrder));
    CGC_ASSIGN_OR_RETURN(against, peer->run(*again, result.losses.size(), logEvery, *progress));
    result.stoppedBy = requestedStop();
  }
  progress.reset(); // Removes the bar.
  ranks.leave();
  if (!ranks.leads()) {
    if (result.stoppedBy != 0)
      endBySignal(result.stoppedBy);
    return Status::ok();
  }
  if (!options.curve.empty())
    CGC_TRY(
        writeText(options.curve, curveSvg(result.losses, fmt::format("loss of {}", options.plan),
                                          result.validation)));
  const int stoppedBy = result.stoppedBy;
  const TrainingReport report{
      options.plan,
      options.executor,
      firstStep,
      logEvery,
      stepBatch,
      trainer.nonFinite(),
      validation ? validation->samples() : 0,
      options.checkpoint,
      options.curve,
      std::move(result),
      trainingStages(plan->data(), onGpu, trainer.memory(), captured, steady, meter.peak()),
      std::move(against)};
  CGC_TRY(options.json ? printJson("train", trainingJson(report)) : printOut(trainingText(report)));
  if (stoppedBy != 0)
    endBySignal(stoppedBy);
  return Status::ok();
}

Status train(const TrainFlags &options) {
  // All arguments and files are checked before the device is touched.
  if (options.checkpointEvery != 0 && options.checkpoint.empty())
    return {Code::Usage, "--checkpoint-every needs --checkpoint, the folder to write"};
  if (options.restartable && options.checkpoint.empty())
    return {Code::Usage, "--restartable needs --checkpoint, the folder from which it goes on"};
  if (options.resumeAnyPlan && options.resume.empty() && !options.restartable)
    return {Code::Usage, "--resume-any-plan needs --resume, the checkpoint, or --restartable"};
  if (!options.against.model.empty() && options.device.value_or(0) != 0)
    return {Code::Usage, "--against runs LibTorch on GPU 0; leave --device out"};
  if (!options.against.model.empty() && options.accumulate != 0)
    return {Code::Usage, "--against makes whole steps; leave --accumulate out"};
  FileArguments files;
  files.reads(options.plan).reads(options.against.model).writes("--curve", options.curve);
  for (const auto *paths : {&options.data, &options.validate})
    for (const std::string &data : *paths) // NAME=PATH, or a path.
      files.reads(data).reads(data.substr(data.find('=') + 1));
  for (const std::string &folder : {options.checkpoint, options.resume, options.weights})
    if (!folder.empty()) {
      files.reads(folder);
      for (const std::string_view file : kCheckpointFiles)
        files.reads(folder + "/" + std::string(file));
    }
  CGC_TRY(files.check());
  CGC_ASSIGN_OR_RETURN(Plan loaded, Plan::load(options.plan));
  const auto plan = std::make_shared<const Plan>(std::move(loaded));
  CGC_ASSIGN_OR_RETURN(TrainingRanks ranks, TrainingRanks::create(plan->data(), options.ranks));
  return ranks.explain(trainAsRank(afterRestart(options), plan, ranks));
}

void addAgainstOptions(CLI::App &command, PeerFlags &flags, CLI::Option *resume) {
  CLI::Option *const against =
      command
          .add_option("--against", flags.model,
                      "Also train this file, from which the plan was compiled, with LibTorch, by "
                      "the optimizer that the plan has; the options below, as in cgc compile, are "
                      "only checked against the plan")
          ->type_name("STEP.pt")
          ->check(requireName)
          ->excludes(resume);
  addOptimizerOptions(command, flags.optimizer, against);
  const auto add = [&](const char *name, auto &value, const char *text, const char *type) {
    return command.add_option(name, value, text)
        ->type_name(type)
        ->needs(against)
        ->group("Training");
  };
  add("--train", flags.method, "The method that the plan was compiled from", "METHOD");
  add("--loss", flags.loss, "The output that is the loss", "INDEX");
  add("--autocast", flags.autocast, "The dtype of matrix products", "bf16|fp16")
      ->check(CLI::IsMember({"bf16", "fp16"}));
}

} // namespace

Verb addTrain(CLI::App &app) {
  auto options = std::make_shared<TrainFlags>();
  CLI::App *command = app.add_subcommand("train", "Run the steps of a training plan on data");
  command->add_option("plan", options->plan, "A plan of cgc compile --train")
      ->type_name("STEP.cgplan")
      ->required();
  command
      ->add_option("--data", options->data,
                   "The samples: an array for each input, or files with all inputs")
      ->type_name("NAME=X.npy|X.safetensors|X.tar ...")
      ->required();
  CLI::Option *const validate =
      command
          ->add_option("--validate", options->validate,
                       "Samples that are not trained, in the form of --data: report the mean loss "
                       "of evaluate on them")
          ->type_name("NAME=X.npy|X.safetensors|X.tar ...");
  command
      ->add_option("--validate-every", options->validateEvery,
                   "Steps from one validation to the next; one is at the end [as --log-every]")
      ->type_name("N")
      ->check(CLI::Range(uint64_t(1), kMaxSteps))
      ->needs(validate);
  command->add_option("--steps", options->steps, "Steps to make [one pass over the data]")
      ->type_name("N")
      ->check(CLI::Range(uint64_t(1), kMaxSteps));
  command
      ->add_option("--lr", options->lr,
                   "The learning rate, to which groups keep their ratio, or one for each group and "
                   "one for the other parameters [the plan's]")
      ->type_name("X[,Y...]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string &text) {
        char *end = nullptr;
        const float value = std::strtof(text.c_str(), &end);
        return !text.empty() && *end == '\0' && std::isfinite(value) && value >= 0
                   ? std::string()
                   : "'" + text + "' is no learning rate; give an f32 number of at least 0";
      });
  command
      ->add_option("--batch", options->batch,
                   "Use the step for this number of samples [the plan's first]")
      ->type_name("N");
  command
      ->add_option("--accumulate", options->accumulate,
                   "Make each step from so many batches, whose gradients are averaged")
      ->type_name("K")
      ->check(CLI::Range(size_t(1), kMaxAccumulate));
  CLI::Option *const shuffle = command->add_flag("--shuffle", options->shuffle,
                                                 "Take the samples of each pass in a random order");
  CLI::Option *const seed =
      command
          ->add_option("--seed", options->seed, "Of --shuffle and of the plan's random numbers [0]")
          ->type_name("N")
          ->check(CLI::Range(uint64_t(0), kMaxSeed));
  CLI::Option *const resume =
      command
          ->add_option("--resume", options->resume,
                       "Go on from this checkpoint, with the order of its data")
          ->type_name("DIR")
          ->check(requireName)
          ->excludes(shuffle)
          ->excludes(seed);
  command->add_flag(
      "--resume-any-plan", options->resumeAnyPlan,
      "Also resume from a checkpoint that another plan with the same states wrote: with "
      "another schedule, batch or target");
  command
      ->add_flag("--restartable", options->restartable,
                 "Go on from the folder of --checkpoint if it is there, up to --steps in all: for "
                 "launchers that start the same command again")
      ->excludes(resume);
  command
      ->add_option("--weights", options->weights,
                   "Start from these parameters and buffers: a file of safetensors, or a "
                   "checkpoint's folder")
      ->type_name("FILE")
      ->check(requireName)
      ->excludes(resume);
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "The folder to write at the end, or when interrupted")
      ->type_name("DIR")
      ->check(requireName);
  command
      ->add_option("--checkpoint-every", options->checkpointEvery,
                   "Also write it after each N-th step")
      ->type_name("N")
      ->check(CLI::Range(uint64_t(1), kMaxSteps));
  command->add_flag("--fail-on-nan", options->failOnNan,
                    "Fail when the data or a loss has a NaN or an infinity");
  command
      ->add_option("--log-every", options->logEvery,
                   "Steps from one reported loss to the next [a tenth of the steps]")
      ->type_name("N")
      ->check(CLI::Range(uint64_t(1), kMaxSteps));
  command->add_option("--curve", options->curve, "Draw the loss of each step")
      ->type_name("F.svg")
      ->check(requireName);
  command
      ->add_option("--device", options->device,
                   "The index of the GPU [0, or the number of the rank on its host]")
      ->type_name("N")
      ->check(CLI::Range(0, 1023));
  addRankOptions(*command, options->ranks);
  addAgainstOptions(*command, options->against, resume);
  addExecutorOption(*command, options->executor);
  addThreadsOption(*command, options->threads);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer(
      "Examples:\n"
      "  cgc train step.cgplan --data image=image.npy text=text.npy --steps 500 --checkpoint "
      "trained\n"
      "  cgc train step.cgplan --data shards/*.tar --shuffle --seed 1 --lr 1e-4 --curve loss.svg\n"
      "  cgc train step.cgplan --data shards/*.tar --resume trained --checkpoint trained\n"
      "  torchrun --nproc-per-node 2 --no-python cgc train step.cgplan --data shards/*.tar "
      "--checkpoint "
      "trained\n"
      "  cgc train step.cgplan --data x=x.npy y=y.npy --against step.pt --optimizer adamw,lr=1e-3");
  return {command, [options] { return train(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool

// TrainingRanks: environment, rendezvous and communicator of one rank.
#include "tools/cgc/train/training_ranks.h"

#include "runtime/exec/communicator_impl.h"
#include "runtime/exec/requirements.h"
#include "tools/cgc/cli/console.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>

namespace cgc::tool {

void addRankOptions(CLI::App &command, RankFlags &flags) {
  CLI::Option *const rendezvous =
      command
          .add_option(
              "--rendezvous", flags.rendezvous,
              "The folder in which ranks meet, on a file system that all of them share [for "
              "ranks of one host: one below the folder for temporary files]")
          ->type_name("DIR")
          ->check(requireName);
  command
      .add_option_function<std::string>(
          "--communicator-id", [&flags](const std::string &digits) { flags.id = parseId(digits); },
          "NCCL's id, which the ranks have exchanged, in place of a folder")
      ->type_name("HEX")
      ->check([](const std::string &digits) {
        return parseId(digits) ? std::string()
                               : "'" + digits + "' is no id; give 256 hexadecimal digits";
      })
      ->excludes(rendezvous);
  command
      .add_option("--timeout", flags.timeout,
                  "The seconds that a rank waits for the others before it fails")
      ->type_name("S")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command
      .add_option("--nccl", flags.nccl,
                  "NCCL, or the folder that has it [where the dynamic loader finds it]")
      ->type_name("FILE")
      ->check(requireName);
}

Result<TrainingRanks> TrainingRanks::create(const PlanData &plan, const RankFlags &flags) {
  TrainingRanks made;
  made.flags_ = flags;
  CGC_ASSIGN_OR_RETURN(made.environment_, readRankEnvironment());
  const Requirements needs = requirementsOf(plan);
  const int ranks = made.ranks();
  if (ranks > 1 && !needs.nccl)
    return Status(
        Code::Usage,
        fmt::format("{} has started {} ranks, and the plan trains on one; compile it with "
                    "--data-parallel, or with --ranks {}",
                    made.environment_.launcher, ranks, ranks));
  if (needs.ranks > 0 && needs.ranks != ranks)
    return Status(
        Code::Usage,
        fmt::format("the plan is made for {} ranks, and {}; start {} ranks with torchrun, "
                    "mpirun or srun, or compile it for another number with --ranks",
                    needs.ranks,
                    ranks == 1
                        ? std::string("there is one")
                        : fmt::format("{} has started {}", made.environment_.launcher, ranks),
                    needs.ranks));
  return made;
}

Status TrainingRanks::withGpu(const Status &found) const {
  return found.isOk() || ranks() == 1
             ? found
             : Status(found.code(), found.message() +
                                        "; start at most one rank for each GPU, or give --device 0 "
                                        "if each of them sees one GPU");
}

Status TrainingRanks::join(int device) {
  if (ranks() == 1)
    return Status::ok();
  const auto timeout = std::chrono::milliseconds(int64_t(flags_.timeout * 1000));
  if (!flags_.id)
    CGC_TRY(meet(timeout));
  CGC_ASSIGN_OR_RETURN(communicator_, Communicator::create(*flags_.id, {.rank = rank(),
                                                                        .ranks = ranks(),
                                                                        .device = device,
                                                                        .ncclPath = flags_.nccl,
                                                                        .timeout = timeout}));
  if (rendezvous_)
    rendezvous_->watch([communicator = std::weak_ptr(communicator_)] {
      if (const auto alive = communicator.lock())
        alive->abort({Code::Device, "another rank has ended, which ends the training of all"});
    });
  return Status::ok();
}

Status TrainingRanks::meet(std::chrono::milliseconds timeout) {
  std::string folder = flags_.rendezvous;
  if (folder.empty()) {
    auto chosen = defaultRendezvousFolder(environment_);
    CGC_TRY(chosen.status().withContext("--rendezvous"));
    folder = *std::move(chosen);
  }
  CGC_ASSIGN_OR_RETURN(rendezvous_,
                       Rendezvous::join({.folder = folder,
                                         .isTemporary = flags_.rendezvous.empty(),
                                         .rank = rank(),
                                         .ranks = ranks(),
                                         .timeout = timeout},
                                        [&] { return Communicator::makeId(flags_.nccl); }));
  flags_.id = rendezvous_->id();
  return Status::ok();
}

Status TrainingRanks::agree(std::span<const SharedFact> facts) const {
  return communicator_ ? communicator_->agree(facts) : Status::ok();
}

Result<int> TrainingRanks::largest(int own) const {
  if (!communicator_)
    return own;
  CGC_ASSIGN_OR_RETURN(const uint8_t largest, communicator_->largest(uint8_t(own)));
  return int(largest);
}

Status TrainingRanks::within(const std::string &what, const std::function<Status()> &body) const {
  return communicator_ ? cgc::within(*communicator_, what, body) : body();
}

Status TrainingRanks::explain(const Status &failure) const {
  if (failure.isOk() || ranks() == 1)
    return failure;
  const Status own = failure.withContext(fmt::format("rank {}", rank()));
  if (communicator_)
    communicator_->abort(own);
  return rendezvous_ ? rendezvous_->explain(own) : own;
}

} // namespace cgc::tool

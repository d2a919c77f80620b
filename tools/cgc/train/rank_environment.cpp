// The variables by which launchers tell a process its rank.
#include "tools/cgc/train/rank_environment.h"

#include <charconv>
#include <cstdlib>
#include <vector>

namespace cgc::tool {
namespace {

/// The variables of a launcher. Sources: the manual pages torchrun, mpirun (Open MPI, section
/// "Exported environment variables"), mpiexec of MPICH (Hydra), and srun ("Output environment
/// variables").
struct LauncherVariables {
  const char *launcher, *rank, *ranks, *localRank, *localRanks;
};
constexpr LauncherVariables kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE"};
constexpr LauncherVariables kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr LauncherVariables kMpich = {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                                      "MPI_LOCALNRANKS"};
constexpr LauncherVariables kSlurm = {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""};

class Environment final {
public:
  explicit Environment(const GetVariable &get) : get_(get) {}

  std::string text(const char *name) const {
    const char *const value = *name ? get_(name) : nullptr;
    return value ? value : "";
  }
  bool has(const char *name) const { return !text(name).empty(); }

  /// A number of at least `least`.
  Result<int> number(const char *name, int least) const {
    const std::string value = text(name);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least)
      return Status(Code::Usage, "the variable " + std::string(name) + " is '" + value +
                                     "', and has to be a number from " + std::to_string(least) +
                                     "; start the ranks with a launcher, or unset it");
    return number;
  }

  Result<RankEnvironment> read(const LauncherVariables &names) const {
    RankEnvironment e;
    e.launcher = names.launcher;
    for (const auto &[missing, other] :
         {std::pair(names.rank, names.ranks), {names.ranks, names.rank}})
      if (!has(missing))
        return incomplete(has(other) ? other : names.localRank, missing);
    CGC_ASSIGN_OR_RETURN(e.rank, number(names.rank, 0));
    CGC_ASSIGN_OR_RETURN(e.ranks, number(names.ranks, 1));
    if (e.rank >= e.ranks)
      return contradiction(names.rank, names.ranks);
    if (has(names.localRank)) {
      CGC_ASSIGN_OR_RETURN(e.localRank, number(names.localRank, 0));
      if (e.localRank >= e.ranks)
        return contradiction(names.localRank, names.ranks);
    } else if (e.ranks > 1) {
      return incomplete(names.ranks, names.localRank);
    }
    if (has(names.localRanks)) {
      CGC_ASSIGN_OR_RETURN(e.localRanks, number(names.localRanks, 1));
      if (*e.localRanks > e.ranks)
        return contradiction(names.localRanks, names.ranks);
      if (e.localRank >= *e.localRanks)
        return contradiction(names.localRank, names.localRanks);
    }
    return e;
  }

  Status contradiction(const char *one, const char *other) const {
    return {Code::Usage, "the variables " + std::string(one) + "=" + text(one) + " and " + other +
                             "=" + text(other) +
                             " contradict each other; start the ranks with one launcher, or unset "
                             "those that it did not set"};
  }

private:
  static Status incomplete(const char *set, const char *missing) {
    return {Code::Usage, "the variable " + std::string(set) + " is set and " + missing +
                             " is not; start the ranks with a launcher, or set or unset both"};
  }

  const GetVariable &get_;
};

/// The parts that are not empty, joined by '-'; empty if `parts[0]` is.
std::string runName(const std::vector<std::string> &parts) {
  if (parts[0].empty())
    return "";
  std::string name;
  for (const std::string &part : parts)
    if (!part.empty())
      name += (name.empty() ? "" : "-") + part;
  return name;
}

Result<RankEnvironment> readTorchrun(const Environment &environment) {
  CGC_ASSIGN_OR_RETURN(RankEnvironment e, environment.read(kTorchrun));
  const std::string id = environment.text("TORCHELASTIC_RUN_ID");
  const std::string port = environment.text("MASTER_PORT");
  // The run id is "none" unless the user gives one; no two runs of a host have the same port.
  e.run = runName({port, id, environment.text("TORCHELASTIC_RESTART_COUNT")});
  if (id.empty()) // Somebody has set them by hand, maybe for another launcher than the one at work.
    for (const LauncherVariables &other : {kOpenMpi, kMpich}) {
      if (!environment.has(other.rank) || !environment.has(other.ranks))
        continue;
      CGC_ASSIGN_OR_RETURN(const RankEnvironment o, environment.read(other));
      if (o.rank != e.rank)
        return environment.contradiction(kTorchrun.rank, other.rank);
      if (o.ranks != e.ranks)
        return environment.contradiction(kTorchrun.ranks, other.ranks);
    }
  return e;
}

Result<RankEnvironment> readSlurm(const Environment &environment) {
  LauncherVariables names = kSlurm;
  if (environment.has("SLURM_STEP_NUM_TASKS"))
    names.ranks = "SLURM_STEP_NUM_TASKS"; // SLURM_NTASKS may be that of the job.
  CGC_ASSIGN_OR_RETURN(const int tasks, environment.number(names.ranks, 1));
  if (tasks == 1)
    return RankEnvironment{};
  CGC_ASSIGN_OR_RETURN(RankEnvironment e, environment.read(names));
  if (environment.text("SLURM_STEP_NUM_NODES") == "1")
    e.localRanks = e.ranks;
  return e;
}

} // namespace

Result<RankEnvironment> readRankEnvironment(const GetVariable &get) {
  const Environment environment(get);
  const auto hasAny = [&](const LauncherVariables &names) {
    return environment.has(names.rank) || environment.has(names.ranks);
  };
  if (hasAny(kTorchrun) || environment.has(kTorchrun.localRank))
    return readTorchrun(environment);
  // A batch script has Slurm's variables too, but runs once.
  const bool isStep = environment.has("SLURM_STEP_ID") && hasAny(kSlurm);
  const std::string slurmRun =
      runName({environment.text("SLURM_JOB_ID"), environment.text("SLURM_STEP_ID")});
  RankEnvironment e;
  if (hasAny(kOpenMpi)) {
    CGC_ASSIGN_OR_RETURN(e, environment.read(kOpenMpi));
    e.run = environment.text("PMIX_NAMESPACE");
    if (e.run.empty())
      e.run = environment.text("OMPI_MCA_ess_base_jobid");
  } else if (hasAny(kMpich) && (environment.has(kMpich.localRank) || !isStep)) {
    CGC_ASSIGN_OR_RETURN(e, environment.read(kMpich)); // Slurm's own PMI sets no local rank.
    e.run = slurmRun;
  } else if (isStep) {
    CGC_ASSIGN_OR_RETURN(e, readSlurm(environment));
    e.run = slurmRun;
  }
  return e;
}

} // namespace cgc::tool

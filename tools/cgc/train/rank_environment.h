// RankEnvironment: the place of this process among those that a launcher started.
#pragma once

#include "runtime/base/status.h"

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace cgc::tool {

struct RankEnvironment {
  int rank = 0;                  ///< In [0, ranks).
  int ranks = 1;                 ///< Of the run, on all hosts.
  int localRank = 0;             ///< Among those of this host, from 0: the index of its GPU.
  std::optional<int> localRanks; ///< Of this host; not known if the launcher does not say.
  std::string launcher;          ///< "torchrun", "Open MPI", "MPICH" or "Slurm"; empty: none.
  /// Names the run and its restart, alike in all ranks; empty if the launcher has no name for it.
  std::string run;
};

/// The value of a variable of the environment; null if it is not set.
using GetVariable = std::function<const char *(const char *)>;

/// Reads what launchers set: torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), Open MPI
/// (OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE), MPICH and Intel MPI (PMI_RANK,
/// PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS) and Slurm, in a step of several tasks (SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID, SLURM_STEP_NUM_NODES), the first of these
/// that is there. An empty variable is not set. Without a launcher there is one rank. Usage, naming
/// the variables, if some of a launcher's are missing, are no numbers or contradict each other.
Result<RankEnvironment> readRankEnvironment(const GetVariable &get = ::getenv);

} // namespace cgc::tool

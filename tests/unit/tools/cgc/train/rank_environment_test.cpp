// RankEnvironment: what each launcher sets, and what contradicts.
#include "tools/cgc/train/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace cgc::tool {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using EnvironmentVariables = std::map<std::string, std::string>;

Result<RankEnvironment> read(const EnvironmentVariables &variables) {
  return readRankEnvironment([&](const char *name) -> const char * {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}
/// "launcher rank/ranks local/locals run", or the error.
std::string textOf(const EnvironmentVariables &variables) {
  const Result<RankEnvironment> e = read(variables);
  if (!e.isOk()) {
    EXPECT_EQ(e.status().code(), Code::Usage);
    return e.status().message();
  }
  return e->launcher + " " + std::to_string(e->rank) + "/" + std::to_string(e->ranks) + " " +
         std::to_string(e->localRank) + "/" +
         (e->localRanks ? std::to_string(*e->localRanks) : "?") + " " + e->run;
}
EnvironmentVariables with(EnvironmentVariables variables, const EnvironmentVariables &others) {
  for (const auto &[name, value] : others)
    variables[name] = value;
  return variables;
}

const EnvironmentVariables kTorch = {{"RANK", "5"},
                                     {"WORLD_SIZE", "8"},
                                     {"LOCAL_RANK", "1"},
                                     {"LOCAL_WORLD_SIZE", "4"},
                                     {"MASTER_ADDR", "host"},
                                     {"MASTER_PORT", "29500"},
                                     {"TORCHELASTIC_RUN_ID", "none"},
                                     {"TORCHELASTIC_RESTART_COUNT", "2"}};
const EnvironmentVariables kMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                   {"PMIX_NAMESPACE", "prterun-host-7@1"}};
const EnvironmentVariables kHydra = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
const EnvironmentVariables kSlurmStep = {
    {"SLURM_PROCID", "3"},        {"SLURM_NTASKS", "4"},  {"SLURM_LOCALID", "1"},
    {"SLURM_JOB_ID", "77"},       {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"},
    {"SLURM_STEP_NUM_NODES", "2"}};

TEST(RankEnvironment, IsOneRankWithoutALauncher) {
  EXPECT_EQ(textOf({}), " 0/1 0/? ");
  EXPECT_EQ(textOf({{"MASTER_ADDR", "host"}, {"MASTER_PORT", "1"}, {"RANK", ""}}), " 0/1 0/? ");
}

TEST(RankEnvironment, IsThatOfEachLauncher) {
  EXPECT_EQ(textOf(kTorch), "torchrun 5/8 1/4 29500-none-2");
  EXPECT_EQ(textOf(kMpi), "Open MPI 1/2 1/2 prterun-host-7@1");
  EXPECT_EQ(textOf(kHydra), "MPICH 0/2 0/2 ");
  EXPECT_EQ(textOf(kSlurmStep), "Slurm 3/4 1/? 77-0");
  EXPECT_EQ(textOf(with(kSlurmStep, {{"SLURM_STEP_NUM_NODES", "1"}})), "Slurm 3/4 1/4 77-0");
  EXPECT_EQ(textOf({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "torchrun 0/1 0/? ");
}

TEST(RankEnvironment, IsThatOfTheInnermostLauncher) {
  // torchrun, once on each host by mpirun or srun.
  EXPECT_EQ(textOf(with(kMpi, kTorch)), "torchrun 5/8 1/4 29500-none-2");
  EXPECT_EQ(textOf(with(kSlurmStep, kTorch)), "torchrun 5/8 1/4 29500-none-2");
  // mpirun in an allocation, and srun with Slurm's own PMI.
  EXPECT_EQ(textOf(with(kSlurmStep, kMpi)), "Open MPI 1/2 1/2 prterun-host-7@1");
  EXPECT_EQ(textOf(with(kSlurmStep, kHydra)), "MPICH 0/2 0/2 77-0");
  EXPECT_EQ(textOf(with(kSlurmStep, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}})), "Slurm 3/4 1/? 77-0");
  // Variables that a wrapper copied.
  EXPECT_EQ(textOf(with(kMpi, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}})),
            "torchrun 1/2 1/? ");
}

TEST(RankEnvironment, IsOneRankInABatchScriptAndInAStepOfOneTask) {
  EnvironmentVariables batch = kSlurmStep;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(textOf(batch), " 0/1 0/? ");
  EXPECT_EQ(textOf(with(kSlurmStep, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})),
            " 0/1 0/? 77-0");
}

TEST(RankEnvironment, NamesWhatIsMissing) {
  const auto without = [](EnvironmentVariables variables, const std::string &name) {
    variables.erase(name);
    return textOf(variables);
  };
  EXPECT_THAT(without(kTorch, "RANK"), HasSubstr("WORLD_SIZE is set and RANK is not"));
  EXPECT_THAT(without(kTorch, "WORLD_SIZE"), HasSubstr("RANK is set and WORLD_SIZE is not"));
  EXPECT_THAT(without(kTorch, "LOCAL_RANK"), HasSubstr("WORLD_SIZE is set and LOCAL_RANK is not"));
  EXPECT_THAT(textOf({{"LOCAL_RANK", "0"}}), HasSubstr("LOCAL_RANK is set and RANK is not"));
  EXPECT_THAT(without(kMpi, "OMPI_COMM_WORLD_SIZE"), HasSubstr("OMPI_COMM_WORLD_SIZE is not"));
  EXPECT_THAT(without(kMpi, "OMPI_COMM_WORLD_LOCAL_RANK"),
              HasSubstr("OMPI_COMM_WORLD_LOCAL_RANK is not"));
  EXPECT_THAT(without(kHydra, "PMI_RANK"), HasSubstr("PMI_RANK is not"));
  EXPECT_THAT(without(kHydra, "MPI_LOCALRANKID"), HasSubstr("MPI_LOCALRANKID is not"));
  EXPECT_THAT(without(kSlurmStep, "SLURM_PROCID"), HasSubstr("SLURM_PROCID is not"));
  EXPECT_THAT(without(kSlurmStep, "SLURM_LOCALID"), HasSubstr("SLURM_LOCALID is not"));
}

TEST(RankEnvironment, NamesWhatIsWrong) {
  EXPECT_THAT(textOf(with(kTorch, {{"RANK", "x"}})), HasSubstr("RANK is 'x'"));
  EXPECT_THAT(textOf(with(kTorch, {{"RANK", "-1"}})), HasSubstr("RANK is '-1'"));
  EXPECT_THAT(textOf(with(kTorch, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE is '0'"));
  EXPECT_THAT(textOf(with(kTorch, {{"WORLD_SIZE", "99999999999"}})), HasSubstr("a number from 1"));
  EXPECT_THAT(textOf(with(kTorch, {{"RANK", "8"}})),
              AllOf(HasSubstr("RANK=8"), HasSubstr("WORLD_SIZE=8"), HasSubstr("contradict")));
  EXPECT_THAT(textOf(with(kTorch, {{"LOCAL_RANK", "4"}})),
              AllOf(HasSubstr("LOCAL_RANK=4"), HasSubstr("LOCAL_WORLD_SIZE=4")));
  EXPECT_THAT(textOf(with(kTorch, {{"LOCAL_WORLD_SIZE", "9"}})), HasSubstr("LOCAL_WORLD_SIZE=9"));
  EXPECT_THAT(textOf(with(kMpi, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}})),
              AllOf(HasSubstr("RANK=0"), HasSubstr("OMPI_COMM_WORLD_RANK=1")));
  EXPECT_THAT(textOf(with(kHydra, {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}})),
              AllOf(HasSubstr("WORLD_SIZE=4"), HasSubstr("PMI_SIZE=2")));
}

} // namespace
} // namespace cgc::tool

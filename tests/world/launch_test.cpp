#include "core/world/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/status.h"

namespace tutti {
namespace {

Launch launched(const std::map<std::string, std::string>& variables) {
  return launch_of([&](const char* name) -> const char* {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    expect_connected(launched(variables));
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.remedy;
  }
  return "";
}

TEST(Launch, AloneWithoutALauncher) {
  EXPECT_EQ(launched({}).ranks, 1);
  EXPECT_EQ(launched({{"WORLD_SIZE", "1"}, {"RANK", "0"}}).ranks, 1);
  EXPECT_EQ(launched({{"OMPI_COMM_WORLD_SIZE", "many"}}).ranks, 1);
}

TEST(Launch, KnowsMpiexecAndSrun) {
  Launch open_mpi = launched({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"WORLD_SIZE", "4"}});
  EXPECT_EQ(open_mpi.ranks, 4);
  EXPECT_EQ(open_mpi.rank, 3);
  EXPECT_EQ(open_mpi.mpi, "Open MPI");
  EXPECT_EQ(launched({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}).mpi, "MPICH");
  Launch srun = launched({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(srun.ranks, 2);
  EXPECT_EQ(srun.rank, 1);
  EXPECT_EQ(launched({{"SLURM_STEP_NUM_TASKS", "1"}}).ranks, 1);
}

TEST(Launch, RefusesWhatMpiKnowsNothingOf) {
  std::string torchrun = refusal({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"LOCAL_RANK", "0"}});
  EXPECT_NE(torchrun.find("WORLD_SIZE=2"), std::string::npos) << torchrun;
  EXPECT_NE(torchrun.find("mpiexec -n 2 tutti train"), std::string::npos) << torchrun;
  std::string srun = refusal({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}});
  EXPECT_NE(srun.find("srun --mpi=pmix"), std::string::npos) << srun;
  EXPECT_EQ(launched({{"WORLD_SIZE", "2"}, {"RANK", "1"}}).rank, 1);
  EXPECT_EQ(launched({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}}).rank, 1);
  EXPECT_EQ(refusal({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}), "");
}

}  // namespace
}  // namespace tutti

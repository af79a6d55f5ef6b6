#include "core/world/launch.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
Launch launch_of(const std::function<const char*(const char*)>& variable) {
  auto number = [&](const char* name) {
    const char* text = variable(name);
    return parse_number<int>(text ? text : "").value_or(-1);
  };
  struct Known {
    const char *ranks, *rank, *mpi;
  };
  for (const Known& k :
       {Known{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI"}, Known{"PMI_SIZE", "PMI_RANK", "MPICH"}})
    if (int ranks = number(k.ranks); ranks > 0)
      return {number(k.rank), ranks, fmt::format("mpiexec of {}", k.mpi), k.mpi};
  if (int ranks = number("SLURM_STEP_NUM_TASKS"); ranks > 1) {
    const bool connected = number("PMIX_RANK") >= 0;
    return {number(connected ? "PMIX_RANK" : "SLURM_PROCID"), ranks, "srun", "", connected};
  }
  if (number("WORLD_SIZE") > 1 && number("RANK") >= 0)
    return {number("RANK"), number("WORLD_SIZE"), "torchrun", "", false};
  return {};
}

Launch this_launch() { return launch_of(std::getenv); }

void expect_connected(const Launch& launch) {
  if (launch.connected) return;
  if (launch.by == "srun")
    throw invalid(fmt::format("srun started {} processes that know nothing of each other", launch.ranks),
                  "srun --mpi=pmix tutti train …, or mpiexec -n 2 tutti train …");
  throw invalid(
      fmt::format("torchrun's variables are set (WORLD_SIZE={}): Tutti's processes meet over MPI", launch.ranks),
      "start it with mpiexec: mpiexec -n 2 tutti train …");
}

}  // namespace tutti

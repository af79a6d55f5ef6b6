// What started this process: alone, or as one of several by a launcher.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"

namespace tutti {

struct TUTTI_API Launch {
  int rank = 0, ranks = 1;  ///< as the launcher says before MPI is started
  std::string by;           ///< "mpiexec of Open MPI", "srun"; "" where nothing says so
  std::string mpi;          ///< "Open MPI", "MPICH": whose launcher that is; "" where any MPI will do
};

/// What the environment says (`variable`: null where it is not set). Throws Error(invalid) where a launcher started
/// several processes of which MPI would know nothing: torchrun, and srun without MPI.
TUTTI_API Launch launch_of(const std::function<const char*(const char*)>& variable);
/// Of this process's own environment.
TUTTI_API Launch this_launch();
/// The rank that any launcher gave this process, torchrun among them; 0 where none did.
TUTTI_API int launched_rank();

}  // namespace tutti

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
  bool connected = true;    ///< whether MPI knows these processes: not those of torchrun, and of srun without --mpi
};

/// What the environment says (`variable`: null where it is not set).
TUTTI_API Launch launch_of(const std::function<const char*(const char*)>& variable);
/// Of this process's own environment.
TUTTI_API Launch this_launch();
/// Throws Error(invalid) if it is of several processes of which MPI knows nothing.
TUTTI_API void expect_connected(const Launch& launch);

}  // namespace tutti

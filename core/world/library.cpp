#include "core/world/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/status.h"
#include "core/os/library.h"
#include "core/os/trust.h"
#include "core/runtime/registry.h"

namespace tutti {

namespace {

constexpr const char* built_with = "world/libtutti_mpi.so";
constexpr const char* standard_abi = "world/libtutti_mpi_abi.so";

const TuttiWorld& table_of(os::Library library, const std::string& file) {
  auto entry = reinterpret_cast<TuttiWorldEntry>(os::symbol_of(library, "tutti_world"));
  const TuttiWorld* table = entry ? entry(TUTTI_WORLD_ABI) : nullptr;
  if (!table || table->size < sizeof *table)
    throw invalid(fmt::format("{} does not speak version {} of core/abi/tutti_world.h", file, TUTTI_WORLD_ABI),
                  "build it with this engine");
  return *table;
}

}  // namespace

const TuttiWorld& load_world(const std::string& mpi) {
  std::error_code gone;
  std::string failure;
  std::array names{built_with, standard_abi};
  if (mpi == "MPICH") std::ranges::reverse(names);
  for (const char* name : names) {
    if (!failure.empty() && mpi == "MPICH") break;  // the other library is of another MPI
    for (const std::filesystem::path& folder : engine_folders()) {
      std::filesystem::path file = folder / name;
      if (!std::filesystem::exists(file, gone)) continue;
      if (std::string why = os::distrust(file); !why.empty())
        throw invalid(fmt::format("{} is not loaded: {}", file.string(), why));
      std::string why;
      if (os::Library library = os::open_library(file.string(), why)) return table_of(library, file.string());
      if (failure.empty()) failure = why;
    }
  }
  if (failure.empty())
    throw invalid("this build has no MPI",
                  "install Open MPI (Debian: apt install libopenmpi-dev openmpi-bin) and build again");
  throw invalid(fmt::format("MPI cannot be loaded: {}", failure),
                "install Open MPI (Debian: apt install openmpi-bin), or add the folder of your MPI's libraries to "
                "LD_LIBRARY_PATH");
}

}  // namespace tutti

#include "core/world/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/base/status.h"
#include "core/runtime/registry.h"
#include "core/runtime/trust.h"

namespace tutti {

const TuttiWorld& load_world() {
  std::error_code gone;
  for (const std::filesystem::path& folder : engine_folders()) {
    std::filesystem::path file = folder / "world/libtutti_mpi.so";
    if (!std::filesystem::exists(file, gone)) continue;
    if (std::string why = distrust(file); !why.empty())
      throw invalid(fmt::format("{} is not loaded: {}", file.string(), why));
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      throw invalid(fmt::format("MPI cannot be loaded: {}", dlerror()),
                    "install Open MPI (Debian: apt install openmpi-bin)");
    auto entry = reinterpret_cast<TuttiWorldEntry>(dlsym(library, "tutti_world"));
    const TuttiWorld* table = entry ? entry(TUTTI_WORLD_ABI) : nullptr;
    if (!table || table->size < sizeof *table)
      throw invalid(
          fmt::format("{} does not speak version {} of core/abi/tutti_world.h", file.string(), TUTTI_WORLD_ABI),
          "build it with this engine");
    return *table;
  }
  throw invalid("this build has no MPI",
                "install Open MPI (Debian: apt install libopenmpi-dev openmpi-bin) and build again");
}

}  // namespace tutti

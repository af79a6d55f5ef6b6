#include "sdk/rendered/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/log.h"
#include "core/os/folders.h"

namespace tutti::sdk {

void trace_texts(const Host& host, const Traits& traits, const RenderedPlan& plan) {
  if (!logging::traced("texts") || plan.kernels.empty()) return;
  auto say = [&](const std::string& line) { host.log(3, "texts", line); };
  std::error_code error;
  const std::filesystem::path above = std::filesystem::temp_directory_path(error);
  const std::string folder = error ? "" : os::make_folder_in(above, "tutti-kernels-").string();
  if (folder.empty()) return say("the kernel sources cannot be saved: cannot create a folder for them");
  for (uint32_t k = 0; k < plan.kernels.size(); ++k) {
    const KernelSource& kernel = plan.kernels[k];
    auto first = std::find_if(plan.launches.begin(), plan.launches.end(), [&](const PlannedLaunch& launch) {
      return !launch.copy && !launch.library && launch.kernel == k;
    });
    std::string file = fmt::format("{}/{}.{}", folder, k, traits.language->extension);
    std::ofstream out(file);
    if (!(out << kernel.text).flush()) return say(fmt::format("{} cannot be written", file));
    say(fmt::format("{}: {}, groups of {} x {} x {}{}", file, first == plan.launches.end() ? "" : first->name,
                    kernel.local[0], kernel.local[1], kernel.local[2], kernel.exact ? ", exact" : ""));
  }
}

}  // namespace tutti::sdk

#include "cli/device_list.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::cli {

std::vector<Device> devices_named(const std::string& list) {
  std::vector<Device> out;
  if (list == "all") {
    tell_lost_plugins();
    for (const Device& d : Registry::instance().devices()) {
      if (d.unusable.empty())
        out.push_back(d);
      else
        fmt::print(stderr, "{} cannot be used: {}\n", d.id, d.unusable);
    }
    if (out.empty()) select_device("auto");  // says why there is none
    return out;
  }
  for (const std::string& id : split(list, ',')) out.push_back(select_device(id));
  if (out.empty()) throw invalid(fmt::format("--device '{}': no device named", list), "--device all");
  return out;
}

}  // namespace tutti::cli

#include "cli/device_list.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/text.h"

namespace tutti::cli {

std::vector<Device> devices_named(const std::string& list) {
  std::vector<Device> out;
  std::vector<std::string> names = split(list, ',');
  for (std::string& name : names) {
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
  }
  if (names == std::vector<std::string>{"all"}) {
    Registry& registry = Registry::instance();
    std::vector<Ranked> ranked = rank_devices(registry);
    print_lost_plugins();
    for (const Ranked& r : ranked) {
      std::string why = r.device.unusable.empty() ? registry.try_open(r.device) : r.device.unusable;
      if (why.empty())
        out.push_back(r.device);
      else
        print_err("{} cannot be used: {}\n", r.device.id, why);
    }
    if (out.empty()) select_device("auto");  // throws with the reason
    return out;
  }
  for (const std::string& name : names) {
    for (const Device& d : select_devices(name))
      if (std::none_of(out.begin(), out.end(), [&](const Device& other) { return other.id == d.id; })) out.push_back(d);
  }
  if (out.empty()) throw invalid_option("device", list, "no device given", "--device all");
  return out;
}

}  // namespace tutti::cli

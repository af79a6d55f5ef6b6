#include "tests/support/device_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/selector.h"
#include "tests/support/require.h"
#include "verify/parity/device_program.h"

namespace tutti::test {

std::vector<Device> devices_under_test() {
  std::vector<Device> out;
  for (const Device& d : Registry::instance().devices())
    if (d.plugin != "reference" && d.unusable.empty()) out.push_back(d);
  for (const std::string& plugin : required_plugins())
    if (plugin != "reference" && std::ranges::find(out, plugin, &Device::plugin) == out.end())
      ADD_FAILURE() << "TUTTI_REQUIRE names " << plugin << ", which has no usable device here";
  return out;
}

std::vector<Device> devices_and_reference() {
  std::vector<Device> out = devices_under_test();
  out.push_back(select_device("reference:0"));
  return out;
}

std::map<std::string, Tensor> run_on(const Device& device, const Graph& g, const std::map<std::string, Tensor>& inputs,
                                     const std::map<std::string, std::string>& options) {
  Session session(device, options);
  return parity::DeviceProgram(session, g).run(inputs);
}

double relative_error(const Tensor& a, const Tensor& b) {
  if (a.type.shape != b.type.shape) return std::numeric_limits<double>::infinity();
  double worst = 0, scale = 0;
  for (size_t i = 0; i < a.at.size(); ++i) {
    if (std::isnan(a.at[i]) && std::isnan(b.at[i])) continue;
    if (a.at[i] == b.at[i]) continue;  // equal infinities too
    double d = std::abs(a.at[i] - b.at[i]);
    if (!(d <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, d);
  }
  for (double x : b.at)
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  return worst == 0 ? 0 : worst / std::max(scale, 1e-30);
}

}  // namespace tutti::test

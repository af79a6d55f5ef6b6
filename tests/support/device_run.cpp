#include "tests/support/device_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tutti::test {

std::vector<Device> devices_under_test() {
  std::vector<Device> out;
  for (const Device& d : Registry::instance().devices())
    if (d.plugin != "reference" && d.unusable.empty()) out.push_back(d);
  return out;
}

std::map<std::string, Tensor> run_on(const Device& device, const Graph& g, const std::map<std::string, Tensor>& inputs,
                                     const std::map<std::string, std::string>& options) {
  Session session(device, options);
  Legalizer legalizer(session);
  Lowered lowered = compile_for_device(g, legalizer);
  Executable executable = session.compile(lowered.program());
  executable.prepare();
  auto bytes_of = [](const Tensor& t) {
    std::vector<std::byte> bytes(num_bytes(t.type));
    store_tensor(t, bytes.data());
    return bytes;
  };
  for (const State& s : g.states()) {
    if (s.before == none) continue;
    std::vector<std::byte> bytes = bytes_of(inputs.at(s.name));
    session.write(s.name, bytes.data(), bytes.size());
  }
  std::vector<void*> slots = executable.stage();
  for (size_t i = 0; i < slots.size(); ++i) store_tensor(inputs.at(lowered.feeds()[i]), slots[i]);
  session.wait(executable.run());
  std::map<std::string, Tensor> out;
  for (const State& s : g.states()) {
    const TensorType& type = g.info(s.after).type;
    std::vector<std::byte> bytes(num_bytes(type));
    session.read(s.name, bytes.data(), bytes.size());
    out.emplace(s.name, tensor_from(type, bytes.data()));
  }
  return out;
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

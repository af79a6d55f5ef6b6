#include "backends/cpu/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/session.h"
#include "core/base/cpus.h"
#include "core/base/text.h"
#include "core/os/machine.h"
#include "kernels/cpu/team.h"
#include "sdk/shortage.h"

namespace tutti::cpu {
namespace {

class CpuPlugin : public sdk::Plugin {
 public:
  explicit CpuPlugin(const Library& library) : library_(library) {}
  const char* name() const override { return library_.name; }
  const char* version() const override { return TUTTI_VERSION; }
  bool profiles() const override { return true; }
  bool reports_ready() const override { return true; }
  bool exchanges() const override { return true; }

  std::vector<sdk::Device> devices() override {
    sdk::Device d;
    d.name = os::processor_name();
    if (d.name.empty()) d.name = "CPU";
    d.driver = library_.driver();
    d.kind = TUTTI_CPU;
    sdk::take_host_memory(d);
    return {d};
  }

  std::unique_ptr<sdk::Session> open(uint32_t device, const sdk::Options& options) override {
    if (device != 0) throw invalid(fmt::format("{}: no device {}", name(), device), "its one device is 0");
    int threads = default_threads();
    for (const auto& [key, value] : options) {
      if (key != "threads")
        throw invalid(fmt::format("{}: unknown option '{}'", name(), key), "the valid option is: threads");
      threads = parse_number<int>(value).value_or(0);
      if (threads < 1 || threads > most_threads)
        throw invalid(fmt::format("{}: option threads is '{}'", name(), value),
                      fmt::format("use an integer from 1 to {}", most_threads));
    }
    return make_session(library_, std::min(threads, kernels::thread_limit()), host_);
  }

 private:
  const Library& library_;
};

}  // namespace

sdk::Plugin* make_plugin(const Library& library) { return new CpuPlugin(library); }

}  // namespace tutti::cpu

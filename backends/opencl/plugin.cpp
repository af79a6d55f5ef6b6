#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/opencl/driver.h"
#include "backends/opencl/opencl.h"
#include "backends/opencl/pocl_cache.h"
#include "core/os/environment.h"
#include "sdk/rendered/rendered.h"

namespace tutti::opencl {
namespace {

class OpenclPlugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "opencl"; }
  const char* version() const override { return TUTTI_VERSION; }

  void init(sdk::Host host) override {
    Plugin::init(host);
    // Read by PoCL at startup; without it two of its workers may share one core while another is idle.
    os::set_variable("POCL_AFFINITY", "1", false);
    if (std::filesystem::path folder = pocl_cache_folder(); !writable(folder)) {
      unwritable_ = folder.string();
      pocl_cache_.emplace();
    }
  }

  void shutdown() override { pocl_cache_.reset(); }

  std::vector<sdk::Device> devices() override {
    found_ = find_devices([&](int level, const std::string& text) { host_.log(level, "opencl", text); });
    bool pocl =
        std::any_of(found_.begin(), found_.end(), [](const Found& f) { return f.info.name.starts_with("Portable"); });
    if (pocl && !unwritable_.empty())
      host_.log(1, "opencl",
                fmt::format("PoCL cannot write its kernel cache {}; every process will compile its kernels again",
                            std::exchange(unwritable_, "")));
    std::vector<sdk::Device> out;
    for (const Found& f : found_) out.push_back(f.info);
    return out;
  }

 protected:
  std::unique_ptr<sdk::Driver> make_driver(uint32_t device) override {
    return std::make_unique<Driver>(found_[device], host_);
  }

 private:
  std::vector<Found> found_;
  std::string unwritable_;  // PoCL's cache folder, until the warning was logged
  std::optional<PrivatePoclCache> pocl_cache_;
};

}  // namespace

sdk::Plugin* make_plugin() { return new OpenclPlugin; }

}  // namespace tutti::opencl

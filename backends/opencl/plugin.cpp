#include <cstdlib>

#include "backends/opencl/driver.h"
#include "backends/opencl/opencl.h"
#include "sdk/rendered.h"

namespace tutti::opencl {
namespace {

class OpenclPlugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "opencl"; }
  const char* version() const override { return TUTTI_VERSION; }

  void init(sdk::Host host) override {
    Plugin::init(host);
    // PoCL reads it when it starts; without it two of its workers may share one core while another idles.
    setenv("POCL_AFFINITY", "1", 0);
  }

  std::vector<sdk::Device> devices() override {
    found_ = find_devices([&](const std::string& text) { host_.log(2, "opencl", text); });
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
};

}  // namespace

sdk::Plugin* make_plugin() { return new OpenclPlugin; }

}  // namespace tutti::opencl

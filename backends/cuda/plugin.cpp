#include <fmt/format.h>

#include <cstring>

#include "backends/cuda/cuda_plugin.h"
#include "backends/cuda/device_timer.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/nccl.h"
#include "backends/cuda/vendor.h"
#include "sdk/rendered/rendered.h"

namespace tutti::cuda {
namespace {

class CudaPlugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "cuda"; }
  const char* version() const override { return TUTTI_VERSION; }
  bool joins() const override { return true; }
  sdk::GroupId unique_id() override {
    if (!nccl_) nccl_ = open_nccl();
    NcclId id;
    nccl_->check(nccl_->api.ncclGetUniqueId(&id), "ncclGetUniqueId");
    sdk::GroupId name;
    std::memcpy(name.data(), id.internal, name.size());
    return name;
  }

  std::vector<sdk::Device> devices() override {
    try {
      if (!libraries_) libraries_ = open_libraries();
      found_ = find_devices(*libraries_);
      if (found_.empty()) throw Error(Code::declined, "NVIDIA's driver finds no GPU", "check with `nvidia-smi`");
    } catch (const Error& e) {
      // Lists one unusable entry with the reason, for `tutti devices` and --device cuda.
      sdk::Device none;
      none.name = "no CUDA device";
      none.kind = TUTTI_DISCRETE;
      none.unusable = fmt::format("{}{}{}", e.what(), e.remedy.empty() ? "" : "; ", e.remedy);
      host_.log(2, "cuda", none.unusable);
      return {none};
    }
    std::vector<sdk::Device> list;
    for (const Found& f : found_) list.push_back(f.info);
    return list;
  }

 protected:
  std::unique_ptr<sdk::Driver> make_driver(uint32_t device) override { return make(device, false); }
  std::unique_ptr<sdk::Driver> make_driver_for(uint32_t device, const sdk::Options& options) override {
    return make(device, wants_tf32(options));
  }

 private:
  std::unique_ptr<sdk::Driver> make(uint32_t device, bool tf32) {
    auto log = [this](const std::string& text) { host_.log(2, "cuda", text); };
    const Found& found = found_.at(device);
    auto library = [&] {
      std::shared_ptr<Context> context = libraries_->context(found.handle, found.info.name);
      std::string identity = traits_of(*libraries_, found).identity;
      auto tuner = std::make_shared<Tuner>(std::make_unique<DeviceTimer>(context), host_, identity);
      auto kernels = std::make_shared<KernelMaker>(libraries_, context, found.architecture, identity, host_);
      return open_library(log, libraries_->driver_version, tf32, std::move(tuner), std::move(kernels),
                          found.capability);
    };
    return std::make_unique<Driver>(libraries_, found, library, log);
  }

  std::shared_ptr<const Libraries> libraries_;  // never closed; drivers are not unloaded, like the plugin itself
  std::vector<Found> found_;
  std::shared_ptr<const Nccl> nccl_;
};

}  // namespace

sdk::Plugin* make_plugin() { return new CudaPlugin; }

}  // namespace tutti::cuda

// A whole plugin over a Driver: programs become launches of rendered kernels.
//
// A backend implements Driver (driver.h), derives its plugin from RenderedPlugin, and hands it to `table` (plugin.h).
#pragma once
#include <memory>
#include <string>

#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::sdk {

/// A session on that device. Kernel binaries go through the host's cache, keyed by Traits::identity and the kernel's
/// text; throws Error(invalid) where that identity is empty. TUTTI_TRACE=dispatch shows for each node which entry of
/// the kernel list took it and why others declined; with TUTTI_TRACE=kernels every launch is waited for, and its mean
/// time shown at the end.
std::unique_ptr<Session> make_rendered_session(std::unique_ptr<Driver> driver, const Host& host);

/// The plugin of a family of devices that differ in their drivers alone.
class RenderedPlugin : public Plugin {
 public:
  bool profiles() const override { return true; }
  /// The option `self_check` holds the driver to a promise first (self_check.h). Throws Error(invalid) for an index or
  /// option that does not exist, and what is wrong with an unusable device.
  std::unique_ptr<Session> open(uint32_t device, const Options& options) final;

 protected:
  /// A driver of its own for a usable device of devices().
  virtual std::unique_ptr<Driver> make_driver(uint32_t device) = 0;
  /// The same for a session's options, of which there are none unless a plugin overrides this. Throws Error(invalid)
  /// for one that it does not know.
  virtual std::unique_ptr<Driver> make_driver_for(uint32_t device, const Options& options);
};

}  // namespace tutti::sdk

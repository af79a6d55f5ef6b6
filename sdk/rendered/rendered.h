// A complete plugin based on a Driver, which runs programs as launches of rendered kernels.
//
// A backend implements Driver (driver.h), derives its plugin from RenderedPlugin, and hands it to `table` (plugin.h).
#pragma once
#include <memory>
#include <string>

#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::sdk {

/// Creates a session on the driver's device. Kernel binaries are cached by the host, keyed by Traits::identity and the
/// kernel's text; throws Error(invalid) if the identity is empty. TUTTI_TRACE=dispatch logs for each node the chosen
/// entry of the kernel list and the reasons of others; TUTTI_TRACE=kernels waits for every launch and logs mean times
/// at the end.
std::unique_ptr<Session> make_rendered_session(std::unique_ptr<Driver> driver, const Host& host);

/// Base class of plugins that differ only in their drivers.
class RenderedPlugin : public Plugin {
 public:
  bool profiles() const override { return true; }
  bool reports_ready() const override { return true; }
  bool exchanges() const override { return true; }
  /// With the option `self_check`, tests the driver first (self_check.h). Throws Error(invalid) for an unknown index or
  /// option, and the reason of an unusable device.
  std::unique_ptr<Session> open(uint32_t device, const Options& options) final;

 protected:
  /// Creates a driver for a usable device of devices().
  virtual std::unique_ptr<Driver> make_driver(uint32_t device) = 0;
  /// The same with session options; none are supported unless a plugin overrides this. Throws Error(invalid) for an
  /// unknown option.
  virtual std::unique_ptr<Driver> make_driver_for(uint32_t device, const Options& options);
};

}  // namespace tutti::sdk

// Checks of driver functions that programs exercise only partly: plugins based on sdk::RenderedPlugin test their driver
// when a session is opened with the option self_check; others refuse the option.

#include "verify/conformance/plugin_under_test.h"

namespace tutti::conformance {
namespace {

void hold(Findings& f, const TuttiPlugin& t, uint32_t device, const std::string& promise) {
  TuttiPair option = {"self_check", promise.c_str()};
  TuttiSession* s = nullptr;
  Answer a = ask(f, "open with self_check=" + promise, [&](TuttiError* e) {
    return t.open(device, {&option, 1, sizeof option}, &s, e);
  });
  if (a.code == TUTTI_OK && s) t.close(s);
  if (a.code != TUTTI_OK && a.code != TUTTI_INVALID) f.add(a.message);
}

auto promised(const std::string& what) {
  return [what](PluginUnderTest& plugin, Findings& f) {
    const TuttiPlugin& t = plugin.plugin();
    hold(f, t, plugin.device(f), what);
  };
}

/// Checks all devices, because their identities must differ.
void identity(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.plugin();
  plugin.device(f);
  std::vector<bool> usable;
  for (const TuttiDevice& d : plugin.devices(f)) usable.push_back(!d.unusable);
  for (uint32_t i = 0; i < usable.size(); ++i)
    if (usable[i]) hold(f, t, i, "identity");
}

}  // namespace

Checks device_checks() {
  return {
      {"device.groups", "a launch runs every group of work-items once, along all three dimensions", promised("groups")},
      {"device.alignment", "memory starts at multiples of Traits::alignment", promised("alignment")},
      {"device.memory", "allocations have the requested size and do not overlap, or fail with TUTTI_NO_MEMORY",
       promised("memory")},
      {"device.identity", "Traits::identity names device and driver, and differs between devices", identity},
  };
}

}  // namespace tutti::conformance

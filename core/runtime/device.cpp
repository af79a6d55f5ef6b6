#include "core/runtime/device.h"

namespace tutti {

std::string_view name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::discrete: return "discrete";
    case DeviceKind::integrated: return "integrated";
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::software: return "software";
    case DeviceKind::other: break;
  }
  return "other";
}

}  // namespace tutti

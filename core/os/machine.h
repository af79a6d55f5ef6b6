// What the machine and its system are; nothing that identifies its owner.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::os {

/// The processor's name; "" if unknown.
std::string processor_name();
/// Such as "Debian GNU/Linux 12 (bookworm)"; "" if unknown.
std::string system_name();

/// Such as {"Linux", "6.1.0-28-amd64", "x86_64"}.
struct Kernel {
  std::string name, release, machine;
};
Kernel kernel();
/// Changes with every start of the machine; "" if unknown.
std::string boot_id();
/// Paths that change when drivers or devices are added or removed.
std::vector<std::string> driver_places();

/// What all processors did since the start, in a unit of the system: working, and in all.
struct ProcessorTicks {
  uint64_t busy = 0, all = 0;
};
ProcessorTicks processor_ticks();

/// How many threads wanted a processor during the last minute; 0 where the system does not tell (Windows).
double load_average();

}  // namespace tutti::os

// Queries plugins in separate processes, so that a crash or hang of a plugin does not affect this process.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/listing.h"

namespace tutti {

/// The executable `tutti-probe` in one of the engine's own folders; "" if it is missing or not trusted.
std::filesystem::path probe_program();

/// Asks all plugins for their devices, concurrently. If one crashes, exits, or does not answer within
/// TUTTI_PROBE_SECONDS (default 30), its listing's `problem` says so. Throws Error if no process can be started.
std::vector<Listing> list_apart(const std::filesystem::path& program, std::span<const Manifest> plugins);

/// Opens and closes a session on one device in another process. Returns "" if the plugin answered, even if it refused
/// to open the device; otherwise how it failed. Throws Error like list_apart.
std::string open_apart(const std::filesystem::path& program, const Manifest& plugin, uint32_t device);

/// The main function of `tutti-probe`: writes the answer to standard output; what a plugin writes there goes to
/// standard error. Returns the exit code.
int probe_main(const std::vector<std::string>& arguments);

}  // namespace tutti

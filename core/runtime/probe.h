// Asks plugins in processes of their own: whatever a plugin does there, this process goes on.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/listing.h"

namespace tutti {

/// The executable `tutti-probe` in one of the engine's own folders; "" where it is missing or may not be trusted.
std::filesystem::path probe_program();

/// Asks each plugin for its devices, all at once. One that crashes, exits, or has not answered within
/// TUTTI_PROBE_SECONDS (default 30) gives a listing whose problem says so. Throws Error where no process can be
/// started.
std::vector<Listing> list_apart(const std::filesystem::path& program, std::span<const Manifest> plugins);

/// Opens and closes a session on one device. "" or how the plugin failed to answer; a plugin that refuses has answered.
/// Throws Error like list_apart.
std::string open_apart(const std::filesystem::path& program, const Manifest& plugin, uint32_t device);

/// What `tutti-probe` does: it writes the answer to file descriptor 3. Returns the exit code.
int probe_main(int argc, char** argv);

}  // namespace tutti

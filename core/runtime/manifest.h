// The JSON file beside a plugin's library; describes a plugin before any of its code is loaded.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace tutti {

/// One plugin's manifest, validated.
///
///     {"tutti_manifest": 1, "name": "onednn", "version": "0.2.0", "abi": [1, 1], "kind": "cpu", "priority": 50,
///      "library": "libtutti_onednn.so", "description": "oneDNN on the CPU"}
///
/// `description` is optional; unknown keys are ignored.
struct Manifest {
  std::filesystem::path path;  ///< the manifest's absolute path
  std::string name;            ///< 1 to 32 of a-z, 0-9, '_'; device ids start with it
  std::string version, description;
  std::string kind;                   ///< "cpu", "gpu", "software" or "other": the kind of most of its devices
  uint32_t abi_min = 0, abi_max = 0;  ///< the ABI versions that the library supports
  int priority = 0;                   ///< -1000 to 1000; the selector prefers higher values
  std::filesystem::path library;      ///< absolute; in the manifest relative to its folder, without ".."
};

/// Reads and validates a manifest of at most 64 KiB. Throws Error(invalid) naming the file, the key and the expected
/// value.
Manifest read_manifest(const std::filesystem::path& path);

}  // namespace tutti

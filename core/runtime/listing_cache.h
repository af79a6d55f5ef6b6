// A cache of device listings, shared by processes, with entries that expire.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>

#include "core/runtime/blob_cache.h"
#include "core/runtime/listing.h"

namespace tutti {

/// A listing, when it was made, and the devices that have since been opened in a probe process.
struct KeptListing {
  using Clock = std::chrono::system_clock;
  std::string circumstances;  ///< hash of the conditions under which it was made; see ListingCache
  Clock::time_point made;
  Listing listing;
  std::set<uint32_t> opened;
  /// Whether the listing is at most ten minutes old.
  bool fresh() const;
};

/// One entry per manifest. An entry is valid while these are unchanged: the plugin's files, the engine's `tutti-probe`,
/// the environment, the folders where drivers register, the memory limit of this process and the system's boot.
class ListingCache {
 public:
  explicit ListingCache(std::filesystem::path probe) : probe_(std::move(probe)) {}
  /// A hash of the current values of these.
  std::string circumstances(const Manifest& plugin) const;
  /// The entry made under the current circumstances, of any age.
  std::optional<KeptListing> get(const Manifest& plugin) const;
  void put(const Manifest& plugin, const KeptListing& listing) const;

 private:
  std::filesystem::path probe_;
  BlobCache blobs_{BlobCache::default_folder()};
};

}  // namespace tutti

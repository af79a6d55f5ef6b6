// Listings that are kept from one process to the next, for as long as they can be taken to be true.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>

#include "core/runtime/blob_cache.h"
#include "core/runtime/listing.h"

namespace tutti {

/// A listing, when it was made, and the devices that were opened in a process of their own since.
struct KeptListing {
  using Clock = std::chrono::system_clock;
  std::string circumstances;  ///< in which it was made; see ListingCache
  Clock::time_point made;
  Listing listing;
  std::set<uint32_t> opened;
  /// A listing is believed for ten minutes.
  bool fresh() const;
};

/// One entry per manifest. It counts while the plugin's files, the engine's `tutti-probe`, the environment, the folders
/// in which drivers register, the memory that this process may have and the boot of the system are those that it was
/// made with.
class ListingCache {
 public:
  explicit ListingCache(std::filesystem::path probe) : probe_(std::move(probe)) {}
  /// All of that, as it is now, as a hash.
  std::string circumstances(const Manifest& plugin) const;
  /// The entry that was made in the present circumstances, however old it is.
  std::optional<KeptListing> get(const Manifest& plugin) const;
  void put(const Manifest& plugin, const KeptListing& listing) const;

 private:
  std::filesystem::path probe_;
  BlobCache blobs_{BlobCache::default_folder()};
};

}  // namespace tutti

// Entries of the cache: their key is "key", so that each lies under the same name.
#include <cstdint>

#include "core/runtime/blob_cache.h"
#include "tests/support/folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tutti::test::Folder folder;
  static const tutti::BlobCache cache{folder.path()};
  static const std::string name = cache.file_of("key").filename().string();
  folder.write(name, {reinterpret_cast<const char*>(data), size});
  cache.get("key");
  return 0;
}

#include "core/runtime/host.h"

#include <sys/stat.h>

#include <cstring>
#include <thread>

#include "core/runtime/blob_cache.h"
#include "tests/runtime/plugin_folder.h"

namespace tutti::test {
namespace {

std::string get(const BlobCache& cache, const std::string& key) {
  auto bytes = cache.get(key);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(BlobCache, GivesBackWhatWasPut) {
  Folder folder;
  BlobCache cache(folder / "a/b");
  EXPECT_EQ(get(cache, "key"), "");
  cache.put("key", "value", 5);
  cache.put("other", "another value", 13);
  EXPECT_EQ(get(cache, "key"), "value");
  EXPECT_EQ(get(cache, "other"), "another value");
  cache.put("key", "new", 3);
  EXPECT_EQ(get(cache, "key"), "new");
  struct stat s;
  ASSERT_EQ(stat((folder / "a/b").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "a/b"), {}), 2);  // no drafts left
}

TEST(BlobCache, EveryDamagedByteAndEveryCutIsAMiss) {
  Folder folder;
  BlobCache cache(folder / "blobs");
  cache.put("key", "value", 5);
  fs::path file = cache.file_of("key");
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(whole.size(), 32u + 3 + 5);
  auto put = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 0x10;
    put(damaged);
    EXPECT_EQ(get(cache, "key"), "") << "byte " << i;
    put(whole.substr(0, i));
    EXPECT_EQ(get(cache, "key"), "") << "cut at " << i;
  }
  put(whole + "x");
  EXPECT_EQ(get(cache, "key"), "");
  put(whole);
  EXPECT_EQ(get(cache, "key"), "value");
}

TEST(BlobCache, AnUnsafeFolderIsNotUsed) {
  Folder folder;
  BlobCache cache(folder / "blobs");
  cache.put("key", "value", 5);
  ASSERT_EQ(chmod((folder / "blobs").c_str(), 0755), 0);
  EXPECT_EQ(get(cache, "key"), "");
  cache.put("more", "value", 5);
  EXPECT_FALSE(fs::exists(cache.file_of("more")));
  ASSERT_EQ(chmod((folder / "blobs").c_str(), 0700), 0);
  fs::create_directory_symlink(folder / "blobs", folder / "link");
  EXPECT_EQ(get(BlobCache(folder / "link"), "key"), "");
  EXPECT_EQ(get(cache, "key"), "value");
}

TEST(BlobCache, APipeInPlaceOfAnEntryIsAMiss) {
  Folder folder;
  BlobCache cache(folder / "blobs");
  cache.put("key", "value", 5);
  fs::remove(cache.file_of("key"));
  ASSERT_EQ(mkfifo(cache.file_of("key").c_str(), 0600), 0);
  EXPECT_EQ(get(cache, "key"), "");
  cache.put("key", "value", 5);
  EXPECT_EQ(get(cache, "key"), "value");
}

TEST(BlobCache, WhatWasUsedLeastRecentlyGoesFirst) {
  using std::chrono::hours;
  Folder folder;
  const std::string value(1000, 'v');
  BlobCache cache(folder / "blobs", 3500);
  auto put = [&](const std::string& key) { cache.put(key, value.data(), value.size()); };
  auto age = [&](const std::string& key, int by) {
    fs::last_write_time(cache.file_of(key), fs::file_time_type::clock::now() - hours(by));
  };
  for (const char* key : {"a", "b", "c"}) put(key);
  age("a", 3), age("b", 2), age("c", 1);
  EXPECT_EQ(get(cache, "a"), value);  // used now
  folder.write("blobs/0123456789abcdef.blob.1.2.new", "half");
  fs::last_write_time(folder / "blobs/0123456789abcdef.blob.1.2.new", fs::file_time_type::clock::now() - hours(2));
  folder.write("blobs/fedcba9876543210.blob.1.2.new", "half");
  folder.write("blobs/config.new", "somebody's");
  fs::last_write_time(folder / "blobs/config.new", fs::file_time_type::clock::now() - hours(2));
  put("d");
  EXPECT_EQ(get(cache, "b"), "");
  for (const char* key : {"a", "c", "d"}) EXPECT_EQ(get(cache, key), value) << key;
  EXPECT_FALSE(fs::exists(folder / "blobs/0123456789abcdef.blob.1.2.new"));
  EXPECT_TRUE(fs::exists(folder / "blobs/fedcba9876543210.blob.1.2.new")) << "another process may be writing it";
  EXPECT_TRUE(fs::exists(folder / "blobs/config.new")) << "it is no entry's";
}

TEST(BlobCache, EveryCacheLooksThroughItsFolderAtItsFirstEntry) {
  Folder folder;
  const fs::path draft = folder / "blobs/0123456789abcdef.blob.1.2.new";
  for (int k = 0; k < 2; ++k) {
    BlobCache(folder / "blobs").put("key", "value", 5);
    EXPECT_FALSE(fs::exists(draft));
    folder.write("blobs/0123456789abcdef.blob.1.2.new", "half");
    fs::last_write_time(draft, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
}

TEST(BlobCache, TheVariablesNameItsFolder) {
  Folder folder;
  setenv("TUTTI_CACHE", "off", 1);
  EXPECT_EQ(BlobCache::default_folder(), "");
  BlobCache("").put("key", "value", 5);
  setenv("TUTTI_CACHE", "relative", 1);
  EXPECT_EQ(BlobCache::default_folder(), "");
  setenv("TUTTI_CACHE", folder.path().c_str(), 1);
  EXPECT_EQ(BlobCache::default_folder(), folder.path());
  unsetenv("TUTTI_CACHE");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(BlobCache::default_folder(), "/xdg/tutti/blobs");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(BlobCache::default_folder(), "/home/somebody/.cache/tutti/blobs");
}

TEST(BlobCache, WritersAndReadersSeeWholeEntries) {
  Folder folder;
  BlobCache cache(folder / "blobs");
  const std::string a(100000, 'a'), b(100000, 'b');
  cache.put("key", a.data(), a.size());
  auto writer = [&](const std::string& text) {
    for (int i = 0; i < 30; ++i) cache.put("key", text.data(), text.size());
  };
  std::thread first(writer, a), second(writer, b);
  for (int i = 0; i < 60; ++i) {
    std::string text = get(cache, "key");
    EXPECT_TRUE(text == a || text == b) << text.size();
  }
  first.join();
  second.join();
}

TEST(Host, PluginsHaveKeysOfTheirOwn) {
  Folder folder;
  setenv("TUTTI_CACHE", (folder / "blobs").c_str(), 1);
  const TuttiHost* one = make_host("one");
  const TuttiHost* two = make_host("two");
  EXPECT_EQ(one->size, sizeof(TuttiHost));
  one->cache_put(one->self, "key", "value", 5);
  char room[8] = {};
  EXPECT_EQ(two->cache_get(two->self, "key", room, sizeof room), 0u);
  EXPECT_EQ(one->cache_get(one->self, "key", nullptr, 0), 5u);  // how much room it needs
  EXPECT_EQ(one->cache_get(one->self, "key", room, 4), 5u);
  EXPECT_EQ(room[0], '\0');  // too little room: nothing copied
  EXPECT_EQ(one->cache_get(one->self, "key", room, sizeof room), 5u);
  EXPECT_STREQ(room, "value");
}

TEST(Host, LogLinesCarryThePluginsName) {
  const TuttiHost* host = make_host("toy");
  testing::internal::CaptureStderr();
  host->log(host->self, 0, "memory", "it is full");
  host->log(host->self, -7, nullptr, nullptr);
  host->log(host->self, 99, "memory", "details that nobody asked for");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tutti error [memory] toy: it is full\ntutti error [plugin] toy: \n");
}

}  // namespace
}  // namespace tutti::test

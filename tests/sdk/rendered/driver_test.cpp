// What sdk::Driver refuses before a device sees it.
#include "sdk/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sdk/rendered/fake_driver.h"
#include "tests/support/error_of.h"

namespace tutti::sdk {
namespace {

using test::error_of;
using testing::HasSubstr;

struct DriverArguments : testing::Test {
  std::shared_ptr<test::Tape> tape = [] {
    auto t = std::make_shared<test::Tape>();
    t->traits.alignment = 64;
    t->traits.max_texels = 4;
    t->traits.max_buffer_bytes = 512;
    return t;
  }();
  std::unique_ptr<Driver> driver = test::make_fake_driver(tape);
  MemoryId a = driver->allocate(1024, "a"), b = driver->allocate(256, "b");
  KernelId kernel = build({false, true});  // a buffer, then texels

  void TearDown() override {
    driver->release(a);
    driver->release(b);
  }
  KernelId build(std::vector<bool> texels) {
    KernelSource source;
    source.written.resize(texels.size());
    source.texels = std::move(texels);
    std::vector<std::byte> cache;
    return driver->build(source, cache);
  }
  Launch good() const {
    return {.kernel = kernel, .buffers = {{a, 64, 128}, {b, 0, 64}}, .groups = {1, 1, 1}, .name = "k"};
  }
  Launch copy(const Range& from, const Range& to) const { return {.buffers = {from, to}, .name = "c", .copy = true}; }

  /// What recording it says; a launch that is taken must be forgotten by the caller.
  std::string refusal(const Launch& launch) {
    return error_of([&] { driver->record({&launch, 1}, nullptr); });
  }
  void taken(const Launch& launch) { driver->forget(driver->record({&launch, 1}, nullptr)); }
};

TEST_F(DriverArguments, Memory) {
  EXPECT_THAT(error_of([&] { driver->allocate(0, "nothing"); }), HasSubstr("0 bytes for nothing"));
  MemoryId gone = driver->allocate(64, "gone");
  driver->release(gone);
  char byte = 0;
  EXPECT_THAT(error_of([&] { driver->release(gone); }), HasSubstr("unknown memory"));
  EXPECT_THAT(error_of([&] { driver->write({gone, 0, 1}, &byte); }), HasSubstr("write: unknown memory"));
  EXPECT_THAT(error_of([&] { driver->read({gone, 0, 1}, &byte); }), HasSubstr("read: unknown memory"));
  EXPECT_THAT(error_of([&] { driver->fill_zero({gone, 0, 1}); }), HasSubstr("fill_zero: unknown memory"));
  EXPECT_THAT(error_of([&] { driver->release_host(&byte); }), HasSubstr("release_host"));
  void* host = driver->allocate_host(64, "host");
  driver->release_host(host);
  EXPECT_THAT(error_of([&] { driver->release_host(host); }), HasSubstr("release_host"));
}

TEST_F(DriverArguments, RangesEndWhereTheirMemoryDoes) {
  std::vector<std::byte> bytes(1024);
  driver->write({a, 0, 1024}, bytes.data());
  driver->read({a, 1023, 1}, bytes.data());
  driver->fill_zero({a, 1024, 0});
  EXPECT_THAT(error_of([&] {
                driver->write({a, 1, 1024}, bytes.data());
              }),
              HasSubstr("1024 bytes at offset 1 are outside of the memory of 1024"));
  EXPECT_THAT(error_of([&] { driver->read({a, 1024, 1}, bytes.data()); }), HasSubstr("1 bytes at offset 1024"));
  EXPECT_THAT(error_of([&] {
                driver->fill_zero({b, ~0ull, 2});
              }),
              HasSubstr("outside of the memory of 256"));  // wraps around
  EXPECT_THAT(error_of([&] { driver->fill_zero({b, 0, ~0ull}); }), HasSubstr("outside of the memory of 256"));
  int calls = tape->host_copies;
  driver->write({a, 0, 0}, nullptr);
  driver->read({a, 0, 0}, nullptr);
  EXPECT_EQ(tape->host_copies, calls) << "no device is asked for nothing";
}

TEST_F(DriverArguments, RangesOfLaunches) {
  taken(good());
  Launch l = good();
  l.buffers[0].bytes = 0;
  EXPECT_THAT(refusal(l), HasSubstr("k: an empty buffer range"));
  l = good();
  l.buffers[0].offset = 32;
  EXPECT_THAT(refusal(l), HasSubstr("k: offset 32 is not a multiple of the alignment 64"));
  l = good();
  l.buffers[1] = {b, 256, 64};
  EXPECT_THAT(refusal(l), HasSubstr("k: 64 bytes at offset 256 are outside of the memory of 256"));
  l = good();
  l.buffers[0].memory = 77;
  EXPECT_THAT(refusal(l), HasSubstr("k: unknown memory 77"));
  l = good();
  l.buffers[0] = {a, 0, 512};
  taken(l);
  l.buffers[0] = {a, 0, 516};
  EXPECT_THAT(refusal(l), HasSubstr("a buffer range of 516 bytes; kernels of this device can address at most 512"));
}

TEST_F(DriverArguments, Copies) {
  taken(copy({a, 4, 32}, {b, 8, 32}));  // of any offset, and of any size
  taken(copy({a, 0, 508}, {a, 516, 508}));
  EXPECT_THAT(refusal(copy({a, 0, 32}, {b, 0, 36})), HasSubstr("c: a copy needs two buffer ranges of equal size"));
  Launch three = copy({a, 0, 32}, {b, 0, 32});
  three.buffers.push_back({b, 32, 32});
  EXPECT_THAT(refusal(three), HasSubstr("c: a copy needs two buffer ranges of equal size"));
  EXPECT_THAT(refusal(copy({a, 0, 0}, {b, 0, 0})), HasSubstr("c: an empty buffer range"));
}

TEST_F(DriverArguments, Kernels) {
  Launch l = good();
  l.kernel = kernel + 1;
  EXPECT_THAT(refusal(l), HasSubstr("k: unknown kernel"));
  l = good();
  l.buffers.pop_back();
  EXPECT_THAT(refusal(l), HasSubstr("k: 1 buffers given, but the kernel has 2"));
  std::vector<KernelSource> sources(2);
  std::vector<std::vector<std::byte>> caches(1);
  EXPECT_THAT(error_of([&] { driver->build_all(sources, caches); }), HasSubstr("1 cache entries for 2 kernels"));
}

TEST_F(DriverArguments, Groups) {
  for (size_t dimension = 0; dimension < 3; ++dimension) {
    Launch l = good();
    l.groups[dimension] = 65535;
    taken(l);
    for (uint32_t groups : {0u, 65536u}) {
      l.groups[dimension] = groups;
      EXPECT_THAT(refusal(l), HasSubstr(std::to_string(groups) + " groups along one dimension")) << dimension;
    }
  }
}

TEST_F(DriverArguments, TexelsAreWholeAndFew) {
  Launch l = good();
  for (uint64_t bytes : {68u, 80u}) {  // not whole; 5 of at most 4
    l.buffers[1].bytes = bytes;
    EXPECT_THAT(refusal(l), HasSubstr("a texel buffer of " + std::to_string(bytes) + " bytes")) << bytes;
  }
}

TEST_F(DriverArguments, Uploads) {
  void* host = driver->allocate_host(64, "host");
  Upload upload{host, {b, 224, 64}};
  EXPECT_THAT(error_of([&] { driver->record({}, &upload); }), HasSubstr("upload: 64 bytes at offset 224"));
  upload.to.offset = 192;
  driver->forget(driver->record({}, &upload));
  tape->traits.double_buffered_uploads = true;
  EXPECT_THAT(error_of([&] { driver->record({}, &upload); }), HasSubstr("upload: unknown memory 0"));
  upload.buffer = {a, 0, 32};
  EXPECT_THAT(error_of([&] { driver->record({}, &upload); }), HasSubstr("needs an upload buffer of the same size"));
  upload.buffer.bytes = 64;
  driver->forget(driver->record({}, &upload));
  driver->release_host(host);
}

TEST_F(DriverArguments, SequencesAndTickets) {
  Launch l = good();
  SequenceId s = driver->record({&l, 1}, nullptr);
  EXPECT_THAT(error_of([&] { driver->submit(s + 1); }), HasSubstr("unknown sequence"));
  EXPECT_THAT(error_of([&] { driver->forget(s + 1); }), HasSubstr("unknown sequence"));
  EXPECT_THAT(error_of([&] { driver->wait(1, 0); }), HasSubstr("ticket 1 was never returned by run; the newest is 0"));
  uint64_t ticket = driver->submit(s);
  driver->wait(ticket, 0);
  EXPECT_THAT(error_of([&] { driver->wait(ticket + 1, 0); }),
              HasSubstr("ticket 2 was never returned by run; the newest is 1"));
  driver->forget(s);
  EXPECT_THAT(error_of([&] { driver->submit(s); }), HasSubstr("unknown sequence"));
  EXPECT_THAT(error_of([&] { driver->forget(s); }), HasSubstr("unknown sequence"));
}

}  // namespace
}  // namespace tutti::sdk

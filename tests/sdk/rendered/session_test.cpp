// Staging slots, tickets, kernel cache, late errors, options.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/sdk/raw_program.h"
#include "tests/sdk/rendered/fake_driver.h"

namespace tutti::sdk {
namespace {

using test::RawProgram;
using test::Tape;

/// A host whose cache is a map.
struct MapHost {
  std::map<std::string, std::vector<std::byte>> blobs;
  TuttiHost raw = {sizeof(TuttiHost),
                   0,
                   this,
                   nullptr,
                   nullptr,
                   [](void* self, const char* key, void* to, size_t room) -> size_t {
                     auto& blobs = static_cast<MapHost*>(self)->blobs;
                     auto it = blobs.find(key);
                     if (it == blobs.end()) return 0;
                     if (to && room >= it->second.size()) std::memcpy(to, it->second.data(), it->second.size());
                     return it->second.size();
                   },
                   [](void* self, const char* key, const void* from, size_t bytes) {
                     auto* at = static_cast<const std::byte*>(from);
                     static_cast<MapHost*>(self)->blobs[key].assign(at, at + bytes);
                   }};
};

/// The feed x becomes the state y.
struct Keep : RawProgram {
  Keep() {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {3}, "x");
    states = {{"y", TUTTI_NONE, x}};
  }
};

TEST(RenderedSession, TwoSlotsTakeTurns) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  auto e = session->compile(Program::parse(Keep().raw()), {});
  e->prepare();
  void *a = nullptr, *b = nullptr, *c = nullptr;
  auto fill = [](void* at, float x) {
    for (int i = 0; i < 3; ++i) static_cast<float*>(at)[i] = x;
  };
  e->stage({&a, 1});
  void* again = nullptr;
  e->stage({&again, 1});
  EXPECT_EQ(a, again) << "it was not run yet";
  fill(a, 1);
  uint64_t first = e->run();
  e->stage({&b, 1});
  EXPECT_NE(a, b);
  EXPECT_TRUE(tape->waited.empty());
  fill(b, 2);
  uint64_t second = e->run();
  EXPECT_GT(second, first);
  e->stage({&c, 1});
  EXPECT_EQ(c, a);
  EXPECT_EQ(tape->waited, std::vector<uint64_t>{first}) << "the slot was in flight";
  float y[3] = {};
  session->read("y", y, sizeof y);
  EXPECT_EQ(y[0], 2);
  fill(c, 3);
  uint64_t third = e->run();
  session->read("y", y, sizeof y);
  EXPECT_EQ(y[2], 3);
  EXPECT_EQ(tape->submitted[0], tape->submitted[2]);
  EXPECT_NE(tape->submitted[0], tape->submitted[1]);
  session->wait(third, 1000);
  EXPECT_EQ(tape->waited.back(), third);
  EXPECT_THROW(session->wait(third + 1, 1000), Error);
}

TEST(RenderedSession, AStepWaitsAtMostOnce) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  auto e = session->compile(Program::parse(Keep().raw()), {});
  e->prepare();
  int copies = tape->host_copies;
  for (size_t step = 1; step <= 10; ++step) {
    void* feed = nullptr;
    e->stage({&feed, 1});
    e->run();
    EXPECT_EQ(tape->submitted.size(), step) << "one submission per step";
    EXPECT_EQ(tape->waited.size(), step < 3 ? 0 : step - 2)
        << "for the step before the last, whose memory is filled again";
  }
  EXPECT_EQ(tape->host_copies, copies);
}

TEST(RenderedSession, StatesThatTradePlacesAreSavedFirst) {
  RawProgram raw;
  uint32_t a = raw.value(TUTTI_STATE, TUTTI_I32, {2}, "a"), b = raw.value(TUTTI_STATE, TUTTI_I32, {2}, "b");
  raw.states = {{"a", a, b}, {"b", b, a}};
  auto session = make_rendered_session(test::make_fake_driver(std::make_shared<Tape>()), Host());
  auto e = session->compile(Program::parse(raw.raw()), {});
  e->prepare();
  int32_t one[2] = {1, 2}, two[2] = {3, 4}, back[2] = {};
  session->write("a", one, sizeof one);
  session->write("b", two, sizeof two);
  session->wait(e->run(), ~0ull);
  session->read("a", back, sizeof back);
  EXPECT_EQ(back[1], 4);
  session->read("b", back, sizeof back);
  EXPECT_EQ(back[0], 1);
}

TEST(RenderedSession, LaunchesOfADriverWithoutAClockAreWaitedFor) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  TuttiOptions options = {.size = sizeof(TuttiOptions), .flags = TUTTI_OPT_PROFILE};
  auto e = session->compile(Program::parse(Keep().raw()), options);
  e->prepare();
  void* feed = nullptr;
  e->stage({&feed, 1});
  e->run();
  EXPECT_EQ(tape->submitted.size(), 2u) << "the upload and the copy";
  EXPECT_EQ(tape->waited.size(), 2u);
  std::vector<KernelTime> times = e->times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].kernel, "upload of the feeds");
  EXPECT_EQ(times[1].node, TUTTI_NONE) << "a copy of the plan's own";
  EXPECT_GE(times[1].start, times[0].start + times[0].nanoseconds);
}

TEST(RenderedSession, ADeviceWithoutAnIdentityIsRefused) {
  auto tape = std::make_shared<Tape>();
  tape->traits.identity.clear();
  try {
    make_rendered_session(test::make_fake_driver(tape), Host());
    FAIL() << "kernels of another device would be taken from the cache";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::invalid);
    EXPECT_NE(std::string(e.what()).find("Traits::identity is empty"), std::string::npos) << e.what();
    EXPECT_NE(e.remedy.find("compiler"), std::string::npos) << e.remedy;
  }
}

TEST(RenderedSession, KernelsAreBuiltOnceAndCached) {
  MapHost host;
  auto run = [&](const std::string& identity) {
    auto tape = std::make_shared<Tape>();
    tape->traits.identity = identity;
    auto session = make_rendered_session(test::make_fake_driver(tape), Host(&host.raw));
    auto e = session->compile(Program::parse(test::MultiplyAdd().raw()), {});
    auto same = session->compile(Program::parse(test::MultiplyAdd().raw()), {});
    EXPECT_TRUE(tape->built.empty()) << "memory is told before any kernel is built";
    e->prepare();
    same->prepare();
    return tape;
  };
  auto cold = run("device 1");
  ASSERT_EQ(cold->built.size(), 2u) << "a product and a sum, once per session";
  EXPECT_FALSE(cold->from_cache[0] || cold->from_cache[1]);
  EXPECT_EQ(host.blobs.size(), 2u);
  auto warm = run("device 1");
  EXPECT_TRUE(warm->from_cache[0] && warm->from_cache[1]);
  auto other = run("device 2");
  EXPECT_FALSE(other->from_cache[0] || other->from_cache[1]) << "another driver's binary";
}

TEST(RenderedSession, KernelsAreBuiltInOneBatch) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  session->compile(Program::parse(test::MultiplyAdd().raw()), {})->prepare();
  EXPECT_EQ(tape->batches, std::vector<size_t>{2});
  session->compile(Program::parse(test::MultiplyAdd().raw()), {})->prepare();
  EXPECT_EQ(tape->batches, std::vector<size_t>{2}) << "nothing new";
}

TEST(RenderedSession, AKernelThatDoesNotCompileNamesItsNode) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  for (int k : {0, 1}) {
    tape->build_fails_at = k;
    try {
      session->compile(Program::parse(test::MultiplyAdd().raw()), {})->prepare();
      FAIL();
    } catch (const NodeError& e) {
      EXPECT_EQ(e.code, Code::compile);
      EXPECT_EQ(e.node, static_cast<uint32_t>(k));
      EXPECT_NE(std::string(e.what()).find("refused"), std::string::npos);
    }
  }
  tape->build_fails_at = -1;
  tape->built.clear();
  session->compile(Program::parse(test::MultiplyAdd().raw()), {})->prepare();
  EXPECT_EQ(tape->built.size(), 2u) << "nothing half-built is kept";
}

TEST(RenderedSession, ALostDeviceIsSaidAtWaitAndClosesCleanly) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  auto e = session->compile(Program::parse(Keep().raw()), {});
  e->prepare();
  void* feed = nullptr;
  e->stage({&feed, 1});
  uint64_t ticket = e->run();
  tape->lost = true;
  try {
    session->wait(ticket, ~0ull);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::device_lost);
  }
  e.reset();
  tape->recorded.clear();  // what a lost device's driver would drop
}

class FakePlugin : public RenderedPlugin {
 public:
  const char* name() const override { return "fake"; }
  const char* version() const override { return "1"; }
  std::vector<Device> devices() override {
    Device good, bad;
    bad.unusable = "its driver is broken";
    return {good, bad};
  }

 protected:
  std::unique_ptr<Driver> make_driver(uint32_t) override { return test::make_fake_driver(std::make_shared<Tape>()); }
};

TEST(RenderedPlugin, OpensWhatExists) {
  FakePlugin plugin;
  EXPECT_NE(plugin.open(0, {}), nullptr);
  auto message = [&](uint32_t device, const Options& options) {
    try {
      plugin.open(device, options);
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::invalid);
      return std::string(e.what()) + "; " + e.remedy;
    }
  };
  EXPECT_NE(message(2, {}).find("0 to 1"), std::string::npos);
  EXPECT_NE(message(1, {}).find("its driver is broken"), std::string::npos);
  EXPECT_NE(message(0, {{"threads", "2"}}).find("unknown option 'threads'"), std::string::npos);
}

}  // namespace
}  // namespace tutti::sdk

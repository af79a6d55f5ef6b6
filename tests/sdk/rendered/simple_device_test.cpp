// sdk::make_driver over a device of the test's own: order, arguments, tickets, and what is said of late failures.
#include "sdk/simple_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>

namespace tutti::sdk {
namespace {

/// Kernel 0 adds 1 to the first byte of its buffer; `gate` holds every launch back until it is opened.
struct Adder : SimpleDevice {
  Adder() {
    facts.max_allocation_bytes = 1 << 20;
    facts.memory_bytes = 1 << 21;
    facts.identity = "adder";
  }
  ~Adder() override { EXPECT_EQ(held, 0) << "memory was not released"; }
  const Traits& traits() const override { return facts; }
  uint64_t allocate(uint64_t bytes) override {
    if (refuses) return 0;
    ++held;
    return reinterpret_cast<uint64_t>(std::calloc(1, bytes));
  }
  void release(uint64_t memory) override { --held, std::free(reinterpret_cast<void*>(memory)); }
  static char* at(const Part& p) { return reinterpret_cast<char*>(p.memory) + p.offset; }
  void write(const Part& to, const void* from) override { std::memcpy(at(to), from, to.bytes); }
  void read(const Part& from, void* to) override { std::memcpy(to, at(from), from.bytes); }
  std::vector<KernelId> build_all(std::span<const KernelSource> sources, std::span<std::vector<std::byte>>) override {
    return std::vector<KernelId>(sources.size(), 0);
  }
  void launch(KernelId, std::span<const Part> buffers, const std::array<uint32_t, 3>&) override {
    if (gate.valid()) gate.wait();
    if (fails) throw Error(Code::internal, "the adder is broken", "buy another");
    ++*at(buffers[0]);
  }
  void finish() override {
    ++finished;
    if (finish_fails) throw Error(Code::device_lost, "the adder fell off");
  }
  Traits facts;
  std::shared_future<void> gate;
  int finished = 0;
  bool finish_fails = false;
  int held = 0;
  bool refuses = false;
  std::atomic<bool> fails = false;
};

struct SimpleDeviceTest : testing::Test {
  SimpleDeviceTest() {
    auto made = std::make_unique<Adder>();
    device = made.get();
    driver = make_driver(std::move(made));
    KernelSource source;
    source.written.resize(1, true);
    std::vector<std::byte> cache;
    kernel = driver->build(source, cache);
    memory = driver->allocate(64, "the counter");
    driver->fill_zero({memory, 0, 64});
  }
  Launch launch() const { return {kernel, {{memory, 0, 64}}, {1, 1, 1}, "add one", false, nullptr}; }
  SequenceId recorded(std::vector<Launch> launches) { return driver->record(launches, nullptr); }
  int first(uint64_t offset = 0) {
    char x = 0;
    driver->read({memory, offset, 1}, &x);
    return x;
  }
  static std::string error_of(const std::function<void()>& call, Code code) {
    try {
      call();
    } catch (const Error& e) {
      EXPECT_EQ(e.code, code) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
  Adder* device;
  std::unique_ptr<Driver> driver;
  KernelId kernel;
  MemoryId memory;
};

TEST_F(SimpleDeviceTest, StepsRunInOrderAndReadsComeAfterThem) {
  Launch copy{0, {{memory, 0, 16}, {memory, 16, 16}}, {1, 1, 1}, "copy", true, nullptr};
  char* host = static_cast<char*>(driver->allocate_host(16, "the upload"));
  std::memset(host, 5, 16);
  Upload upload{host, {memory, 0, 16}};
  std::vector<Launch> steps = {launch(), copy, launch()};
  SequenceId sequence = driver->record(steps, &upload);
  EXPECT_EQ(driver->submit(sequence), 1u);
  EXPECT_EQ(driver->submit(sequence), 2u);
  EXPECT_EQ(first(), 7);
  EXPECT_EQ(first(16), 6);
  driver->wait(2, ~0ull);
  driver->forget(sequence);
  driver->release_host(host);
}

TEST_F(SimpleDeviceTest, SubmitDoesNotWaitAndWaitKeepsItsTime) {
  std::promise<void> open;
  device->gate = open.get_future().share();
  uint64_t ticket = driver->submit(recorded({launch()}));
  error_of([&] { driver->wait(ticket, 1000000); }, Code::timeout);
  open.set_value();
  driver->wait(ticket, ~0ull);
  EXPECT_EQ(first(), 1);
}

TEST_F(SimpleDeviceTest, AFailureArrivesAtTheWaitAndStays) {
  SequenceId sequence = recorded({launch()});
  driver->wait(driver->submit(sequence), ~0ull);
  device->fails = true;
  uint64_t ticket = driver->submit(sequence);
  EXPECT_EQ(error_of([&] { driver->wait(ticket, ~0ull); }, Code::internal),
            "'add one' failed on the device: the adder is broken");
  device->fails = false;
  driver->wait(1, ~0ull);  // what came before the failure was done
  error_of([&] { driver->submit(sequence); }, Code::internal);
  error_of([&] { first(); }, Code::internal);
  driver->forget(sequence);
  driver->release(memory);  // without a word: destructors call these
}

TEST_F(SimpleDeviceTest, AStepEndsWithFinishAlsoWhenItFails) {
  SequenceId two = recorded({launch(), launch()}), one = recorded({launch()});
  driver->wait(driver->submit(two), ~0ull);
  EXPECT_EQ(device->finished, 1);
  device->fails = true;
  error_of([&] { driver->wait(driver->submit(two), ~0ull); }, Code::internal);
  EXPECT_EQ(device->finished, 2) << "what was enqueued may still use memory";
  driver->forget(one);
}

TEST_F(SimpleDeviceTest, WhatFinishFindsIsTheStepsError) {
  SequenceId two = recorded({launch(), launch()});
  device->finish_fails = true;
  EXPECT_EQ(error_of([&] { driver->wait(driver->submit(two), ~0ull); }, Code::device_lost),
            "'a launch of the step' failed on the device: the adder fell off");
}

TEST_F(SimpleDeviceTest, ADeviceThatDoesNotRunItsLibraryIsToldSo) {
  Launch call = launch();
  call.library = std::make_shared<int>(1);
  call.name = "library: matmul in fc1";
  uint64_t ticket = driver->submit(recorded({call}));
  std::string why = error_of([&] { driver->wait(ticket, ~0ull); }, Code::internal);
  EXPECT_NE(why.find("'library: matmul in fc1' failed on the device: Traits::library is set"), std::string::npos)
      << why;
  try {
    driver->wait(ticket, ~0ull);
  } catch (const Error& e) {
    EXPECT_NE(e.remedy.find("SimpleDevice::run_library"), std::string::npos) << e.remedy;
  }
}

TEST(SimpleDevice, NeedsAnIdentity) {
  auto made = std::make_unique<Adder>();
  made->facts.identity.clear();
  EXPECT_NE(SimpleDeviceTest::error_of([&] { make_driver(std::move(made)); }, Code::invalid).find("identity is empty"),
            std::string::npos);
}

TEST_F(SimpleDeviceTest, MemoryKeepsWithinTheTraits) {
  EXPECT_NE(error_of([&] { driver->allocate(2 << 20, "the weights"); }, Code::no_memory).find("the weights"),
            std::string::npos);
  MemoryId half = driver->allocate(1 << 20, "one half");
  error_of([&] { driver->allocate(1 << 20, "the other"); }, Code::no_memory);
  driver->release(half);
  device->refuses = true;
  error_of([&] { driver->allocate(64, "a little"); }, Code::no_memory);
}

TEST_F(SimpleDeviceTest, WrongArgumentsAreNamed) {
  char x = 0;
  error_of([&] { driver->read({memory, 64, 1}, &x); }, Code::invalid);
  error_of([&] { driver->read({memory, ~0ull, 2}, &x); }, Code::invalid);
  error_of([&] { driver->read({memory + 1, 0, 1}, &x); }, Code::invalid);
  Launch bad = launch();
  bad.kernel = kernel + 1;
  error_of([&] { recorded({bad}); }, Code::invalid);
  bad = launch();
  bad.buffers.clear();
  error_of([&] { recorded({bad}); }, Code::invalid);
  bad = launch();
  bad.groups[1] = 0;
  error_of([&] { recorded({bad}); }, Code::invalid);
  error_of([&] { driver->submit(99); }, Code::invalid);
  error_of([&] { driver->wait(1, 0); }, Code::invalid);
  error_of([&] { driver->forget(99); }, Code::invalid);
  error_of([&] { driver->release_host(&x); }, Code::invalid);
}

}  // namespace
}  // namespace tutti::sdk

// Sentinels around device memory: kept by what stays inside, lost to what does not.
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "sdk/rendered/guard.h"
#include "tests/sdk/rendered/fake_driver.h"

namespace tutti::test {
namespace {

struct Guarded : testing::Test {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::unique_ptr<sdk::Driver> driver = sdk::make_guarded_driver(make_fake_driver(tape));
  sdk::MemoryId from = driver->allocate(64, "the source"), to = driver->allocate(32, "the goal");
  sdk::SequenceId sequence = 0;

  void SetUp() override {
    std::vector<sdk::Launch> launches = {
        {.buffers = {{from, 16, 32}, {to, 0, 32}}, .name = "copy somewhere", .copy = true}};
    sequence = driver->record(launches, nullptr);
  }
  void TearDown() override {
    driver->forget(sequence);
    driver->release(from);
    driver->release(to);
  }
  /// What the driver below allocated for it.
  std::vector<std::byte>& below(sdk::MemoryId id) { return tape->memory.at(id); }
  std::string said() {
    try {
      driver->wait(driver->submit(sequence), ~0ull);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }
};

TEST_F(Guarded, InsideIsTheCallers) {
  std::vector<std::byte> data(64, std::byte{3}), got(64);
  driver->write({from, 0, 64}, data.data());
  EXPECT_EQ(said(), "");
  driver->read({to, 0, 32}, got.data());
  EXPECT_EQ(got[0], std::byte{3});
  EXPECT_EQ(got[31], std::byte{3});
  driver->fill_zero({to, 0, 32});
  EXPECT_EQ(said(), "");
  EXPECT_GE(below(to).size(), 32u + 2 * 64);
}

TEST_F(Guarded, OneByteOutsideIsSaid) {
  for (sdk::MemoryId id : {from, to})
    for (bool end : {false, true}) {
      std::vector<std::byte>& memory = below(id);
      size_t bytes = id == from ? 64 : 32, front = memory.size() - bytes - 1024;
      std::byte& victim = memory[end ? front + bytes : front - 1];
      std::byte kept = std::exchange(victim, std::byte{0});
      std::string text = said();
      EXPECT_NE(text.find(id == from ? "the source" : "the goal"), std::string::npos) << text;
      EXPECT_NE(text.find(end ? "past the end" : "before the start"), std::string::npos) << text;
      EXPECT_NE(text.find("copy somewhere"), std::string::npos) << text;
      victim = kept;
      EXPECT_EQ(said(), "");
    }
}

}  // namespace
}  // namespace tutti::test

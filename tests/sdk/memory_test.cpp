#include "sdk/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "core/base/status.h"

namespace tutti::sdk {
namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(e.what()) + "; " + e.remedy;
  }
  return "no error";
}

TEST(Memory, BuffersCountThemselves) {
  Meter meter;
  {
    Buffer a(meter, 100, "a");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.data()[i], std::byte{0});
    Buffer b(meter, 28, "b");
    EXPECT_EQ(meter.now(), 128u);
    Buffer moved = std::move(b);
    EXPECT_EQ(meter.now(), 128u);
    EXPECT_EQ(moved.size(), 28u);
    EXPECT_EQ(b.size(), 0u);
    a = Buffer(meter, 12, "a");
    EXPECT_EQ(meter.now(), 40u);
    Buffer empty(meter, 0, "empty");
    EXPECT_NE(empty.data(), nullptr);
    EXPECT_EQ(meter.now(), 40u);
  }
  EXPECT_EQ(meter.now(), 0u);
  EXPECT_EQ(meter.peak(), 140u);
}

TEST(Memory, TooMuchNamesItself) {
  Meter meter;
  try {
    Buffer b(meter, size_t{1} << 60, "the arena");
    FAIL() << "2^60 bytes were granted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::no_memory);
    EXPECT_NE(std::string(e.what()).find("the arena: 1152921504606846976 bytes"), std::string::npos) << e.what();
  }
  EXPECT_EQ(meter.now(), 0u);
}

TEST(Memory, States) {
  Meter meter;
  HostStates states;
  TensorType type{DType::f32, {2, 3}};
  EXPECT_EQ(states.declare("w", type), 24u);
  EXPECT_EQ(states.declare("w", type), 0u);
  EXPECT_NE(message_of([&] {
              states.declare("w", {DType::f32, {6}});
            }).find("'w' is f32[2, 3] in this session"),
            std::string::npos);
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  EXPECT_NE(message_of([&] { states.read("w", y, 24); }).find("no memory yet"), std::string::npos);
  EXPECT_EQ(meter.now(), 0u);
  states.allocate("w", meter);
  states.allocate("w", meter);
  EXPECT_EQ(meter.now(), 24u);
  states.read("w", y, 24);
  EXPECT_EQ(y[5], 0);
  states.write("w", x, 24);
  states.read("w", y, 24);
  EXPECT_EQ(std::memcmp(x, y, 24), 0);
  EXPECT_NE(message_of([&] { states.write("w", x, 20); }).find("24 bytes, but 20"), std::string::npos);
  EXPECT_NE(message_of([&] { states.read("v", y, 24); }).find("no state 'v' in this session; its states are: w"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::sdk

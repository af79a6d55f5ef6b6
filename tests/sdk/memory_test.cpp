#include "sdk/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    EXPECT_EQ(b.size(), 0u);  // NOLINT: that is what the test is about
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
  states.allocate({"w"}, meter);
  states.allocate({"w"}, meter);
  EXPECT_EQ(meter.now(), 24u);
  states.read("w", y, 24);
  EXPECT_EQ(y[5], 0);
  states.write("w", x, 24);
  states.read("w", y, 24);
  EXPECT_EQ(std::memcmp(x, y, 24), 0);  // NOLINT(bugprone-suspicious-memory-comparison): bits
  EXPECT_NE(message_of([&] { states.write("w", x, 20); }).find("24 bytes, but 20"), std::string::npos);
  EXPECT_NE(message_of([&] { states.read("v", y, 24); }).find("no state 'v' in this session; its states are: w"),
            std::string::npos);
}

TEST(Memory, StatesOfOneProgramAreOnePiece) {
  Meter meter;
  HostStates states;
  states.declare("w", {DType::f32, {3}});
  states.declare("empty", {DType::f32, {0}});
  states.declare("b", {DType::u8, {5}});
  states.declare("data", {DType::u8, {3 << 20}});
  states.allocate({"w", "empty", "b"}, meter);
  EXPECT_EQ(meter.now(), 17u);  // without padding
  EXPECT_EQ(states.data("b") - states.data("w"), 64);
  EXPECT_NE(states.data("empty"), nullptr);
  std::byte* before = states.data("w");
  states.allocate({"b", "data", "w"}, meter);
  EXPECT_EQ(meter.now(), 17u + (3 << 20));
  EXPECT_EQ(states.data("w"), before);
  states.forget("w");
  EXPECT_EQ(meter.now(), 5u + (3 << 20));
  states.declare("w", {DType::u8, {7}});
  states.allocate({"w"}, meter);
  EXPECT_EQ(meter.now(), 12u + (3 << 20));
  EXPECT_EQ(*states.data("w"), std::byte{0});
  std::byte* data = states.data("data");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  for (size_t k = 0; k < 3 << 20; ++k) ASSERT_EQ(data[k], std::byte{0});
}

TEST(Memory, LargeBuffersAreZeroAfterReuse) {
  Meter meter;
  for (size_t bytes : {size_t{1} << 20, (size_t{5} << 20) + 1})
    for (int round = 0; round < 2; ++round) {
      Buffer b(meter, bytes, "b");
      EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
      EXPECT_EQ(std::count(b.data(), b.data() + bytes, std::byte{0}), static_cast<std::ptrdiff_t>(bytes));
      std::memset(b.data(), 1, bytes);
    }
  EXPECT_EQ(meter.now(), 0u);
}

}  // namespace
}  // namespace tutti::sdk

#include "core/base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tutti {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan_ = std::numeric_limits<double>::quiet_NaN();

/// A 16-bit format described by its bits alone, to check the bit tricks against.
struct Format {
  DType type;
  int exponent_bits, mantissa_bits;
  double decode(uint16_t h) const {
    int bias = (1 << (exponent_bits - 1)) - 1, e = (h >> mantissa_bits) & ((1 << exponent_bits) - 1);
    int m = h & ((1 << mantissa_bits) - 1);
    double sign = h & 0x8000 ? -1 : 1;
    if (e == (1 << exponent_bits) - 1) return m ? nan_ : sign * inf;
    if (e == 0) return sign * std::ldexp(m, 1 - bias - mantissa_bits);
    return sign * std::ldexp((1 << mantissa_bits) + m, e - bias - mantissa_bits);
  }
  uint16_t infinity() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }
  float widen(uint16_t h) const { return type == DType::f16 ? f16_to_f32(h) : bf16_to_f32(h); }
  uint16_t narrow(float x) const { return type == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x); }
};

class HalfTest : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, HalfTest, testing::Values(Format{DType::f16, 5, 10}, Format{DType::bf16, 8, 7}),
                         [](auto& info) { return std::string(name(info.param.type)); });

TEST_P(HalfTest, EveryNumberWidensExactlyAndComesBack) {
  const Format& f = GetParam();
  for (uint32_t h = 0; h < 65536; ++h) {
    auto bits = static_cast<uint16_t>(h);
    float x = f.widen(bits);
    if (std::isnan(f.decode(bits))) {
      ASSERT_TRUE(std::isnan(x)) << h;
      ASSERT_TRUE(std::isnan(f.widen(f.narrow(x)))) << h;
      ASSERT_TRUE(std::isnan(round_to(f.type, x))) << h;
    } else {
      ASSERT_EQ(static_cast<double>(x), f.decode(bits)) << h;
      ASSERT_EQ(std::signbit(x), h >= 0x8000) << h;
      ASSERT_EQ(f.narrow(x), bits) << h;
      ASSERT_EQ(round_to(f.type, x), static_cast<double>(x)) << h;
    }
  }
}

// Between every two neighbours: the middle goes to the even one, anything beside it to the nearer one, also when the
// double lies so near the middle that a float cannot tell.
TEST_P(HalfTest, RoundsToNearestEvenBetweenAllNeighbours) {
  const Format& f = GetParam();
  for (uint16_t h = 0; h + 1 < f.infinity(); ++h) {
    double low = f.decode(h), high = f.decode(static_cast<uint16_t>(h + 1)), middle = (low + high) / 2;
    double even = h % 2 == 0 ? low : high;
    for (double sign : {1.0, -1.0}) {
      ASSERT_EQ(round_to(f.type, sign * middle), sign * even) << h;
      ASSERT_EQ(round_to(f.type, sign * std::nextafter(middle, 0)), sign * low) << h;
      ASSERT_EQ(round_to(f.type, sign * std::nextafter(middle, inf)), sign * high) << h;
      auto as_float = static_cast<float>(sign * middle);
      if (static_cast<double>(as_float) != sign * middle) continue;  // below the smallest float
      ASSERT_EQ(f.widen(f.narrow(as_float)), sign * even) << h;
      ASSERT_EQ(f.widen(f.narrow(std::nextafterf(as_float, 0))), sign * low) << h;
      ASSERT_EQ(f.widen(f.narrow(std::nextafterf(as_float, static_cast<float>(sign * inf)))), sign * high) << h;
    }
  }
}

TEST_P(HalfTest, OverflowStartsHalfAStepBeyondTheLargest) {
  const Format& f = GetParam();
  auto largest = static_cast<uint16_t>(f.infinity() - 1);
  double most = f.decode(largest), step = most - f.decode(static_cast<uint16_t>(largest - 1));
  EXPECT_EQ(round_to(f.type, most + step / 2), inf);
  EXPECT_EQ(round_to(f.type, std::nextafter(most + step / 2, 0)), most);
  EXPECT_EQ(round_to(f.type, 1e300), inf);
  EXPECT_EQ(round_to(f.type, -1e300), -inf);
  EXPECT_EQ(round_to(f.type, inf), inf);
  EXPECT_EQ(round_to(f.type, 1e-300), 0);
  EXPECT_TRUE(std::signbit(round_to(f.type, -1e-300)));
}

TEST(DType, NamesSizesAndClasses) {
  struct Row {
    const char* name;
    size_t size;
    DType type;
    bool is_float, is_integer;
  };
  const Row rows[] = {{"f32", 4, DType::f32, true, false}, {"f64", 8, DType::f64, true, false},
                      {"f16", 2, DType::f16, true, false}, {"bf16", 2, DType::bf16, true, false},
                      {"i32", 4, DType::i32, false, true}, {"i64", 8, DType::i64, false, true},
                      {"u8", 1, DType::u8, false, true},   {"bool", 1, DType::boolean, false, false},
                      {"u32", 4, DType::u32, false, true}};
  for (const Row& r : rows) {
    EXPECT_EQ(name(r.type), r.name);
    EXPECT_EQ(parse_dtype(r.name), r.type);
    EXPECT_EQ(size_of(r.type), r.size);
    EXPECT_EQ(is_float(r.type), r.is_float);
    EXPECT_EQ(is_integer(r.type), r.is_integer);
  }
  for (const char* text : {"", "F32", "f3", "float", "f32 "}) EXPECT_FALSE(parse_dtype(text)) << text;
}

TEST(DType, IntegersTruncateAndClamp) {
  EXPECT_EQ(round_to(DType::i32, 2.9), 2);
  EXPECT_EQ(round_to(DType::i32, -2.9), -2);
  EXPECT_EQ(round_to(DType::i32, 1e10), 2147483647.0);
  EXPECT_EQ(round_to(DType::i32, -1e10), -2147483648.0);
  EXPECT_EQ(round_to(DType::u8, 255.5), 255);
  EXPECT_EQ(round_to(DType::u8, -1), 0);
  EXPECT_EQ(round_to(DType::u32, 4294967296.0), 4294967295.0);
  EXPECT_EQ(round_to(DType::i64, inf), 9223372036854774784.0);
  EXPECT_EQ(round_to(DType::i64, -inf), -9223372036854775808.0);
  for (DType t : {DType::i32, DType::i64, DType::u8, DType::u32}) EXPECT_EQ(round_to(t, nan_), 0) << name(t);
  EXPECT_EQ(round_to(DType::boolean, 0.25), 1);
  EXPECT_EQ(round_to(DType::boolean, -0.0), 0);
  EXPECT_EQ(round_to(DType::boolean, nan_), 1);
  EXPECT_EQ(round_to(DType::f32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(round_to(DType::f64, 0.1), 0.1);
}

TEST(DType, ElementsAreStoredAndLoadedInPlace) {
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean,
                  DType::u32}) {
    size_t n = size_of(t);
    std::vector<unsigned char> bytes(1 + 3 * n, 0xee);  // an odd address: no alignment may be assumed
    for (double x : {0.0, 1.0, 0.3, 200.0, -3.7, 1e9, 1e30}) {
      store_element(t, bytes.data() + 1, 1, x);
      EXPECT_EQ(load_element(t, bytes.data() + 1, 1), round_to(t, x)) << name(t) << " " << x;
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (i >= 1 + n && i < 1 + 2 * n) continue;
      EXPECT_EQ(bytes[i], 0xee) << name(t) << " touched byte " << i;
    }
  }
}

TEST(DType, IntegersHaveNoNegativeZero) {
  for (DType t : {DType::i32, DType::i64, DType::u8, DType::u32})
    for (double x : {-0.0, -0.25, -0.999}) {
      EXPECT_EQ(round_to(t, x), 0) << name(t) << " " << x;
      EXPECT_FALSE(std::signbit(round_to(t, x))) << name(t) << " " << x;
    }
}

}  // namespace
}  // namespace tutti

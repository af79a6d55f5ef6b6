#include "core/base/shape.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_of;

TEST(ShapeTest, CountsElementsAndBytes) {
  EXPECT_EQ(num_elements(Shape{}), 1);
  EXPECT_EQ(num_elements(Shape{2, 3, 4}), 24);
  EXPECT_EQ(num_elements(Shape{2, 0, int64_t{1} << 61}), 0);
  EXPECT_EQ(num_elements(Shape{int64_t{1} << 31, int64_t{1} << 31}), int64_t{1} << 62);
  EXPECT_EQ(error_of([] {
              num_elements(Shape{int64_t{1} << 31, int64_t{1} << 31, 2});
            }),
            "shape [2147483648, 2147483648, 2]: more than 2^62 elements");
  EXPECT_EQ(error_of([] { num_elements(Shape{0, -1}); }), "shape [0, -1]: negative dimension");
  EXPECT_EQ(num_bytes({DType::bf16, {3, 5}}), 30u);
}

TEST(ShapeTest, Strides) {
  EXPECT_EQ(strides_of(Shape{2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(strides_of(Shape{}), Shape{});
  EXPECT_EQ(broadcast_strides(Shape{3, 1}, Shape{2, 3, 4}), (Shape{0, 1, 0}));
  EXPECT_EQ(broadcast_strides(Shape{2, 3, 4}, Shape{2, 3, 4}), (Shape{12, 4, 1}));
}

TEST(ShapeTest, BroadcastingFollowsNumpy) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {5}), Shape{5});
  EXPECT_EQ(broadcast_shapes({0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(error_of([] {
              broadcast_shapes({2, 3}, {4, 3});
            }),
            "shapes [2, 3] and [4, 3] do not broadcast: 2 against 4 in dimension 2 from the right | aligned at the "
            "right, the "
            "dimensions of each pair must be equal, or one of them must be 1");
}

TEST(ShapeTest, Axes) {
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(0, 3), 0);
  EXPECT_EQ(error_of([] { normalize_axis(3, 3); }), "axis 3 is outside [-3, 3) of a tensor of rank 3");
  EXPECT_EQ(error_of([] { normalize_axis(1, 0); }), "axis 1 is outside [-1, 1) of a tensor of rank 0");
  EXPECT_EQ(normalize_axis(-1, 0), 0);
  EXPECT_EQ(normalize_axes(Shape{0}, 0), Shape{});
  EXPECT_EQ(normalize_axes(Shape{}, 0), Shape{});
  EXPECT_EQ(normalize_axes(Shape{-1, 0}, 3), (Shape{0, 2}));
  EXPECT_EQ(normalize_axes(Shape{}, 3), (Shape{0, 1, 2}));
  EXPECT_EQ(error_of([] { normalize_axes(Shape{1, -2}, 3); }), "axes [1, -2] contain the same axis twice");
}

TEST(ShapeTest, Text) {
  EXPECT_EQ(to_string(TensorType{DType::f32, {2, 3}}), "f32[2, 3]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(StatusTest, ResultsHoldAValueOrSayWhyNot) {
  Result<int> good = 7, bad = Status{Code::no_memory, "too big", "use less"};
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 7);
  EXPECT_FALSE(bad.ok());
  try {
    bad.value();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::no_memory);
    EXPECT_STREQ(e.what(), "too big");
    EXPECT_EQ(e.remedy, "use less");
  }
}

}  // namespace
}  // namespace tutti

// The geometry of ops against the formulas in the documentation of PyTorch and NumPy, and against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "core/base/status.h"
#include "core/geometry/conv.h"
#include "core/geometry/copy.h"
#include "core/geometry/index.h"
#include "core/geometry/quantized.h"
#include "core/geometry/reduction.h"

using namespace tutti;

namespace {

Attrs window_attrs(Ints kernel, Ints stride, Ints padding, Ints dilation) {
  return {{"kernel", kernel}, {"stride", stride}, {"padding", padding}, {"dilation", dilation}};
}

Attrs conv_attrs(Ints stride, Ints padding, Ints dilation, int64_t groups) {
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", Ints{groups}}};
}

/// What the function says is wrong; "" when nothing.
template <class F>
std::string problem(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::invalid);
    return e.what();
  }
  return "";
}

void expect_problem(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << "\"" << message << "\" lacks \"" << part << "\"";
}

/// What the copies make of inputs that hold `first`, `first` + 1 and so on; -1 where they write nothing.
Ints copied(const CopyGeometry& g, const std::vector<Shape>& inputs) {
  Ints y(static_cast<size_t>(num_elements(g.result)), -1);
  int64_t first = 0;
  for (size_t k = 0; k < g.copies.size(); ++k) {
    each_element(g.copies[k], [&](size_t from, size_t to) { y.at(to) = first + static_cast<int64_t>(from); });
    first += num_elements(inputs[k]);
  }
  return y;
}

// torch.nn.Conv2d, MaxPool2d and Unfold state H_out = floor((H_in + 2 padding - dilation (kernel - 1) - 1) / stride +
// 1).
TEST(Geometry, sizes_of_windows) {
  WindowGeometry g = window_geometry({2, 3, 7, 9}, window_attrs({3, 2}, {2, 1}, {1, 0}, {1, 2}));
  EXPECT_EQ(g.h.count, 4);  // floor((7 + 2 - 2 - 1) / 2 + 1)
  EXPECT_EQ(g.w.count, 7);  // floor((9 + 0 - 2 - 1) / 1 + 1)
  EXPECT_EQ(g.pooled(), (Shape{2, 3, 4, 7}));
  EXPECT_EQ(g.windows(), (Shape{2, 3, 3, 2, 4, 7}));
  EXPECT_EQ(g.images(), (Shape{2, 3, 7, 9}));
  EXPECT_EQ(g.planes(), 6);
  EXPECT_EQ(g.taps(), 6);
  EXPECT_EQ(g.w.reach(), 3);
  // torch.nn.Fold is the adjoint of Unfold: the same windows lead back to the image.
  Attrs fold = window_attrs({3, 2}, {2, 1}, {1, 0}, {1, 2});
  fold.set("size", Ints{7, 9});
  EXPECT_EQ(fold_geometry(g.windows(), fold).images(), g.images());
  expect_problem(problem([&] { fold_geometry({2, 3, 3, 2, 4, 6}, fold); }), "have the shape [2, 3, 3, 2, 4, 7]");
}

// `inside`, `blind` and positions_outside against asking every place.
TEST(Geometry, what_windows_read) {
  int blind = 0, outside = 0;
  for (int64_t size : {1, 4, 7})
    for (int64_t kernel : {1, 2, 3})
      for (int64_t stride : {1, 2, 3})
        for (int64_t padding : {0, 1, 4})
          for (int64_t dilation : {1, 2, 3, 6}) {
            if (dilation * (kernel - 1) + 1 > size + 2 * padding) continue;
            Attrs a = conv_attrs({stride, stride}, {padding, padding}, {dilation, dilation}, 1);
            WindowAxis axis = window_axis(a, 0, size, kernel);
            std::vector<int64_t> hits(static_cast<size_t>(axis.count));
            for (int64_t tap = 0; tap < kernel; ++tap) {
              auto [first, last] = axis.inside(tap);
              std::set<int64_t> read;
              for (int64_t o = 0; o < axis.count; ++o) {
                int64_t at = o * stride - padding + tap * dilation;
                bool in = at >= 0 && at < size;
                EXPECT_EQ(o >= first && o < last, in);
                hits[static_cast<size_t>(o)] += in;
                if (in) read.insert(at);
              }
              ConvGeometry g = conv_geometry({1, 1, size, 1}, {1, 1, kernel, 1},
                                             conv_attrs({stride, 1}, {padding, 0}, {dilation, 1}, 1));
              Ints results, pixels;
              for (int64_t o = 0; o < axis.count; ++o)
                if (o < first || o >= last) results.push_back(o);
              for (int64_t i = 0; i < size; ++i)
                if (!read.contains(i)) pixels.push_back(i);
              EXPECT_EQ(positions_outside(g, false, tap, 0), results);
              EXPECT_EQ(positions_outside(g, true, tap, 0), pixels);
              outside += !results.empty();
            }
            bool none = std::find(hits.begin(), hits.end(), 0) != hits.end();
            EXPECT_EQ(axis.blind(), none);
            blind += none;
          }
  EXPECT_GT(blind, 0);
  EXPECT_GT(outside, 0);
}

// A 3x3 window over 3x3 pixels with padding 1: the tap in the middle is always inside, one in a corner leaves five out.
TEST(Geometry, places_outside_of_planes) {
  ConvGeometry g = conv_geometry({2, 4, 3, 3}, {6, 2, 3, 3}, conv_attrs({1, 1}, {1, 1}, {1, 1}, 2));
  EXPECT_EQ(positions_outside(g, false, 1, 1), Ints{});
  EXPECT_EQ(positions_outside(g, false, 0, 0), (Ints{0, 1, 2, 3, 6}));
  EXPECT_EQ(positions_outside(g, true, 0, 0), (Ints{2, 5, 6, 7, 8}));
}

// torch.nn.functional.conv2d: weight (out_channels, in_channels / groups, kH, kW), both divisible by groups.
TEST(Geometry, convolutions) {
  Attrs a = conv_attrs({2, 3}, {1, 0}, {1, 1}, 2);
  ConvGeometry g = conv_geometry({5, 4, 6, 9}, {6, 2, 3, 2}, a);
  EXPECT_EQ(g.result(), (Shape{5, 6, 3, 3}));
  EXPECT_EQ(g.images(), (Shape{5, 4, 6, 9}));
  EXPECT_EQ(g.weights(), (Shape{6, 2, 3, 2}));
  EXPECT_EQ(g.depth(), 2);
  EXPECT_EQ(g.filters_per_group(), 3);
  EXPECT_EQ(problem([&] { conv_geometry({5, 4, 6, 9}, {6, 2, 3, 2}, {5, 6, 3, 3}, a); }), "");
  expect_problem(problem([&] {
                   conv_geometry({5, 4, 6, 9}, {6, 2, 3, 2}, {5, 6, 3, 4}, a);
                 }),
                 "but its gradient is [5, 6, 3, 4]");
  expect_problem(problem([&] { conv_geometry({5, 4, 6, 9}, {6, 4, 3, 2}, a); }), "need 2 channels, not 4");
  expect_problem(problem([&] { conv_geometry({5, 3, 6, 9}, {6, 2, 3, 2}, a); }), "groups 2 must divide the 3 channels");
  expect_problem(problem([&] { conv_geometry({5, 4, 6}, {6, 2, 3, 2}, a); }), "both need 4 dimensions");
  a.set("groups", Ints{0});
  expect_problem(problem([&] { conv_geometry({5, 4, 6, 9}, {6, 4, 3, 2}, a); }), "groups 0 must divide");
}

TEST(Geometry, windows_out_of_range) {
  auto bad = [](Shape x, Ints kernel, Ints stride, Ints padding, Ints dilation) {
    return problem([&] { pool_geometry(x, window_attrs(kernel, stride, padding, dilation)); });
  };
  int64_t huge = int64_t{1} << 62;
  EXPECT_EQ(bad({1, 1, 4, 4}, {2, 2}, {2, 2}, {1, 1}, {1, 1}), "");
  expect_problem(bad({1, 1, 4, 4}, {2, 2}, {0, 2}, {0, 0}, {1, 1}), "stride [0, 2]: must be at least 1");
  expect_problem(bad({1, 1, 4, 4}, {2, 2}, {2, 2}, {-1, 0}, {1, 1}), "padding [-1, 0]: must be at least 0");
  expect_problem(bad({1, 1, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, huge}), "dilation [1, 4611686018427387904]");
  expect_problem(bad({1, 1, 4, 4}, {huge, 2}, {2, 2}, {0, 0}, {1, 1}), "kernel [4611686018427387904, 2]");
  expect_problem(bad({1, 1, 4, 4}, {2}, {2, 2}, {0, 0}, {1, 1}), "kernel has 1 values, expected two");
  expect_problem(bad({1, 1, 4, 4}, {2, 3}, {2, 2}, {0, 0}, {1, 2}),
                 "dilation 2 spans 5 elements, but the padded input has only 4");
  expect_problem(bad({1, 1, 4, 4}, {2, 2}, {2, 2}, {2, 0}, {1, 1}), "contain only padding");
  expect_problem(bad({1, 1, 1, 4}, {2, 2}, {1, 2}, {1, 0}, {2, 1}), "contain only padding");  // between the taps
  expect_problem(bad({1, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}), "need 4 dimensions");
  // Empty batches of vast images, where a loop over all windows would take seconds.
  int64_t most = int64_t{1} << 30;
  for (int k = 0; k < 100; ++k) {
    EXPECT_EQ(bad({0, 1, most, most}, {1, 2}, {1, 1}, {0, 1}, {1, 1}), "");
    EXPECT_EQ(bad({0, 1, 1, 1}, {most / 2 + 1, 1}, {2, 1}, {most, 0}, {2, 1}), "");
  }
}

// numpy.sum: axis None reduces all, keepdims leaves them with size one; numpy.max of a zero-size array is an error.
TEST(Geometry, reductions) {
  auto attrs = [](Ints axes, int64_t keep) { return Attrs{{"axes", axes}, {"keep", Ints{keep}}}; };
  ReductionGeometry g = reduction_geometry({2, 3, 4}, attrs({-1, 0}, 0));
  EXPECT_EQ(g.axes, (Ints{0, 2}));
  EXPECT_EQ(g.result, (Shape{3}));
  EXPECT_EQ(g.kept, (Shape{1, 3, 1}));
  EXPECT_EQ(g.count, 8);
  EXPECT_EQ(reduction_geometry({2, 3, 4}, attrs({-1, 0}, 1)).result, (Shape{1, 3, 1}));
  EXPECT_EQ(reduction_geometry({2, 3}, attrs({}, 0)).result, Shape{});
  EXPECT_EQ(reduction_geometry({0, 3}, attrs({0}, 0)).count, 0);
  EXPECT_EQ(problem([&] { reduction_geometry({0, 3}, attrs({1}, 0), true); }), "");  // no element lacks one
  expect_problem(problem([&] { reduction_geometry({0, 3}, attrs({0}, 0), true); }), "[0, 3] has no elements");
  expect_problem(problem([&] { reduction_geometry({2, 3}, attrs({1, -1}, 0)); }), "twice");
  expect_problem(problem([&] { reduction_geometry({2, 3}, attrs({2}, 0)); }), "outside");
}

TEST(Geometry, stages_of_reductions) {
  auto stages = [](const Shape& x, const Ints& axes) {
    std::vector<std::array<int64_t, 3>> list;
    for (const ReductionStage& s : reduction_stages(x, axes)) list.push_back({s.a, s.r, s.b});
    return list;
  };
  using List = std::vector<std::array<int64_t, 3>>;
  EXPECT_EQ(stages({2, 3, 4, 5}, {1, 2}), (List{{2, 12, 5}}));
  EXPECT_EQ(stages({2, 3, 4, 5}, {1, 3}), (List{{24, 5, 1}, {2, 3, 4}}));
  EXPECT_EQ(stages({2, 3, 1, 5}, {1, 3}), (List{{2, 15, 1}}));  // what has size 1 separates nothing
  EXPECT_EQ(stages({2, 1, 5}, {1}), List{});
  EXPECT_EQ(stages({}, {}), List{});
}

// numpy.transpose: axis i of the result is axis axes[i]; numpy.broadcast_to aligns at the right.
TEST(Geometry, transpose_and_broadcast) {
  TransposeGeometry t = transpose_geometry({2, 3}, {{"perm", Ints{-1, 0}}});
  EXPECT_EQ(t.perm, (Ints{1, 0}));
  EXPECT_EQ(t.result, (Shape{3, 2}));
  EXPECT_EQ(copied(t, {{2, 3}}), (Ints{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(copied(transpose_geometry({}, {{"perm", Ints{}}}), {{}}), Ints{0});
  expect_problem(problem([] { transpose_geometry({2, 3}, {{"perm", Ints{0}}}); }), "each of the 2 axes exactly once");
  EXPECT_NE(problem([] { transpose_geometry({2, 3}, {{"perm", Ints{0, -2}}}); }), "");
  CopyGeometry b = broadcast_geometry({3, 1}, {{"shape", Ints{2, 3, 2}}});
  EXPECT_EQ(copied(b, {{3, 1}}), (Ints{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  expect_problem(problem([] { broadcast_geometry({3, 4}, {{"shape", Ints{3, 1}}}); }), "does not broadcast to [3, 1]");
}

// NumPy's basic slicing, "Array indexing": negative i and j count from the end, what lies outside is cut off, and there
// are ceil((j - i) / k) elements.
TEST(Geometry, slices) {
  auto slice = [](Shape x, Ints starts, Ints stops, Ints strides) {
    return slice_geometry(x, {{"starts", starts}, {"stops", stops}, {"strides", strides}});
  };
  SliceGeometry s = slice({5, 7}, {-4, 0}, {-1, 99}, {2, 3});
  EXPECT_EQ(s.starts, (Ints{1, 0}));
  EXPECT_EQ(s.result, (Shape{2, 3}));
  EXPECT_EQ(copied(s, {{5, 7}}), (Ints{7, 10, 13, 21, 24, 27}));
  EXPECT_EQ(slice({5}, {4}, {2}, {}).result, Shape{0});
  EXPECT_EQ(slice({5}, {-99}, {99}, {}).result, Shape{5});
  s = slice({5, 7}, {1, 0}, {5, 7}, {std::numeric_limits<int64_t>::max(), 3});
  EXPECT_EQ(s.result, (Shape{1, 3}));
  EXPECT_EQ(copied(s, {{5, 7}}), (Ints{7, 10, 13}));
  expect_problem(problem([&] { slice({5}, {0}, {5}, {0}); }), "all values must be >= 1");
  expect_problem(problem([&] { slice({5}, {0, 0}, {5}, {}); }), "one value for each of the 1 axes");
}

// numpy.pad with mode "constant": low before, high after; `interior` is jax.lax.pad's: between neighbours.
TEST(Geometry, pads) {
  auto pad = [](Shape x, Ints low, Ints high, Ints interior) {
    return pad_geometry(x, {{"low", low}, {"high", high}, {"interior", interior}});
  };
  PadGeometry p = pad({2, 2}, {1, 0}, {0, 2}, {0, 1});
  EXPECT_EQ(p.result, (Shape{3, 5}));
  EXPECT_EQ(copied(p, {{2, 2}}), (Ints{-1, -1, -1, -1, -1, 0, -1, 1, -1, -1, 2, -1, 3, -1, -1}));
  EXPECT_EQ(p.interior, (Ints{0, 1}));
  EXPECT_EQ(pad({0, 2}, {1, 0}, {2, 0}, {3, 1}).result, (Shape{3, 3}));
  EXPECT_EQ(pad({3}, {0}, {1}, {}).interior, Ints{0});
  p = pad({1, 2}, {0, 99}, {1, 99}, {int64_t{1} << 59, 0});  // between neighbours that are not there
  EXPECT_EQ(p.result, (Shape{2, 200}));
  EXPECT_EQ(copied(p, {{1, 2}})[100], 1);
  expect_problem(problem([&] { pad({3}, {-1}, {0}, {}); }), "all values must be >= 0");
  expect_problem(problem([&] { pad({3}, {0}, {0}, {0, 0}); }), "one value for each of the 1 axes");
}

// numpy.concatenate: the same shape except in the dimension of axis.
TEST(Geometry, concatenations) {
  auto concat = [](std::vector<TensorType> x, int64_t axis) { return concat_geometry(x, {{"axis", Ints{axis}}}); };
  ConcatGeometry c = concat({{DType::f32, {2, 1}}, {DType::f32, {2, 0}}, {DType::f32, {2, 2}}}, -1);
  EXPECT_EQ(c.axis, 1u);
  EXPECT_EQ(c.result, (Shape{2, 3}));
  EXPECT_EQ(copied(c, {{2, 1}, {2, 0}, {2, 2}}), (Ints{0, 2, 3, 1, 4, 5}));
  expect_problem(problem([&] { concat({{DType::f32, {2}}, {DType::i32, {2}}}, 0); }), "only along axis 0");
  expect_problem(problem([&] { concat({{DType::f32, {2, 1}}, {DType::f32, {3, 1}}}, 1); }), "only along axis 1");
  expect_problem(problem([&] { concat({{DType::f32, {2}}, {DType::f32, {2, 1}}}, 0); }), "only along axis 0");
  EXPECT_NE(problem([&] { concat({}, 0); }), "");
  TensorType empty{DType::f32, {0, int64_t{1} << 62}};
  expect_problem(problem([&] { concat({empty, empty}, 1); }), "more than 2^62 elements along axis 1");
}

// numpy.take: the result's shape is a.shape[:axis] + indices.shape + a.shape[axis + 1:].
TEST(Geometry, gather_and_scatter) {
  TensorType x{DType::f32, {2, 5, 3}}, index{DType::i32, {4, 2}};
  IndexGeometry g = gather_geometry(x, index, {{"axis", Ints{-2}}});
  EXPECT_EQ(g.result, (Shape{2, 4, 2, 3}));
  EXPECT_EQ((Ints{g.outer, g.size, g.inner, g.count}), (Ints{2, 5, 3, 8}));
  for (int64_t axis : {1, -2}) {
    IndexGeometry s = scatter_geometry(index, {DType::f32, g.result}, {{"axis", Ints{axis}}, {"size", Ints{5}}});
    EXPECT_EQ(s.result, x.shape);
    EXPECT_EQ((Ints{s.outer, s.size, s.inner, s.count}), (Ints{2, 5, 3, 8}));
  }
  expect_problem(problem([&] { gather_geometry(x, x, {{"axis", Ints{0}}}); }), "expected i32");
  expect_problem(problem([&] { gather_geometry({DType::f32, {0}}, index, {{"axis", Ints{0}}}); }), "no elements");
  auto scatter = [&](const Shape& updates, int64_t axis, int64_t size) {
    return problem([&] {
      scatter_geometry(index, {DType::f32, updates}, {{"axis", Ints{axis}}, {"size", Ints{size}}});
    });
  };
  EXPECT_EQ(scatter({4, 2}, 0, 7), "");
  expect_problem(scatter({4, 3}, 0, 7), "must contain the index shape [4, 2], starting at axis 0");
  expect_problem(scatter({4, 2}, 0, 0), "size 0 must be at least 1");
  expect_problem(scatter({4, 2}, 1, 7), "outside");
  expect_problem(scatter({}, 0, 7), "updates [] have fewer axes than the index [4, 2]");
}

TEST(Geometry, quantised_matrices) {
  auto shape = [](Shape quants, Shape scales, int64_t bits, int64_t group = 32) {
    TensorType parts{DType::f16, scales};
    return quantized_shape({DType::u8, quants}, parts, parts, bits, group);
  };
  EXPECT_EQ(shape({3, 64}, {3, 2}, 8), (Shape{3, 64}));
  EXPECT_EQ(shape({3, 32}, {3, 2}, 4), (Shape{3, 64}));
  EXPECT_EQ(shape({3, 32}, {3, 4}, 4, 16), (Shape{3, 64}));
  EXPECT_EQ(shape({3, 64}, {3, 4}, 8, 16), (Shape{3, 64}));
  expect_problem(problem([&] { shape({3, 48}, {3, 3}, 8, 16); }), "in blocks of 32");
  expect_problem(problem([&] { shape({3, 64}, {3, 8}, 8, 8); }), "group = 8, expected 16 or 32");
  std::vector<TensorType> nested = quantized_parts(3, 512, {.bits = 4, .group = 16, .nested = true});
  ASSERT_EQ(nested.size(), 5u);
  EXPECT_EQ(nested[0], (TensorType{DType::u8, {3, 256}}));
  EXPECT_EQ(nested[1], (TensorType{DType::u8, {3, 32}}));
  EXPECT_EQ(nested[4], (TensorType{DType::f32, {3, 2}}));
  expect_problem(problem([&] { shape({3, 64}, {3, 2}, 4); }), "expected u8[3, 32]");
  expect_problem(problem([&] { shape({3, 64}, {3, 2}, 5); }), "expected 4 or 8");
  expect_problem(problem([&] { shape({0, 0}, {0, int64_t{1} << 60}, 8); }), "more than 2^62");
  expect_problem(problem([&] { shape({0, 0}, {0, int64_t{1} << 57}, 8); }), "expected u8[0, 4611686018427387904]");
}

}  // namespace

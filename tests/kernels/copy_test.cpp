// Copies, windows, gathers and generators over odd shapes, against plain loops.
#include "kernels/cpu/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/philox.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/random.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

template <class T>
void check_copy(const Shape& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                int64_t from_offset, int64_t to_offset) {
  int64_t reads = from_offset + 1, writes = to_offset + 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    reads += (dims[d] - 1) * from[d];
    writes += (dims[d] - 1) * to[d];
  }
  std::vector<T> x(static_cast<size_t>(reads)), y(static_cast<size_t>(writes), T{77}), want(y);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 31 + 5);
  Shape strides = strides_of(dims);
  for (int64_t i = 0; i < num_elements(dims); ++i) {
    int64_t p = from_offset, q = to_offset;
    for (size_t d = 0; d < dims.size(); ++d) {
      p += i / strides[d] % dims[d] * from[d];
      q += i / strides[d] % dims[d] * to[d];
    }
    want[static_cast<size_t>(q)] = x[static_cast<size_t>(p)];
  }
  Copy(dims, from, to, from_offset, to_offset, sizeof(T)).run(x.data(), y.data(), 2);
  EXPECT_EQ(y, want) << to_string(dims);
}

TEST(Copy, strides) {
  auto all = [](const Shape& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to, int64_t p = 0,
                int64_t q = 0) {
    check_copy<uint8_t>(dims, from, to, p, q);
    check_copy<uint16_t>(dims, from, to, p, q);
    check_copy<uint32_t>(dims, from, to, p, q);
    check_copy<uint64_t>(dims, from, to, p, q);
  };
  all({129, 67}, {1, 129}, {67, 1});                 // transpose
  all({300, 500}, {1, 300}, {500, 1});               // a large one
  all({3, 4, 5}, {5, 15, 1}, {20, 5, 1});            // axes 0 and 1 exchanged
  all({2, 3, 4, 5}, {1, 2, 6, 24}, {60, 20, 5, 1});  // all reversed
  all({6, 7}, {0, 1}, {7, 1});                       // broadcast of a row
  all({6, 700}, {1, 0}, {700, 1});                   // of a column
  all({9}, {2}, {1}, 1);                             // slice with stride
  all({4, 5}, {5, 1}, {22, 3}, 0, 13);               // pad with interior
  all({}, {}, {});
  all({1, 1}, {5, 5}, {3, 3});
  all({200000}, {1}, {1});
  Copy({0, 3}, {3, 1}, {3, 1}, 0, 0, 4).run(nullptr, nullptr, 2);
}

struct Image {
  int64_t planes, h, w;
  int64_t kernel[2], stride[2], padding[2], dilation[2];
};

TEST(Copy, windows_and_their_adjoint) {
  for (const Image& g : {Image{3, 5, 4, {3, 2}, {1, 1}, {0, 0}, {1, 1}}, Image{2, 7, 6, {3, 3}, {2, 1}, {1, 2}, {1, 2}},
                         Image{1, 9, 5, {2, 1}, {3, 2}, {0, 0}, {4, 1}}, Image{2, 4, 4, {2, 2}, {1, 1}, {5, 5}, {1, 1}},
                         Image{40, 28, 30, {3, 3}, {2, 2}, {1, 1}, {1, 1}}}) {
    auto axis = [&](size_t i, int64_t size) {
      return WindowAxis{
          size,          g.kernel[i],
          g.stride[i],   g.padding[i],
          g.dilation[i], (size + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1) / g.stride[i] + 1};
    };
    WindowAxis h = axis(0, g.h), w = axis(1, g.w);
    std::vector<float> x(static_cast<size_t>(g.planes * g.h * g.w));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 251) + 1;
    std::vector<float> y(static_cast<size_t>(g.planes * h.kernel * w.kernel * h.count * w.count)), back(x.size(), 9),
        want_back(x.size());
    float outside = -1.5f;
    window(x.data(), y.data(), g.planes, h, w, &outside, 4, 2);
    fold_windows(y.data(), back.data(), g.planes, h, w, false, 2);
    size_t at = 0;
    for (int64_t p = 0; p < g.planes; ++p)
      for (int64_t ky = 0; ky < h.kernel; ++ky)
        for (int64_t kx = 0; kx < w.kernel; ++kx)
          for (int64_t i = 0; i < h.count; ++i)
            for (int64_t j = 0; j < w.count; ++j, ++at) {
              int64_t r = i * h.stride + ky * h.dilation - h.padding, c = j * w.stride + kx * w.dilation - w.padding;
              bool in = r >= 0 && r < g.h && c >= 0 && c < g.w;
              auto k = static_cast<size_t>((p * g.h + r) * g.w + c);
              ASSERT_EQ(y[at], in ? x[k] : outside);
              if (in) want_back[k] += y[at];
            }
    EXPECT_EQ(back, want_back);
  }
}

TEST(Gather, rows_and_adjoint) {
  const int64_t outer = 3, size = 5, inner = 130, count = 400;
  std::vector<float> x(outer * size * inner), y(outer * count * inner), sum(x.size(), 3), want(x.size());
  std::vector<int32_t> index(count);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random_block(1, 0, 0, i)[0] % 1000);
  for (size_t i = 0; i < index.size(); ++i)
    index[i] = static_cast<int32_t>(random_block(2, 0, 0, i)[0] % 9) - 2;  // some outside
  gather(x.data(), index.data(), y.data(), outer, size, inner, count, 4, 2);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < inner; ++k) {
        int64_t row = std::clamp<int64_t>(index[static_cast<size_t>(i)], 0, size - 1);
        ASSERT_EQ(y[static_cast<size_t>((o * count + i) * inner + k)],
                  x[static_cast<size_t>((o * size + row) * inner + k)]);
        want[static_cast<size_t>((o * size + row) * inner + k)] += y[static_cast<size_t>((o * count + i) * inner + k)];
      }
  for (int threads : {1, 2, 4}) {
    scatter_add(index.data(), y.data(), sum.data(), outer, size, inner, count, DType::f32, threads);
    EXPECT_EQ(sum, want) << threads;
  }
}

TEST(Random, words_and_positions) {
  for (int64_t n : {0, 1, 3, 4, 7, 1003, 100001}) {
    std::vector<uint32_t> y(static_cast<size_t>(n));
    for (int threads : {1, 2}) {
      random_bits(y.data(), n, 0x123456789abcdefull, 77, 0xfffffff0u, threads);
      for (int64_t e = 0; e < n; ++e)
        ASSERT_EQ(y[static_cast<size_t>(e)], random_block(0x123456789abcdefull, 77, 0xfffffff0u,
                                                          static_cast<uint64_t>(e / 4))[static_cast<size_t>(e % 4)]);
    }
  }
  std::vector<int32_t> y(24);
  iota(y.data(), 2, 3, 4, 1);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(y[i], static_cast<int32_t>(i / 4 % 3));
}

}  // namespace

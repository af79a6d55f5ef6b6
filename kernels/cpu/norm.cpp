#include "kernels/cpu/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr int64_t piece = 8192;      // elements that are summed in f32 and converted at a time
constexpr int64_t wide_group = 128;  // lanes of a group for channels-last layouts
constexpr int64_t lane_rows = 128;   // rows per accumulator
constexpr int64_t least_tasks = 32;

/// A piece of rows as floats: in place, or converted into a buffer without gaps between rows.
struct Rows {
  const float* at;
  int64_t stride;
};
Rows as_floats(const void* x, Storage s, float* buffer, int64_t rows, int64_t stride, int64_t lanes) {
  if (s == Storage::word) return {static_cast<const float*>(x), stride};
  LaneFn load = isa_kernels().load(s);
  if (stride == lanes || rows == 1) {
    load(buffer, x, x, x, rows * lanes);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const void* from = kernels::at(x, r * stride, s);
      load(buffer + r * lanes, from, from, from, lanes);
    }
  }
  return {buffer, lanes};
}
void store_floats(void* y, Storage s, const float* from, int64_t rows, int64_t stride, int64_t lanes) {
  LaneFn store = isa_kernels().store(s);
  if (stride == lanes || rows == 1) return store(y, from, from, from, rows * lanes);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = from + r * lanes;
    store(kernels::at(y, r * stride, s), row, row, row, lanes);
  }
}

/// Merges a piece of n elements, given by its sums of x - about and of their squares, into `lanes` means and sums of
/// squared deviations of `count` elements (Chan, Golub & LeVeque 1979).
void add_moments(double* mean, double* squares, double count, const float* about, const float* sums, int64_t lanes,
                 double n) {
  double inverse = 1 / n, part = n / (count + n), both = count * part;
  for (int64_t j = 0; j < lanes; ++j) {
    double sum = sums[j], within = sums[lanes + j] - sum * sum * inverse;
    double apart = static_cast<double>(about[j]) + sum * inverse - mean[j];
    squares[j] += (within > 0 ? within : within * 0) + apart * apart * both;
    mean[j] += apart * part;
  }
}

// ---- channels

struct Part {
  int64_t group, first, last;  // range of rows over all segments, in order
};

int64_t parts_of(const ChannelLayout& l) {
  int64_t wanted = (least_tasks + l.groups - 1) / std::max<int64_t>(l.groups, 1);
  return std::clamp<int64_t>(l.count() * l.lanes / piece, 1, wanted);
}
int64_t lanes_of(const ChannelLayout& l, int64_t group) {
  return l.padded ? l.lanes : std::min(l.lanes, l.channels - group * l.lanes);
}
int64_t padded_channels(const ChannelLayout& l) { return l.groups * l.lanes; }
int64_t piece_rows(const ChannelLayout& l) { return l.lanes == 1 ? piece : std::min(piece / l.lanes, lane_rows); }

/// Calls f(element, rows) for each piece of rows [first, last) of a group.
template <class F>
void each_piece(const ChannelLayout& l, const Part& p, F&& f) {
  int64_t most = piece_rows(l);
  for (int64_t r = p.first; r < p.last;) {
    int64_t segment = r / l.rows, row = r % l.rows, n = std::min({most, p.last - r, l.rows - row});
    f(p.group * l.group_step + segment * l.segment_step + row * l.stride, n);
    r += n;
  }
}

/// Calls f(part, index of the part) for every part of every group, in parallel.
template <class F>
void each_part(const ChannelLayout& l, int64_t cost, int threads, F&& f) {
  int64_t parts = parts_of(l), rows = l.count();
  share(l.groups * parts, cost, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t k = first; k < last; ++k) {
      int64_t part = k % parts;
      f(Part{k / parts, rows * part / parts, rows * (part + 1) / parts}, part);
    }
  });
}

/// Computes y or dx in one pass over memory. `numbers`: means, scales, shifts and slopes of all channels, including
/// padding.
void normalise(const ChannelLayout& l, Storage s, bool gradient, void* y, const void* d, const void* x,
               const float* numbers, int threads, const NormLimits& limits = {}) {
  const IsaKernels& isa = isa_kernels();
  int64_t channels = padded_channels(l), most = piece_rows(l), pieces = (l.rows + most - 1) / most;
  share(l.segments * l.groups * pieces, l.count() * l.channels * 2, threads, [&](int64_t first, int64_t last, int) {
    float from[piece], other[piece], own[4 * wide_group];
    for (int64_t k = first; k < last; ++k) {
      int64_t segment = k / pieces / l.groups, group = k / pieces % l.groups, row = k % pieces * most;
      int64_t rows = std::min(most, l.rows - row), lanes = lanes_of(l, group);
      int64_t element = segment * l.segment_step + group * l.group_step + row * l.stride;
      bool line = l.lanes == 1;
      int64_t high = line ? 1 : rows, wide = line ? rows : lanes;
      Rows xs = as_floats(at(x, element, s), s, from, high, l.stride, wide), ds = xs;
      if (gradient) ds = as_floats(at(d, element, s), s, other, high, l.stride, wide);
      auto* to = s == Storage::word ? static_cast<float*>(at(y, element, s)) : from;
      const float* c = numbers + group * l.lanes;
      if (line) {
        NormLine n{c[0], c[channels], c[2 * channels], c[3 * channels], limits};
        if (gradient)
          isa.norm_dx_line(to, nullptr, nullptr, ds.at, xs.at, nullptr, n, rows);
        else
          isa.norm_line(to, xs.at, nullptr, nullptr, n, rows);
      } else {
        for (int64_t i = 0; i < 4; ++i) std::copy_n(c + i * channels, lanes, own + i * lanes);
        if (gradient)
          isa.norm_dx_rows(to, ds.at, xs.at, own, rows, xs.stride, lanes);
        else
          isa.norm_rows(to, xs.at, own, limits, rows, xs.stride, lanes);
      }
      if (s != Storage::word) store_floats(at(y, element, s), s, from, high, l.stride, wide);
    }
  });
}

}  // namespace

ChannelLayout ChannelLayout::planes(int64_t n, int64_t c, int64_t s) {
  if (s == 1) return last(n, c, s);
  return {c, 1, c, n, s, 1, s, c * s};
}
ChannelLayout ChannelLayout::blocks(int64_t n, int64_t c, int64_t s, int64_t block) {
  int64_t groups = (c + block - 1) / block;
  return {c, block, groups, n, s, block, s * block, groups * s * block, true};
}
ChannelLayout ChannelLayout::last(int64_t n, int64_t c, int64_t s) {
  int64_t lanes = std::clamp<int64_t>(c, 1, wide_group);
  return {c, lanes, (c + lanes - 1) / lanes, 1, n * s, c, lanes, 0};
}

size_t BatchNorm::scratch_bytes() const {
  auto channels = static_cast<size_t>(padded_channels(layout));
  return channels * (static_cast<size_t>(parts_of(layout)) * 2 * sizeof(double) + 4 * sizeof(float));
}

void BatchNorm::run(const void* x, const float* weight, const float* bias, void* y, float* mean, float* variance,
                    std::byte* scratch, int threads) const {
  const ChannelLayout& l = layout;
  const IsaKernels& isa = isa_kernels();
  int64_t channels = padded_channels(l), parts = parts_of(l);
  auto* moments = reinterpret_cast<double*>(scratch);  // per part: means, then sums of squares
  auto* numbers = reinterpret_cast<float*>(moments + 2 * parts * channels);
  each_part(l, l.count() * l.channels * 2, threads, [&](const Part& p, int64_t part) {
    int64_t lanes = lanes_of(l, p.group);
    double *means = moments + 2 * part * channels + p.group * l.lanes, *squares = means + channels, count = 0;
    std::fill_n(means, lanes, 0.0);
    std::fill_n(squares, lanes, 0.0);
    float buffer[piece], about[wide_group], sums[2 * wide_group];
    each_piece(l, p, [&](int64_t element, int64_t rows) {
      bool line = l.lanes == 1;
      Rows xs = as_floats(at(x, element, storage), storage, buffer, line ? 1 : rows, l.stride, line ? rows : lanes);
      if (count == 0) {  // later pieces use the mean so far
        std::fill_n(about, lanes, 0.0f);
        if (line)
          about[0] = isa.fold_f32(ReduceOp::sum, xs.at, rows);
        else
          isa.fold_rows_f32(ReduceOp::sum, about, xs.at, rows, xs.stride, lanes);
        for (int64_t j = 0; j < lanes; ++j) about[j] /= static_cast<float>(rows);
      }
      if (line)
        isa.norm_line_deviations(sums, xs.at, xs.at, nullptr, about[0], rows);
      else
        isa.norm_rows_deviations(sums, xs.at, xs.at, about, rows, xs.stride, lanes);
      add_moments(means, squares, count, about, sums, lanes, static_cast<double>(rows));
      count += static_cast<double>(rows);
      for (int64_t j = 0; j < lanes; ++j) about[j] = static_cast<float>(means[j]);
    });
  });
  std::fill_n(numbers, 4 * channels, 0.0f);
  for (int64_t c = 0; c < l.channels; ++c) {
    double m = 0, squares = 0;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t before = l.count() * part / parts, n = l.count() * (part + 1) / parts - before;
      double weight_of_part = static_cast<double>(n) / static_cast<double>(before + n);
      double apart = moments[2 * part * channels + c] - m;
      squares += moments[(2 * part + 1) * channels + c] + apart * apart * static_cast<double>(before) * weight_of_part;
      m += apart * weight_of_part;
    }
    double v = squares / static_cast<double>(l.count());
    if (mean) mean[c] = static_cast<float>(m);
    if (variance) variance[c] = static_cast<float>(v);
    // y = (x - mean) scale + shift with the mean in f32: the shift compensates its rounding error.
    auto near = static_cast<float>(m);
    double scale = (weight ? static_cast<double>(weight[c]) : 1) / std::sqrt(v + eps);
    numbers[c] = near;
    numbers[channels + c] = static_cast<float>(scale);
    numbers[2 * channels + c] =
        static_cast<float>((bias ? static_cast<double>(bias[c]) : 0) - (m - static_cast<double>(near)) * scale);
  }
  if (y) normalise(l, storage, false, y, x, x, numbers, threads, limits);
}

void BatchNorm::run_dx(const void* d, const void* x, const float* mean, const float* variance, const float* weight,
                       void* dx, float* dweight, float* dbias, std::byte* scratch, int threads) const {
  const ChannelLayout& l = layout;
  const IsaKernels& isa = isa_kernels();
  int64_t channels = padded_channels(l), parts = parts_of(l);
  auto* totals = reinterpret_cast<double*>(scratch);  // per part: sums of d, then of d (x - mean)
  auto* numbers = reinterpret_cast<float*>(totals + 2 * parts * channels);
  std::fill_n(numbers, 4 * channels, 0.0f);
  std::copy_n(mean, l.channels, numbers);
  each_part(l, l.count() * l.channels * 2, threads, [&](const Part& p, int64_t part) {
    int64_t lanes = lanes_of(l, p.group);
    double* sum = totals + 2 * part * channels + p.group * l.lanes;
    double* product = sum + channels;
    std::fill_n(sum, lanes, 0.0);
    std::fill_n(product, lanes, 0.0);
    const float* means = numbers + p.group * l.lanes;
    float buffer[piece], other[piece], sums[2 * wide_group];
    each_piece(l, p, [&](int64_t element, int64_t rows) {
      bool line = l.lanes == 1;
      int64_t high = line ? 1 : rows, wide = line ? rows : lanes;
      Rows xs = as_floats(at(x, element, storage), storage, buffer, high, l.stride, wide);
      Rows ds = as_floats(at(d, element, storage), storage, other, high, l.stride, wide);
      if (line)
        isa.norm_line_products(sums, ds.at, xs.at, nullptr, means[0], rows);
      else
        isa.norm_rows_products(sums, ds.at, xs.at, means, rows, xs.stride, lanes);
      for (int64_t j = 0; j < lanes; ++j) {
        sum[j] += static_cast<double>(sums[j]);
        product[j] += static_cast<double>(sums[lanes + j]);
      }
    });
  });
  auto count = static_cast<double>(l.count());
  for (int64_t c = 0; c < l.channels; ++c) {
    double sum = 0, product = 0, rstd = 1 / std::sqrt(static_cast<double>(variance[c]) + eps);
    for (int64_t part = 0; part < parts; ++part) {
      sum += totals[2 * part * channels + c];
      product += totals[(2 * part + 1) * channels + c];
    }
    if (dweight) dweight[c] = static_cast<float>(product * rstd);
    if (dbias) dbias[c] = static_cast<float>(sum);
    numbers[channels + c] = static_cast<float>((weight ? static_cast<double>(weight[c]) : 1) * rstd);
    numbers[2 * channels + c] = static_cast<float>(sum / count);
    numbers[3 * channels + c] = static_cast<float>(rstd * rstd * product / count);
  }
  if (dx) normalise(l, storage, true, dx, d, x, numbers, threads);
}

// ---- lines

int64_t LineNorm::parts() const { return std::min(lines, std::clamp<int64_t>(lines / 256, 16, 64)); }

size_t LineNorm::scratch_bytes() const { return static_cast<size_t>(2 * (parts() + 1) * size) * sizeof(float) + 64; }

void LineNorm::run(const void* x, const float* weight, const float* bias, void* y, float* mean, float* rstd, double eps,
                   std::byte* scratch, int threads) const {
  const IsaKernels& isa = isa_kernels();
  auto* zeros = reinterpret_cast<float*>(scratch);
  if (weight && !bias) std::fill_n(zeros, size, 0.0f);
  if (!bias) bias = zeros;
  share(lines, lines * size * 2, threads, [&](int64_t first, int64_t last, int) {
    float buffer[piece], sums[2];
    for (int64_t k = first; k < last; ++k) {
      double m = 0, squares = 0;
      float about = 0;
      for (int64_t e = 0; e < size; e += piece) {
        int64_t n = std::min(piece, size - e);
        Rows xs = as_floats(at(x, k * size + e, storage), storage, buffer, 1, n, n);
        if (centered && e == 0) about = isa.fold_f32(ReduceOp::sum, xs.at, n) / static_cast<float>(n);
        isa.norm_line_deviations(sums, xs.at, xs.at, nullptr, about, n);
        if (centered) {
          add_moments(&m, &squares, static_cast<double>(e), &about, sums, 1, static_cast<double>(n));
          about = static_cast<float>(m);
        } else {
          squares += static_cast<double>(sums[1]);
        }
      }
      double scale = 1 / std::sqrt(squares / static_cast<double>(size) + eps);
      auto near = static_cast<float>(m);
      if (mean) mean[k] = near;
      if (rstd) rstd[k] = static_cast<float>(scale);
      if (!y) continue;
      NormLine line{
          near, static_cast<float>(scale), static_cast<float>((static_cast<double>(near) - m) * scale), 0, {}};
      for (int64_t e = 0; e < size; e += piece) {
        int64_t n = std::min(piece, size - e);
        Rows xs = as_floats(at(x, k * size + e, storage), storage, buffer, 1, n, n);
        auto* to = storage == Storage::word ? static_cast<float*>(at(y, k * size + e, storage)) : buffer;
        isa.norm_line(to, xs.at, weight ? weight + e : nullptr, bias + e, line, n);
        if (storage != Storage::word) store_floats(at(y, k * size + e, storage), storage, buffer, 1, n, n);
      }
    }
  });
}

void LineNorm::run_dx(const void* d, const void* x, const float* mean, const float* rstd, const float* weight, void* dx,
                      float* dweight, float* dbias, std::byte* scratch, int threads) const {
  const IsaKernels& isa = isa_kernels();
  bool sums_wanted = dweight || dbias;
  int64_t count = parts();
  auto* totals = reinterpret_cast<float*>(scratch);  // per part: dweight, dbias
  share(count, lines * size * 3, threads, [&](int64_t first_part, int64_t last_part, int) {
    float from[piece], other[piece], result[piece], sums[2];
    for (int64_t part = first_part; part < last_part; ++part) {
      float *dw = totals + 2 * part * size, *db = dw + size;
      if (sums_wanted) std::fill_n(dw, 2 * size, 0.0f);
      for (int64_t k = lines * part / count; k < lines * (part + 1) / count; ++k) {
        float m = centered ? mean[k] : 0;
        double sum = 0, product = 0, r = rstd[k];
        bool once = size <= piece;
        Rows xs{}, ds{};
        auto load = [&](int64_t e, int64_t n) {
          xs = as_floats(at(x, k * size + e, storage), storage, from, 1, n, n);
          ds = as_floats(at(d, k * size + e, storage), storage, other, 1, n, n);
        };
        for (int64_t e = 0; e < size; e += piece) {
          int64_t n = std::min(piece, size - e);
          load(e, n);
          isa.norm_line_products(sums, ds.at, xs.at, weight ? weight + e : nullptr, m, n);
          sum += static_cast<double>(sums[0]);
          product += static_cast<double>(sums[1]);
        }
        auto n_all = static_cast<double>(size);
        NormLine line{m,
                      rstd[k],
                      static_cast<float>(centered ? sum / n_all : 0),
                      static_cast<float>(r * r * product / n_all),
                      {}};
        for (int64_t e = 0; e < size; e += piece) {
          int64_t n = std::min(piece, size - e);
          if (!once) load(e, n);
          bool direct = dx && storage == Storage::word;
          float* to = direct ? static_cast<float*>(at(dx, k * size + e, storage)) : result;
          isa.norm_dx_line(to, sums_wanted ? dw + e : nullptr, db + e, ds.at, xs.at, weight ? weight + e : nullptr,
                           line, n);
          if (dx && !direct) store_floats(at(dx, k * size + e, storage), storage, to, 1, n, n);
        }
      }
    }
  });
  for (int64_t side = 0; side < 2; ++side) {
    float* to = side == 0 ? dweight : dbias;
    if (!to) continue;
    for (int64_t i = 0; i < size; ++i) {
      double total = 0;
      for (int64_t part = 0; part < count; ++part) total += static_cast<double>(totals[(2 * part + side) * size + i]);
      to[i] = static_cast<float>(total);
    }
  }
}

}  // namespace tutti::kernels

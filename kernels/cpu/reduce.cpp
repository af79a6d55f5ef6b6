#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/status.h"
#include "kernels/cpu/eval.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr int64_t row_piece = 4096, column_piece = 128, column_tile = 1024, batch_rows = 8;

/// Buffer bytes per thread for converting 16- and 8-bit storage to lanes.
constexpr size_t buffer_bytes = static_cast<size_t>(std::max(row_piece, batch_rows* column_tile)) * 4;

template <class T>
T fold(ReduceOp f, const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, float>)
    return isa_kernels().fold_f32(f, x, n);
  else
    return isa_kernels().fold_i32(f, x, n);
}
template <class T>
void fold_rows_into(ReduceOp f, T* y, const T* x, int64_t rows, int64_t stride, int64_t n) {
  if constexpr (std::is_same_v<T, float>)
    isa_kernels().fold_rows_f32(f, y, x, rows, stride, n);
  else
    isa_kernels().fold_rows_i32(f, y, x, rows, stride, n);
}

template <class T>
const T* as_lanes(const void* x, Storage s, T* buffer, int64_t n) {
  if (s == Storage::word) return static_cast<const T*>(x);
  isa_kernels().load(s)(buffer, x, x, x, n);
  return buffer;
}

int64_t pieces_of(const ReductionStage& s) {
  return s.b == 1 ? (s.r + row_piece - 1) / row_piece : (s.r + column_piece - 1) / column_piece;
}

}  // namespace

std::string Reduce::declines(ReduceOp kind, DType t) {
  if (t == DType::f64 || t == DType::i64) return "dtype " + std::string(name(t));
  if (t == DType::u32 && (kind == ReduceOp::max || kind == ReduceOp::min)) return "dtype u32";
  if (kind == ReduceOp::mean && !is_float(t)) return "a mean of " + std::string(name(t));
  return "";
}

Reduce::Reduce(ReduceOp kind, const TensorType& type, const std::vector<int64_t>& axes)
    : kind_(kind), dtype_(type.dtype) {
  if (std::string why = declines(kind, type.dtype); !why.empty()) throw Error(Code::declined, "no reduction of " + why);
  fold_ = kind == ReduceOp::mean ? ReduceOp::sum : kind;
  for (size_t d = 0; d < type.shape.size(); ++d)
    (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end() ? reduced_ : results_) *= type.shape[d];
  if (results_ != 0 && reduced_ != 0) stages_ = reduction_stages(type.shape, axes);
}

size_t Reduce::scratch_bytes(int threads) const {
  size_t values = 0, partial = 0;
  for (size_t k = 0; k < stages_.size(); ++k) {
    const Stage& s = stages_[k];
    auto out = static_cast<size_t>(s.a * s.b);
    values = std::max(values, out);
    partial = std::max(partial, out * static_cast<size_t>(pieces_of(s)));
  }
  size_t buffers = storage_of(dtype_) == Storage::word ? 0 : static_cast<size_t>(threads) * buffer_bytes;
  return (2 * values + partial) * 4 + buffers + 192;
}

/// B = 1: every row is contiguous.
template <class T>
void Reduce::fold_rows(const Stage& s, const void* x, Storage from, T* y, T* partial, std::byte* buffers,
                       int threads) const {
  int64_t pieces = pieces_of(s);
  T* to = pieces == 1 ? y : partial;
  share(s.a * pieces, s.a * s.r, threads, [&](int64_t first, int64_t last, int thread) {
    T* buffer = reinterpret_cast<T*>(buffers + static_cast<size_t>(thread) * buffer_bytes);
    for (int64_t k = first; k < last; ++k) {
      int64_t start = k % pieces * row_piece, n = std::min(row_piece, s.r - start);
      to[k] = fold(fold_, as_lanes(at(x, k / pieces * s.r + start, from), from, buffer, n), n);
    }
  });
  if (pieces == 1) return;
  for (int64_t k = 0; k < s.a; ++k) {
    const T* p = partial + k * pieces;
    if (std::is_same_v<T, float> && (fold_ == ReduceOp::sum || fold_ == ReduceOp::prod)) {
      double total = static_cast<double>(p[0]);
      for (int64_t i = 1; i < pieces; ++i)
        total = fold_ == ReduceOp::sum ? total + static_cast<double>(p[i]) : total * static_cast<double>(p[i]);
      y[k] = static_cast<T>(total);
    } else {
      y[k] = fold(fold_, p, pieces);
    }
  }
}

/// B > 1: rows are reduced tile by tile.
template <class T>
void Reduce::fold_columns(const Stage& s, const void* x, Storage from, T* y, T* partial, std::byte* buffers,
                          int threads) const {
  int64_t pieces = pieces_of(s), tiles = (s.b + column_tile - 1) / column_tile;
  T* to = pieces == 1 ? y : partial;
  share(s.a * pieces * tiles, s.a * s.r * s.b, threads, [&](int64_t first, int64_t last, int thread) {
    T* buffer = reinterpret_cast<T*>(buffers + static_cast<size_t>(thread) * buffer_bytes);
    for (int64_t k = first; k < last; ++k) {
      int64_t tile = k % tiles * column_tile, piece = k / tiles % pieces, a = k / tiles / pieces;
      int64_t n = std::min(column_tile, s.b - tile), row = piece * column_piece,
              rows = std::min(column_piece, s.r - row);
      T* out = to + (a * pieces + piece) * s.b + tile;
      int64_t base = (a * s.r + row) * s.b + tile;
      if (from == Storage::word) {
        auto* p = static_cast<const T*>(x) + base;
        std::memcpy(out, p, static_cast<size_t>(n) * sizeof(T));
        fold_rows_into(fold_, out, p + s.b, rows - 1, s.b, n);
        continue;
      }
      LaneFn load = isa_kernels().load(from);
      const void* head = at(x, base, from);
      load(out, head, head, head, n);
      for (int64_t i = 1; i < rows; i += batch_rows) {
        int64_t m = std::min(batch_rows, rows - i);
        for (int64_t j = 0; j < m; ++j) {
          const void* p = at(x, base + (i + j) * s.b, from);
          load(buffer + j * column_tile, p, p, p, n);
        }
        fold_rows_into(fold_, out, buffer, m, column_tile, n);
      }
    }
  });
  if (pieces == 1) return;
  for (int64_t a = 0; a < s.a; ++a) {
    const T* p = partial + a * pieces * s.b;
    std::memcpy(y + a * s.b, p, static_cast<size_t>(s.b) * sizeof(T));
    fold_rows_into(fold_, y + a * s.b, p + s.b, pieces - 1, s.b, s.b);
  }
}

template <class T>
void Reduce::run_as(const void* x, void* y, std::byte* scratch, int threads) const {
  size_t values = 0, partial = 0;
  for (const Stage& s : stages_) {
    values = std::max(values, static_cast<size_t>(s.a * s.b));
    partial = std::max(partial, static_cast<size_t>(s.a * s.b * pieces_of(s)));
  }
  T* half[2] = {reinterpret_cast<T*>(scratch), reinterpret_cast<T*>(scratch) + values};
  T* parts = reinterpret_cast<T*>(scratch) + 2 * values;
  std::byte* buffers = scratch + ((2 * values + partial) * 4 + 63) / 64 * 64;
  Storage storage = storage_of(dtype_), from = storage;
  bool direct = storage == Storage::word;  // whether the last stage can write the result directly
  const void* in = x;
  T* out = nullptr;
  for (size_t k = 0; k < stages_.size(); ++k) {
    const Stage& s = stages_[k];
    out = direct && k + 1 == stages_.size() ? static_cast<T*>(y) : half[k % 2];
    if (s.b == 1)
      fold_rows<T>(s, in, from, out, parts, buffers, threads);
    else
      fold_columns<T>(s, in, from, out, parts, buffers, threads);
    in = out;
    from = Storage::word;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (kind_ == ReduceOp::mean && reduced_ > 1) {
      auto n = static_cast<float>(reduced_);
      for (int64_t i = 0; i < results_; ++i) out[i] = out[i] / n;
    }
  }
  if (direct) return;
  if (storage == Storage::u8 || storage == Storage::boolean)
    isa_kernels().clamp(storage, Lane::i32)(out, out, out, out, results_);
  isa_kernels().store(storage)(y, out, out, out, results_);
}

void Reduce::run(const void* x, void* y, std::byte* scratch, int threads) const {
  if (results_ == 0) return;
  if (reduced_ == 0) {
    double nothing = kind_ == ReduceOp::prod   ? 1
                     : kind_ == ReduceOp::mean ? std::numeric_limits<double>::quiet_NaN()
                                               : 0;
    for (int64_t i = 0; i < results_; ++i) store_element(dtype_, y, static_cast<size_t>(i), nothing);
    return;
  }
  if (stages_.empty()) {
    std::memcpy(y, x, static_cast<size_t>(results_) * size_of(dtype_));
    return;
  }
  if (is_float(dtype_))
    run_as<float>(x, y, scratch, threads);
  else
    run_as<int32_t>(x, y, scratch, threads);
}

namespace {

template <class T>
void argmax_as(const Shape& kept, const Shape& kept_strides, const Shape& gone, const Shape& gone_strides, const T* x,
               int32_t* y, int threads) {
  int64_t results = num_elements(kept), reduced = num_elements(gone);
  share(results, results * reduced, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t k = first; k < last; ++k) {
      int64_t base = 0, rest = k;
      for (size_t d = kept.size(); d-- > 0;) {
        base += rest % kept[d] * kept_strides[d];
        rest /= kept[d];
      }
      T best = x[base];
      int32_t where = 0;
      for (int64_t i = 1; i < reduced && best == best; ++i) {
        int64_t offset = base, left = i;
        for (size_t d = gone.size(); d-- > 0;) {
          offset += left % gone[d] * gone_strides[d];
          left /= gone[d];
        }
        T v = x[offset];
        if (v > best || v != v) {
          best = v;
          where = static_cast<int32_t>(i);
        }
      }
      y[k] = where;
    }
  });
}

/// Compares f16 and bf16 by value.
template <DType t>
struct Narrow {
  uint16_t bits;
  operator float() const { return narrow_value(t, bits); }
};

}  // namespace

void argmax(const TensorType& type, const std::vector<int64_t>& axes, const void* x, int32_t* y, int threads) {
  Shape strides = strides_of(type.shape), kept, kept_strides, gone, gone_strides;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (reduced && !gone.empty() && gone_strides.back() == strides[d] * type.shape[d]) {
      gone.back() *= type.shape[d];
      gone_strides.back() = strides[d];
    } else {
      (reduced ? gone : kept).push_back(type.shape[d]);
      (reduced ? gone_strides : kept_strides).push_back(strides[d]);
    }
  }
  auto go = [&](auto* p) { argmax_as(kept, kept_strides, gone, gone_strides, p, y, threads); };
  switch (type.dtype) {
    case DType::f32: return go(static_cast<const float*>(x));
    case DType::i32: return go(static_cast<const int32_t*>(x));
    case DType::u32: return go(static_cast<const uint32_t*>(x));
    case DType::u8:
    case DType::boolean: return go(static_cast<const uint8_t*>(x));
    default:
      if (!visit_narrow(type.dtype, [&](auto t) { go(static_cast<const Narrow<t()>*>(x)); }))
        throw Error(Code::declined, "no argmax of " + std::string(name(type.dtype)));
  }
}

}  // namespace tutti::kernels

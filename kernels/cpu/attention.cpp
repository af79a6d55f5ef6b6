#include "kernels/cpu/attention.h"

#include <algorithm>
#include <limits>

#include "core/base/rounding.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr int64_t most_keys = 128;     // per block: with 64 queries, the scores need 32 KiB
constexpr int64_t diagonal_keys = 32;  // per block on the diagonal of a causal mask, half of which is masked

int64_t up(int64_t n, int64_t of) { return (n + of - 1) / of * of; }
/// Block size, at most `most` and a multiple of `of`, that divides n evenly.
int64_t block_of(int64_t n, int64_t most, int64_t of) {
  int64_t blocks = (n + most - 1) / most;
  return up((n + blocks - 1) / blocks, of);
}

/// Allocates pieces of a thread's scratch; with a null base it only counts bytes.
struct Pieces {
  float* base;
  int64_t used = 0;
  float* take(int64_t n) {
    float* at = base ? base + used : nullptr;
    used += up(n, 16);
    return at;
  }
};

/// The blocks of an Attention, with operations shared by forward and backward.
struct Blocks : Attention {
  const IsaKernels& isa = *loops;
  int64_t query_block, key_block, query_blocks, group;
  bool pairs;  ///< whether q k and dy v use bf16 products, which are exact for bf16 inputs

  explicit Blocks(const Attention& a)
      : Attention(a),
        query_block(block_of(queries, max_columns, 16)),
        key_block(block_of(keys, most_keys, 2)),
        query_blocks((queries + query_block - 1) / query_block),
        group(heads / key_heads),
        pairs(storage == Storage::bf16 && isa.pair_product && size % 2 == 0 && value_size % 2 == 0) {}

  bool narrow() const { return storage != Storage::word; }
  int64_t visits() const { return batch * heads * queries * keys; }
  int64_t row_of(int64_t b, int64_t h) const { return (b * heads + h) * queries; }

  /// A block of scores: `queries` starting at `first_query` are columns, keys are rows.
  struct Place {
    int64_t b, h, first_query, queries, columns, first_key, keys;
  };

  /// Rows of `width` floats from row `at` with stride `stride`: in place, or converted into `buffer`.
  const float* rows(const void* from, int64_t at, int64_t count, int64_t width, int64_t stride, float* buffer) const {
    if (!narrow() && stride == width) return static_cast<const float*>(from) + at * width;
    int64_t lines = stride == width ? 1 : count, n = stride == width ? count * width : width;
    for (int64_t i = 0; i < lines; ++i) {
      float* to = buffer + i * stride;
      if (narrow())
        isa.load(storage)(to, static_cast<const uint16_t*>(from) + at * width + i * n, nullptr, nullptr, n);
      else
        std::copy_n(static_cast<const float*>(from) + at * width + i * n, n, to);
      std::fill(to + n, to + std::max(n, stride), 0.0f);
    }
    return buffer;
  }

  /// Rows in the format of `dot`: bf16 pairs in place, or floats.
  const float* factor(const void* from, int64_t at, int64_t count, int64_t width, float* buffer) const {
    if (!pairs) return rows(from, at, count, width, width, buffer);
    return reinterpret_cast<const float*>(static_cast<const uint16_t*>(from) + at * width);
  }
  int64_t positions(int64_t width) const { return pairs ? width / 2 : width; }

  /// Transposes `count` rows of n elements with stride x_row into `columns` columns; missing queries are zero.
  void turn(float* y, const float* x, int64_t x_row, int64_t count, int64_t n, int64_t columns) const {
    if (count < columns) std::fill_n(y, n * columns, 0.0f);
    isa.transpose(y, columns, x, x_row, count, n, 1);
  }

  /// s [keys, columns] = by * a b^T, for rows of keys a and transposed b.
  void dot(float* s, const float* a, const float* b, int64_t b_row, const Place& p, int64_t width, float by) const {
    int64_t n = positions(width);
    auto product = pairs ? isa.pair_product : isa.block_product;
    product({s, p.columns, a, n, 1, b, b_row, p.keys, n, p.columns, false, by});
  }

  /// Writes the transpose of x [width, columns], times `by`, as `count` rows from row `at`.
  void put_turned(void* to, int64_t at, const float* x, int64_t columns, int64_t count, int64_t width, float by,
                  float* buffer) const {
    float* y = narrow() ? buffer : static_cast<float*>(to) + at * width;
    isa.transpose(y, width, x, columns, width, count, by);
    if (narrow()) isa.store(storage)(static_cast<uint16_t*>(to) + at * width, y, nullptr, nullptr, count * width);
  }

  /// Writes rows of `width` floats with stride `stride`, times `by`.
  void put_rows(void* to, int64_t at, float* x, int64_t stride, int64_t count, int64_t width, float by) const {
    for (int64_t i = 0; i < count * stride; ++i) x[i] *= by;
    for (int64_t i = 0; i < count; ++i) {
      int64_t y = (at + i) * width;
      if (narrow())
        isa.store(storage)(static_cast<uint16_t*>(to) + y, x + i * stride, nullptr, nullptr, width);
      else
        std::copy_n(x + i * stride, width, static_cast<float*>(to) + y);
    }
  }

  /// Calls f(place, column) for every block of keys that some query of `p` attends to, with the queries from `column`:
  /// on the diagonal of a causal mask, earlier queries need no scores.
  template <class F>
  void each_key_block(const Place& p, const F& f) const {
    int64_t last = causal ? std::min(keys, p.first_query + p.queries) : keys;
    for (Place part = p; part.first_key < last; part.first_key += part.keys) {
      int64_t before = p.first_query - part.first_key;  // number of keys that all queries attend to
      part.keys = !causal ? key_block : before > 0 ? std::min(key_block, before) : diagonal_keys;
      part.keys = std::min(part.keys, last - part.first_key);
      int64_t column = causal && before < 0 ? -before / 16 * 16 : 0;
      part.first_query = p.first_query + column;
      part.queries = p.queries - column;
      part.columns = p.columns - column;
      f(part, column);
    }
  }

  /// s = k q^T, -inf for masked elements.
  void scores(float* s, const float* k, const float* q, int64_t q_row, const Place& p, const void* given,
              float* line) const {
    dot(s, k, q, q_row, p, size, scale);
    if (mask.given) add_mask(s, p, given, line);
    if (!causal) return;
    for (int64_t i = 0; i < p.keys; ++i) {
      int64_t above = std::clamp<int64_t>(p.first_key + i - p.first_query, 0, p.columns);
      std::fill_n(s + i * p.columns, above, -infinity);
    }
  }

  void add_mask(float* s, const Place& p, const void* given, float* line) const {
    for (int64_t j = 0; j < p.queries; ++j) {
      int64_t at = p.b * mask.batch + p.h * mask.head + (p.first_query + j) * mask.query + p.first_key * mask.key;
      if (mask.storage == Storage::boolean) {
        const uint8_t* attends = static_cast<const uint8_t*>(given) + at;
        for (int64_t i = 0; i < p.keys; ++i)
          if (!attends[i * mask.key]) s[i * p.columns + j] = -infinity;
        continue;
      }
      const float* more = static_cast<const float*>(given) + at;
      if (mask.storage != Storage::word) {
        isa.load(mask.storage)(line, static_cast<const uint16_t*>(given) + at, nullptr, nullptr, mask.key ? p.keys : 1);
        more = line;
      }
      for (int64_t i = 0; i < p.keys; ++i) s[i * p.columns + j] += more[i * mask.key];
    }
  }

  /// Dropout factors of the block's probabilities: 0 for dropped ones.
  void draw(float* kept, const Place& p, const More& more, float* line) const {
    uint64_t seed = uint64_t{more.seed[1]} << 32 | more.seed[0];
    auto keep = static_cast<float>(1 - dropout.p), factor = static_cast<float>(dropout.p < 1 ? 1 / (1 - dropout.p) : 0);
    auto* words = reinterpret_cast<uint32_t*>(line);
    std::fill_n(kept, p.keys * p.columns, 0.0f);
    for (int64_t j = 0; j < p.queries; ++j) {
      int64_t at = (row_of(p.b, p.h) + p.first_query + j) * keys + p.first_key, start = at / 4;
      isa.random(words, seed, static_cast<uint32_t>(*more.step), dropout.stream, static_cast<uint64_t>(start),
                 (at + p.keys + 3) / 4 - start);
      const uint32_t* word = words + at % 4;
      for (int64_t i = 0; i < p.keys; ++i)
        if (static_cast<float>(word[i] >> 8) * 0x1p-24f < keep) kept[i * p.columns + j] = factor;
    }
  }
  int64_t line_floats() const { return key_block + 8; }
  int64_t kept_floats() const { return dropout.p > 0 ? key_block * query_block : 0; }
};

// ---- forward

struct Forward : Blocks {
  using Blocks::Blocks;

  /// Scratch of one thread.
  struct Part {
    float *q_rows, *q, *k, *v, *s, *kept, *y, *high, *total, *rescale, *lse, *line;
  };
  Part part(Pieces& p) const {
    int64_t in = narrow() ? 1 : 0;
    return {p.take(in * query_block * std::max(size, value_size)),
            p.take(query_block * size),
            p.take(in * key_block * size),
            p.take(in * key_block * value_size),
            p.take(key_block * query_block),
            p.take(kept_floats()),
            p.take(query_block * value_size),
            p.take(query_block),
            p.take(query_block),
            p.take(query_block),
            p.take(query_block),
            p.take(line_floats())};
  }

  void block(const Part& t, int64_t item, const void* q, const void* k, const void* v, const More& more, void* y,
             float* lse) const {
    int64_t first = item % query_blocks * query_block, head = item / query_blocks, count, columns;
    count = std::min(query_block, queries - first), columns = up(count, 16);
    Place whole{head / heads, head % heads, first, count, columns, 0, 0};
    int64_t rows_of_keys = (whole.b * key_heads + whole.h / group) * keys;
    const float* rows_of_q = factor(q, head * queries + first, count, size, t.q_rows);
    turn(t.q, rows_of_q, positions(size), count, positions(size), columns);
    std::fill_n(t.high, columns, -infinity);
    std::fill_n(t.total, columns, 0.0f);
    each_key_block(whole, [&](const Place& p, int64_t j) {
      int64_t at = rows_of_keys + p.first_key;
      scores(t.s, factor(k, at, p.keys, size, t.k), t.q + j, columns, p, more.mask, t.line);
      bool moved = isa.softmax_block(t.s, t.high + j, t.total + j, t.rescale, p.keys, p.columns);
      if (dropout.p > 0) {
        draw(t.kept, p, more, t.line);
        for (int64_t i = 0; i < p.keys * p.columns; ++i) t.s[i] *= t.kept[i];
      }
      if (moved && p.first_key > 0) isa.scale_columns(t.y + j, columns, t.rescale, value_size, p.columns);
      const float* values = rows(v, at, p.keys, value_size, value_size, t.v);
      isa.block_product(
          {t.y + j, columns, values, 1, value_size, t.s, p.columns, value_size, p.keys, p.columns, p.first_key > 0});
    });
    isa.softmax_block_end(t.lse, t.total, t.high, columns);
    if (lse) std::copy_n(t.lse, count, lse + head * queries + first);
    if (!y) return;
    isa.scale_columns(t.y, columns, t.total, value_size, columns);
    put_turned(y, head * queries + first, t.y, columns, count, value_size, 1, t.q_rows);
  }
};

// ---- gradient

struct Backward : Blocks {
  using Blocks::Blocks;
  int64_t size_row = up(size, 16), value_row = up(value_size, 16);  // padded row sizes of right-hand factors

  struct Part {
    float *q_rows, *dy_rows, *q, *dy, *k, *v, *s, *d, *kept, *dq, *dk, *dv, *lse, *delta, *line;
  };
  Part part(Pieces& p) const {
    int64_t in = narrow() ? 1 : 0;
    return {p.take(query_block * size_row),
            p.take(query_block * value_row),
            p.take(query_block * size),
            p.take(query_block * value_size),
            p.take(in * key_block * size),
            p.take(in * key_block * value_size),
            p.take(key_block * query_block),
            p.take(key_block * query_block),
            p.take(kept_floats()),
            p.take(query_block * size),
            p.take(keys * size_row),
            p.take(keys * value_row),
            p.take(query_block),
            p.take(query_block),
            p.take(line_floats())};
  }

  /// Inputs and results; results may be null.
  struct Tensors {
    const void *q, *k, *v, *dy;
    const float *lse, *delta;
    More more;
    void *dq, *dk, *dv;
  };

  /// Processes one key head and the query heads that share it.
  void head(const Part& t, int64_t item, const Tensors& x) const {
    std::fill_n(t.dk, keys * size_row, 0.0f);
    std::fill_n(t.dv, keys * value_row, 0.0f);
    int64_t b = item / key_heads, h = item % key_heads * group;
    for (int64_t g = 0; g < group; ++g)
      for (int64_t first = 0; first < queries; first += query_block) {
        int64_t count = std::min(query_block, queries - first);
        query_rows(t, {b, h + g, first, count, up(count, 16), 0, 0}, item * keys, x);
      }
    if (x.dk) put_rows(x.dk, item * keys, t.dk, size_row, keys, size, scale);
    if (x.dv) put_rows(x.dv, item * keys, t.dv, value_row, keys, value_size, 1);
  }

  void query_rows(const Part& t, const Place& whole, int64_t rows_of_keys, const Tensors& x) const {
    int64_t row = row_of(whole.b, whole.h) + whole.first_query, count = whole.queries, columns = whole.columns;
    const float* q = rows(x.q, row, count, size, size_row, t.q_rows);
    const float* dy = rows(x.dy, row, count, value_size, value_row, t.dy_rows);
    auto turned = [&](float* to, const void* from, const float* floats, int64_t floats_row, int64_t width) {
      const float* x = pairs ? factor(from, row, count, width, nullptr) : floats;
      turn(to, x, pairs ? positions(width) : floats_row, count, positions(width), columns);
    };
    turned(t.q, x.q, q, size_row, size);
    turned(t.dy, x.dy, dy, value_row, value_size);
    std::fill(std::copy_n(x.lse + row, count, t.lse), t.lse + columns, infinity);  // missing queries get probability 0
    std::fill(std::copy_n(x.delta + row, count, t.delta), t.delta + columns, 0.0f);
    each_key_block(whole, [&](const Place& p, int64_t j) {
      int64_t n = p.columns, at = rows_of_keys + p.first_key;
      scores(t.s, factor(x.k, at, p.keys, size, t.k), t.q + j, columns, p, x.more.mask, t.line);
      dot(t.d, factor(x.v, at, p.keys, value_size, t.v), t.dy + j, columns, p, value_size, 1);
      if (dropout.p > 0) draw(t.kept, p, x.more, t.line);
      isa.softmax_block_dx(t.s, t.d, dropout.p > 0 ? t.kept : nullptr, t.lse + j, t.delta + j, p.keys, n);
      float *dv = t.dv + p.first_key * value_row, *dk = t.dk + p.first_key * size_row;
      if (x.dv)
        isa.block_product(
            {dv, value_row, t.s, n, 1, dy + j * value_row, value_row, p.keys, p.queries, value_row, true});
      if (x.dk)
        isa.block_product({dk, size_row, t.d, n, 1, q + j * size_row, size_row, p.keys, p.queries, size_row, true});
      if (!x.dq) return;
      const float* k = rows(x.k, at, p.keys, size, size, t.k);
      isa.block_product({t.dq + j, columns, k, 1, size, t.d, n, size, p.keys, n, p.first_key > 0});
    });
    if (x.dq) put_turned(x.dq, row, t.dq, columns, count, size, scale, t.q_rows);
  }
};

template <class T>
int64_t floats_of(const T& blocks) {
  Pieces pieces{nullptr};
  blocks.part(pieces);
  return pieces.used;
}

/// Calls f(scratch of the thread, item) for every item.
template <class T, class F>
void each(const T& blocks, int64_t items, int64_t cost, std::byte* scratch, int threads, const F& f) {
  int64_t floats = floats_of(blocks);
  share(items, cost, threads, [&](int64_t first, int64_t last, int thread) {
    Pieces pieces{reinterpret_cast<float*>(scratch) + thread * floats};
    typename T::Part part = blocks.part(pieces);
    for (int64_t i = first; i < last; ++i) f(part, i);
  });
}

}  // namespace

size_t Attention::scratch_bytes(int threads) const {
  return static_cast<size_t>(floats_of(Forward(*this)) * threads) * sizeof(float);
}

void Attention::run(const void* q, const void* k, const void* v, const More& more, void* y, float* lse,
                    std::byte* scratch, int threads) const {
  Forward blocks(*this);
  each(blocks, batch * heads * blocks.query_blocks, blocks.visits(), scratch, threads,
       [&](const Forward::Part& part, int64_t i) { blocks.block(part, i, q, k, v, more, y, lse); });
}

size_t Attention::grad_scratch_bytes(int threads) const {
  return static_cast<size_t>(floats_of(Backward(*this)) * threads) * sizeof(float);
}

void Attention::run_grad(const void* q, const void* k, const void* v, const void* dy, const float* lse,
                         const float* delta, const More& more, void* dq, void* dk, void* dv, std::byte* scratch,
                         int threads) const {
  Backward blocks(*this);
  Backward::Tensors x{q, k, v, dy, lse, delta, more, dq, dk, dv};
  each(blocks, batch * key_heads, blocks.visits(), scratch, threads,
       [&](const Backward::Part& part, int64_t i) { blocks.head(part, i, x); });
}

}  // namespace tutti::kernels

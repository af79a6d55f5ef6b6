// The recurrence of an LSTM and its gradient: each thread runs a block of sequences through all steps. Each step is a
// oneDNN product of states and weights, which are packed once, and one pass over the gates. Everything is computed in
// f32, except for the factors of products in bf16 models; 16-bit inputs and results are converted row by row.
#include <fmt/format.h>

#include <algorithm>

#include "backends/onednn/repair.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::onednn {
namespace {

constexpr int64_t block = 16;  // sequences; fixed, so that results do not depend on the thread count

/// [block, k] times weights [k, n] in f32; or in bf16 with f32 sums, if the CPU supports it.
class StateProduct {
 public:
  StateProduct(int64_t k, int64_t n, const Desc& weights, bool bf16)
      : weights_(weights), states_(block * k), bf16_(bf16) {
    ThreadScope one(1);
    auto type = bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    Desc any({k, n}, type, dnnl::memory::format_tag::any);
    x_ = plain_desc(type, {block, k});
    y_ = plain_desc(dnnl::memory::data_type::f32, {block, n});
    dnnl::matmul::primitive_desc pd(engine(), x_, any, y_, attributes());
    dnnl::reorder::primitive_desc pack(engine(), weights_, engine(), pd.weights_desc(), attributes());
    packed_ = pd.weights_desc();
    scratch_ = pd.scratchpad_desc();
    pack_scratch_ = pack.scratchpad_desc();
    product_ = dnnl::matmul(pd);
    pack_ = dnnl::reorder(pack);
  }

  size_t packed_bytes() const { return packed_.get_size(); }
  size_t scratch_bytes() const { return std::max(rounded_bytes() + scratch_.get_size(), pack_scratch_.get_size()); }

  void pack(void* weights, void* packed, void* scratch) const {
    ThreadScope one(1);
    dnnl::stream s(engine());
    pack_.execute(s, {{DNNL_ARG_FROM, {weights_, engine(), weights}},
                      {DNNL_ARG_TO, {packed_, engine(), packed}},
                      {DNNL_ARG_SCRATCHPAD, {pack_scratch_, engine(), scratch}}});
  }

  /// The product with bound addresses, for one thread.
  class Bound {
   public:
    Bound(const StateProduct& p, void* x, void* packed, void* y, std::byte* scratch)
        : product_(p.product_),
          states_(p.states_),
          x_(x),
          rounded_(p.bf16_ ? scratch : nullptr),
          stream_(engine()),
          arguments_{{DNNL_ARG_SRC, {p.x_, engine(), p.bf16_ ? scratch : x}},
                     {DNNL_ARG_WEIGHTS, {p.packed_, engine(), packed}},
                     {DNNL_ARG_DST, {p.y_, engine(), y}},
                     {DNNL_ARG_SCRATCHPAD, {p.scratch_, engine(), scratch + p.rounded_bytes()}}} {}
    void run() {
      if (rounded_) kernels::isa_kernels().store(kernels::Storage::bf16)(rounded_, x_, x_, x_, states_);
      product_.execute(stream_, arguments_);
    }

   private:
    dnnl::matmul product_;
    int64_t states_;
    void *x_, *rounded_;  // rounded_: states rounded to bf16
    dnnl::stream stream_;
    std::unordered_map<int, dnnl::memory> arguments_;
  };

 private:
  size_t rounded_bytes() const { return bf16_ ? aligned(static_cast<size_t>(states_) * 2) : 0; }

  Desc weights_, x_, y_, packed_, scratch_, pack_scratch_;
  int64_t states_;
  bool bf16_;
  dnnl::matmul product_;
  dnnl::reorder pack_;
};

/// Sizes of a recurrence and the layout of its workspace.
struct Recurrence {
  int64_t steps, rows, cells;
  bool reverse, lengths;
  int threads;
  kernels::Storage storage;  ///< storage of everything except gates and cells
  std::shared_ptr<const StateProduct> product;

  int64_t at(int64_t k) const { return reverse ? steps - 1 - k : k; }
  size_t thread_floats() const { return static_cast<size_t>(block) * static_cast<size_t>(10 * cells); }
  size_t thread_bytes() const { return aligned(thread_floats() * 4) + aligned(product->scratch_bytes()); }
  bool narrow() const { return storage != kernels::Storage::word; }
  size_t scratch_bytes() const {
    return aligned(product->packed_bytes()) + static_cast<size_t>(threads) * thread_bytes();
  }

  /// n numbers from index `at` as floats: in place, or converted into `buffer`.
  const float* read(const void* from, int64_t at, int64_t n, float* buffer) const {
    if (!narrow()) return static_cast<const float*>(from) + at;
    const void* part = static_cast<const uint16_t*>(from) + at;
    kernels::isa_kernels().load(storage)(buffer, part, part, part, n);
    return buffer;
  }
  void load(float* to, const void* from, int64_t at, int64_t n) const {
    if (const float* x = read(from, at, n, to); x != to) std::copy_n(x, n, to);
  }
  /// Writes n floats; no-op if `to` is null (unused result).
  void put(void* to, int64_t at, const float* from, int64_t n) const {
    if (!to) return;
    if (!narrow())
      std::copy_n(from, n, static_cast<float*>(to) + at);
    else
      kernels::isa_kernels().store(storage)(static_cast<uint16_t*>(to) + at, from, from, from, n);
  }

  /// Packs the weights, then calls f(first row, rows, floats, product) for every block. The product reads the first
  /// `inputs` floats of the block's rows and writes the ones after them.
  template <class F>
  void each_block(void* weights, std::byte* scratch, int64_t inputs, F&& f) const {
    std::byte* threads_at = scratch + aligned(product->packed_bytes());
    product->pack(weights, scratch, threads_at + aligned(thread_floats() * 4));
    int64_t blocks = (rows + block - 1) / block;
    kernels::share(blocks, steps * rows * cells * cells, threads, [&](int64_t first, int64_t last, int thread) {
      ThreadScope one(1);
      std::byte* mine = threads_at + static_cast<size_t>(thread) * thread_bytes();
      auto* floats = reinterpret_cast<float*>(mine);
      std::fill_n(floats, thread_floats(), 0.0f);  // missing rows are computed too
      StateProduct::Bound bound(*product, floats, scratch, floats + block * inputs,
                                mine + aligned(thread_floats() * 4));
      for (int64_t b = first; b < last; ++b) f(b * block, std::min(block, rows - b * block), floats, bound);
    });
  }
};

MatchResult declines_types(const NodeView& c, size_t fixed, size_t gates) {
  size_t have = c.node().inputs.size();
  if (have != fixed && have != fixed + 1) return fmt::format("{} inputs, expected {} or {}", have, fixed, fixed + 1);
  DType t = c.in(0).dtype;
  if (t != DType::f32 && !is_narrow(t)) return "dtype " + std::string(name(t));
  for (size_t k = 0; k < fixed; ++k) {
    bool wide = fixed == 6 && (k == 2 || k == 3);  // gates and cells of a gradient
    if (c.in(k).dtype != (wide ? DType::f32 : t)) return fmt::format("input {} is {}", k, to_string(c.in(k)));
  }
  const Shape &state = c.in(0).shape, &z = c.in(gates).shape;
  if (state.size() != 2 || z.size() != 3 || z[0] < 1 || z[1] != state[0] || z[2] != 4 * state[1])
    return "the inputs must include gates [T, N, 4H] and a state [N, H]";
  if (have > fixed && c.in(fixed) != TensorType{DType::i32, {state[0]}}) return "lengths must be i32 [N]";
  if (num_elements(z) == 0) return "the input has no elements";
  return "";
}

Recurrence recurrence_of(const NodeView& c, size_t fixed, size_t gates, bool gradient) {
  const Shape &state = c.in(0).shape, &z = c.in(gates).shape;
  int64_t n = state[1];
  auto t = data_type(c.in(0).dtype);
  dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  const char* kind = isa >= dnnl::cpu_isa::avx512_core_amx ? "amx" : "";
  bool bf16 = c.in(0).dtype == DType::bf16 && isa >= dnnl::cpu_isa::avx512_core_bf16 &&
              !fills_sums(kind, DType::bf16, gradient ? 4 * n : n);
  auto product = gradient ? std::make_shared<StateProduct>(4 * n, n, Desc({4 * n, n}, t, Shape{n, 1}), bf16)
                          : std::make_shared<StateProduct>(n, 4 * n, Desc({n, 4 * n}, t, Shape{1, n}), bf16);
  return {z[0],
          z[1],
          n,
          c.node().attrs.i("reverse") != 0,
          c.node().inputs.size() > fixed,
          c.threads,
          kernels::storage_of(c.in(0).dtype),
          product};
}

float* floats(void* x) { return static_cast<float*>(x); }

// ---- forward: h0, c0, w_hh, z, lengths → y, c_n, gates, cells

MatchResult declines(const NodeView& c) {
  if (MatchResult why = declines_types(c, 4, 3); !why.empty()) return why;
  const Shape &state = c.in(0).shape, &z = c.in(3).shape;
  TensorType cells{DType::f32, {z[0], z[1], state[1]}}, steps{c.in(0).dtype, cells.shape}, gates{DType::f32, z};
  if (c.in(1) != c.in(0) || c.in(2).shape != Shape{4 * state[1], state[1]})
    return "the type of c0 or w_hh does not match";
  for (auto [k, want] : {std::pair(0, steps), std::pair(1, c.in(0)), std::pair(2, gates), std::pair(3, cells)})
    if (MatchResult why = cpu::expect_result(c, static_cast<size_t>(k), want); !why.empty()) return why;
  return declines_primitive([&] { return recurrence_of(c, 4, 3, false).product != nullptr; });
}

KernelPtr make(const NodeView& c) {
  Recurrence r = recurrence_of(c, 4, 3, false);
  auto run = [r](void* const* in, void* const* out, std::byte* scratch) {
    int64_t n = r.cells;
    auto row = kernels::isa_kernels().lstm_row;
    r.each_block(in[2], scratch, n, [&](int64_t first, int64_t count, float* h, StateProduct::Bound& product) {
      float *sums = h + block * n, *c = sums + block * 4 * n, *spare = c + block * n;
      float *new_c = spare + 4 * n, *new_h = new_c + n, *z = new_h + n;
      r.load(h, in[0], first * n, count * n);
      r.load(c, in[1], first * n, count * n);
      for (int64_t k = 0; k < r.steps; ++k) {
        int64_t t = r.at(k);
        product.run();
        for (int64_t i = 0; i < count; ++i) {
          int64_t at = t * r.rows + first + i;
          float* gates = out[2] ? floats(out[2]) + at * 4 * n : spare;
          row(gates, new_c, new_h, r.read(in[3], at * 4 * n, 4 * n, z), sums + i * 4 * n, c + i * n, n);
          if (!r.lengths || t < static_cast<const int32_t*>(in[4])[first + i]) {
            std::copy_n(new_c, n, c + i * n);
            std::copy_n(new_h, n, h + i * n);
          }
        }
        r.put(out[0], (t * r.rows + first) * n, h, count * n);
        if (out[3]) std::copy_n(c, count * n, floats(out[3]) + (t * r.rows + first) * n);
      }
      r.put(out[1], first * n, c, count * n);
    });
  };
  return std::make_unique<FunctionKernel>(c, run, r.scratch_bytes());
}

// ---- gradient: c0, w_hh, gates, cells, dy, dc_n, lengths → dh0, dc0, dz

MatchResult declines_grad(const NodeView& c) {
  if (MatchResult why = declines_types(c, 6, 2); !why.empty()) return why;
  const Shape &state = c.in(0).shape, &z = c.in(2).shape;
  TensorType cells{DType::f32, {z[0], z[1], state[1]}}, steps{c.in(0).dtype, cells.shape}, dz{steps.dtype, z};
  if (c.in(5) != c.in(0) || c.in(3) != cells || c.in(4) != steps || c.in(1).shape != Shape{4 * state[1], state[1]})
    return "the type of an input does not match";
  for (auto [k, want] : {std::pair(0, c.in(0)), std::pair(1, c.in(0)), std::pair(2, dz)})
    if (MatchResult why = cpu::expect_result(c, static_cast<size_t>(k), want); !why.empty()) return why;
  return declines_primitive([&] { return recurrence_of(c, 6, 2, true).product != nullptr; });
}

KernelPtr make_grad(const NodeView& c) {
  Recurrence r = recurrence_of(c, 6, 2, true);
  auto run = [r](void* const* in, void* const* out, std::byte* scratch) {
    int64_t n = r.cells;
    auto row = kernels::isa_kernels().lstm_dx_row;
    r.each_block(in[1], scratch, 4 * n, [&](int64_t first, int64_t count, float* dz, StateProduct::Bound& product) {
      float *back = dz + block * 4 * n, *dh = back + block * n, *dc = dh + block * n, *spare = dc + block * n;
      std::fill_n(dh, count * n, 0.0f);
      r.load(dc, in[5], first * n, count * n);
      for (int64_t k = r.steps; k-- > 0;) {
        int64_t t = r.at(k), here = t * r.rows + first;
        const float* before =
            k == 0 ? r.read(in[0], first * n, count * n, spare) : floats(in[3]) + (r.at(k - 1) * r.rows + first) * n;
        auto live = [&](int64_t i) { return !r.lengths || t < static_cast<const int32_t*>(in[6])[first + i]; };
        const float* dy = r.read(in[4], here * n, count * n, spare + block * n);
        for (int64_t j = 0; j < count * n; ++j) dh[j] += dy[j];
        for (int64_t i = 0; i < count; ++i) {
          if (live(i))
            row(dz + i * 4 * n, dc + i * n, dh + i * n, floats(in[2]) + (here + i) * 4 * n,
                floats(in[3]) + (here + i) * n, before + i * n, n);
          else
            std::fill_n(dz + i * 4 * n, 4 * n, 0.0f);
        }
        r.put(out[2], here * 4 * n, dz, count * 4 * n);
        product.run();
        for (int64_t i = 0; i < count; ++i)
          if (live(i)) std::copy_n(back + i * n, n, dh + i * n);
      }
      r.put(out[0], first * n, dh, count * n);
      r.put(out[1], first * n, dc, count * n);
    });
  };
  return std::make_unique<FunctionKernel>(c, run, r.scratch_bytes());
}

const Entry entries[] = {{"onednn lstm", "lstm_recurrence", declines, make},
                         {"onednn lstm gradient", "lstm_recurrence_grad", declines_grad, make_grad}};

}  // namespace

std::span<const Entry> recurrent_entries() { return entries; }

}  // namespace tutti::onednn

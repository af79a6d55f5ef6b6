// Attention in tiles: the scores of 32 queries and 32 keys at a time, never stored.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

constexpr int64_t tile = 32, columns = 16, most_depth = 256;

void check(const Target& t, const Attention& a) {
  auto decline = [](const std::string& why) { throw Error(Code::declined, why); };
  if (t.cpu_like || t.max_local < 128 || t.local_bytes < 16384)
    decline("attention in tiles needs groups of 128 work-items and 16 KiB of shared memory");
  if (a.dtype != DType::f32 && !is_narrow(a.dtype)) decline(fmt::format("dtype {}", name(a.dtype)));
  if (std::max(a.depth, a.width) > most_depth)
    decline(fmt::format("heads of {} elements; attention in tiles supports at most {}", std::max(a.depth, a.width),
                        most_depth));
  if (std::min({a.batch, a.heads, a.rows, a.keys, a.depth, a.width}) == 0) decline("an input has no elements");
  constexpr int64_t most = int64_t{1} << 31;
  if (std::max({a.rows, a.keys, a.batch * a.heads}) >= most) decline("2^31 or more queries, keys or heads");
  if (a.dropout > 0 && a.batch * a.heads * a.rows * a.keys >= most) decline("dropout of 2^31 or more probabilities");
}

/// Offset of the first row of a head; `share` heads share it.
std::string head_at(const Operand& x, int64_t share) {
  std::string head = share > 1 ? fmt::format("(h) / {}", share) : "(h)";
  return fmt::format("(IDX(b) * {} + IDX({}) * {} + {})", x.strides[0], head, x.strides[1], x.offset);
}

uint64_t reach_of(const Operand& x, const Shape& dims) {
  int64_t last = x.offset;
  for (size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * x.strides[d];
  return static_cast<uint64_t>(last) + 1;
}

/// Sets what the kernels have in common; removes inputs that there are not. `inputs`: the buffers of those that the
/// text names before the mask. Returns the buffers of all inputs.
std::vector<int> bind(Kernel& k, const Target& t, const Attention& a, int inputs) {
  int64_t share = a.heads / a.key_heads;
  for (auto [name, size] : {std::pair{"HEADS", a.heads},
                            {"ROWS", a.rows},
                            {"KEYS", a.keys},
                            {"DEPTH", a.depth},
                            {"WIDTH", a.width},
                            {"SHARE", share}})
    if (k.takes(name)) k.set(name, size);
  k.set("SCALE", float_literal(*t.language, static_cast<float>(a.scale)));
  k.set("CAUSAL", a.causal ? "true" : "false");
  const char* names[] = {"Q", "K", "V", "DY"};
  const Shape dims[] = {{a.batch, a.heads, a.rows, a.depth},
                        {a.batch, a.key_heads, a.keys, a.depth},
                        {a.batch, a.key_heads, a.keys, a.width},
                        {a.batch, a.heads, a.rows, a.width}};
  for (size_t n = 0; n < 4; ++n) {
    std::string operand = names[n];
    if (!k.takes(operand + "_ROW")) continue;
    k.set(operand + "_AT(b,h)", head_at(a.at[n], n == 1 || n == 2 ? share : 1));
    k.set(operand + "_ROW", a.at[n].strides[2]);
    k.elements = std::max(k.elements, reach_of(a.at[n], dims[n]));
  }
  std::vector<int> buffers;
  for (int n = 0; n < inputs; ++n) buffers.push_back(n);
  int next = inputs;
  std::string masked = "(s)";
  if (a.mask) {
    const Shape& m = a.mask->strides;
    std::string at = fmt::format("IDX(b) * {} + IDX(h) * {} + IDX(i) * {} + IDX(j) * {}", m[0], m[1], m[2], m[3]);
    masked = a.mask->dtype == DType::boolean ? fmt::format("(mask({}) ? (s) : -3.4e38f)", at)
                                             : fmt::format("((s) + mask({}))", at);
    k.elements = std::max(k.elements, reach_of(*a.mask, {a.batch, a.heads, a.rows, a.keys}));
    buffers.push_back(next++);
  }
  k.set("MASKED(s,b,h,i,j)", masked);
  std::string dropped = "(e)";
  if (a.dropout > 0) {
    double factor = a.dropout < 1 ? 1 / (1 - a.dropout) : 0;
    dropped = fmt::format(
        "dropped_(e, U32(((IDX(b) * {} + (h)) * {} + (i)) * {} + (j)), U32(step(0)), {}u, seed(0), "
        "seed(1), {}, {})",
        a.heads, a.rows, a.keys, a.stream, float_literal(*t.language, static_cast<float>(1 - a.dropout)),
        float_literal(*t.language, static_cast<float>(factor)));
    k.elements = std::max(k.elements, static_cast<uint64_t>(a.batch * a.heads * a.rows * a.keys));
    for (int n = 0; n < 2; ++n) buffers.push_back(next++);
  }
  k.set("DROPPED(e,b,h,i,j)", dropped);
  if (a.dropout == 0) k.functions.clear();
  std::erase_if(k.params, [&](const Param& p) {
    return (p.name == "mask" && !a.mask) || ((p.name == "seed" || p.name == "step") && a.dropout == 0);
  });
  return buffers;
}

Kernel kernel_of(const char* name, const Attention& a) {
  Element t = element_of(a.dtype);
  return portable(name, {{"T", t}, {"S", a.mask ? element_of(a.mask->dtype) : t}});
}

/// Sets where a result lies; a key head's are not shared.
void bind_result(Kernel& k, const std::string& name, const Operand& x, const Shape& dims) {
  k.set(name + "_AT(b,h)", head_at(x, 1));
  k.set(name + "_ROW", x.strides[2]);
  k.elements = std::max(k.elements, reach_of(x, dims));
}

Launch launch(const Target& t, Kernel k, int64_t heads, int64_t length, std::vector<int> buffers) {
  int64_t blocks = ceil_div(length, tile);
  k.set("BLOCKS", blocks);
  k.set("GROUPS", heads * blocks);
  return dispatch(t, std::move(k), static_cast<uint64_t>(heads * blocks), std::move(buffers));
}

int optional_inputs(const Attention& a) { return (a.mask ? 1 : 0) + (a.dropout > 0 ? 2 : 0); }

}  // namespace

LaunchList attention(const Target& t, const Attention& a, bool lse) {
  check(t, a);
  Kernel k = kernel_of("attention_tile", a);
  std::vector<int> buffers = bind(k, t, a, 3);
  k.set("COLS", ceil_div(a.width, columns));
  k.set("LSE(at,x)", lse ? "lse_set(at, x)" : "");
  if (!lse) std::erase_if(k.params, [](const Param& p) { return p.name == "lse"; });
  bind_result(k, "Y", a.to[0], {a.batch, a.heads, a.rows, a.width});
  int y = 3 + optional_inputs(a);
  buffers.push_back(y);
  if (lse) buffers.push_back(y + 1);
  return {{launch(t, std::move(k), a.batch * a.heads, a.rows, std::move(buffers))}, {}};
}

LaunchList attention_grad(const Target& t, const Attention& a, std::array<bool, 3> wanted) {
  check(t, a);
  LaunchList list;
  int next = 6 + optional_inputs(a);
  if (wanted[0]) {
    Kernel k = kernel_of("attention_dq", a);
    std::vector<int> buffers = bind(k, t, a, 6);
    k.set("COLS", ceil_div(a.depth, columns));
    bind_result(k, "DQ", a.to[0], {a.batch, a.heads, a.rows, a.depth});
    buffers.push_back(next++);
    list.launches.push_back(launch(t, std::move(k), a.batch * a.heads, a.rows, std::move(buffers)));
  }
  if (wanted[1] || wanted[2]) {
    Kernel k = kernel_of("attention_dkv", a);
    std::vector<int> buffers = bind(k, t, a, 6);
    k.set("COLS_K", ceil_div(a.depth, columns));
    k.set("COLS_V", ceil_div(a.width, columns));
    bind_result(k, "DK", a.to[1], {a.batch, a.key_heads, a.keys, a.depth});
    bind_result(k, "DV", a.to[2], {a.batch, a.key_heads, a.keys, a.width});
    for (size_t n : {size_t{1}, size_t{2}}) {
      std::string name = n == 1 ? "dk" : "dv", value = n == 1 ? "STORE_DK(at,x)" : "STORE_DV(at,x)";
      k.set(value, wanted[n] ? name + "_set(at, x)" : "");
      if (wanted[n])
        buffers.push_back(next++);
      else
        std::erase_if(k.params, [&](const Param& p) { return p.name == name; });
    }
    list.launches.push_back(launch(t, std::move(k), a.batch * a.key_heads, a.keys, std::move(buffers)));
  }
  return list;
}

}  // namespace tutti::codegen

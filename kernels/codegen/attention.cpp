// Attention in tiles: the scores of 32 queries and 32 keys at a time, or of 64 by 32 or 64 on tensor cores, never
// stored.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

constexpr int64_t tile = 32, columns = 16, most_depth = 256;
constexpr int64_t tensor_tile = 64, most_tensor_depth = 128;

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

/// Keys or queries that a group on tensor cores takes at a time: what fits into shared memory.
int64_t tensor_step(const Attention& a) { return std::max(a.depth, a.width) <= 64 ? 64 : 32; }

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
  int next = inputs + (a.y ? 1 : 0);
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
  std::erase_if(k.params, [&](const Param& p) {
    return (p.name == "mask" && !a.mask) || ((p.name == "seed" || p.name == "step") && a.dropout == 0);
  });
  return buffers;
}

Kernel kernel_of(const std::string& name, const Attention& a) {
  Element t = element_of(a.dtype);
  return portable(name, {{"T", t}, {"S", a.mask ? element_of(a.mask->dtype) : t}});
}

/// Whether all rows begin at multiples of `count` elements.
bool aligned(const Operand& x, int64_t count) {
  return std::all_of(x.strides.begin(), x.strides.end() - 1, [=](int64_t n) { return n % count == 0; }) &&
         x.offset % count == 0;
}

/// How to read two neighbours as one word.
std::string pair_of(const Operand& x, const std::string& name, const std::string& at = "(at)") {
  return fmt::format(fmt::runtime(aligned(x, 2) ? "{0}_word({1} >> 1)" : "PACK({0}({1}), {0}({1} + 1))"), name, at);
}

/// How to bring eight neighbours to shared memory.
std::string copy_of(const Operand& x, const std::string& name) {
  if (aligned(x, 8)) return fmt::format("COPY16(tile, to, {}, at, inside)", name);
  std::string words;
  for (int n = 0; n < 8; n += 2) words += (n ? ", " : "") + pair_of(x, name, fmt::format("((at) + {})", n));
  return fmt::format("tile[to] = (inside) ? UINT4({}) : UINT4(0u, 0u, 0u, 0u)", words);
}

/// How to store two neighbours.
std::string store_of(const Operand& x, const std::string& name) {
  return fmt::format(fmt::runtime(aligned(x, 2) ? "{0}_word_set((at) >> 1, PACK(x, z))"
                                                : "{{ {0}_set(at, x); {0}_set((at) + 1, z); }}"),
                     name);
}

/// Sets what the kernels on tensor cores have in common. `groups`: of the launch; `registers`: of a work-item.
void bind_tensor_cores(Kernel& k, const Target& t, const Attention& a, int64_t groups, int64_t registers) {
  int64_t step = tensor_step(a);
  // Few groups leave units idle while each takes one tile after the other: then two teams share the tiles of a group.
  int64_t teams = groups < 2 * int64_t{t.compute_units} && step == tensor_tile && t.max_local >= 256 ? 2 : 1;
  k.local[0] = static_cast<uint32_t>(128 * teams);
  k.set("STEP", step);
  k.set("TEAMS", teams);
  k.set("PART", step / teams);
  constexpr double log2_e = 1.4426950408889634;
  bool added =
      a.mask && a.mask->dtype != DType::boolean;  // then scores stay as they are, for masks near the largest float
  auto literal = [&](double x) { return float_literal(*t.language, static_cast<float>(x)); };
  k.set("SCALE", literal(added ? a.scale : a.scale * log2_e));
  k.set("UNIT", literal(added ? log2_e : 1));
  k.set("NATURAL", literal(added ? 1 : log2_e));
  if (k.takes("FACTOR")) k.set("FACTOR", literal(a.scale));
  if (k.takes("MASKS")) k.set("MASKS", a.mask ? "true" : "false");
  // Two paths need more registers.
  if (k.takes("ONE_PATH")) k.set("ONE_PATH", step < tensor_tile && (a.mask || a.dropout > 0) ? "true" : "false");
  const char* names[] = {"q", "k", "v", "dy"};
  const char* capitals[] = {"Q", "K", "V", "DY"};
  for (size_t n = 0; n < 4; ++n) {
    std::string pair = std::string(capitals[n]) + "_PAIR", copy = std::string(capitals[n]) + "_COPY";
    if (k.takes(pair)) k.set(pair + "(at)", pair_of(a.at[n], names[n]));
    if (k.takes(copy)) k.set(copy + "(tile,to,at,inside)", copy_of(a.at[n], names[n]));
  }
  constexpr int64_t most_registers = 255, random_registers = 32;
  k.registers = static_cast<uint32_t>(std::min(registers + (a.dropout > 0 ? random_registers : 0), most_registers));
  k.words = words_for_tensor_cores(t, a.dtype);
}

/// Sets where a result lies; a key head's are not shared.
void bind_result(Kernel& k, const std::string& name, const Operand& x, const Shape& dims) {
  k.set(name + "_AT(b,h)", head_at(x, 1));
  k.set(name + "_ROW", x.strides[2]);
  k.elements = std::max(k.elements, reach_of(x, dims));
}

Launch launch(const Target& t, Kernel k, int64_t heads, int64_t length, int64_t each, std::vector<int> buffers) {
  int64_t blocks = ceil_div(length, each);
  k.set("BLOCKS", blocks);
  k.set("GROUPS", heads * blocks);
  return dispatch(t, std::move(k), static_cast<uint64_t>(heads * blocks), std::move(buffers));
}

int optional_inputs(const Attention& a) { return (a.y ? 1 : 0) + (a.mask ? 1 : 0) + (a.dropout > 0 ? 2 : 0); }

}  // namespace

std::string declines_tensor_cores(const Target& t, const Attention& a) {
  if (a.dtype != DType::f16 && a.dtype != DType::bf16)
    return fmt::format("dtype {}; it must be f16 or bf16", name(a.dtype));
  if (!t.tensor_cores || t.language->tensor_cores.empty())
    return "the device has no products of warps (CUDA: compute capability 8.0 or later)";
  if (a.depth % 16 != 0 || a.width % 16 != 0 || std::max(a.depth, a.width) > most_tensor_depth)
    return fmt::format("heads of {} and {} elements; both must be multiples of 16 and at most {}", a.depth, a.width,
                       most_tensor_depth);
  if (t.local_bytes < 40960) return "less than 40 KiB of shared memory";
  return "";
}

LaunchList attention(const Target& t, const Attention& a, bool lse) {
  check(t, a);
  bool tensor = declines_tensor_cores(t, a).empty();
  Kernel k = kernel_of(tensor ? "attention_mma" : "attention_tile", a);
  std::vector<int> buffers = bind(k, t, a, 3);
  if (tensor)
    bind_tensor_cores(k, t, a, a.batch * a.heads * ceil_div(a.rows, tensor_tile),
                      a.width / 2 + a.depth / 4 + tensor_step(a) / 2 + 40);
  else
    k.set("COLS", ceil_div(a.width, columns));
  k.set("LSE(at,x)", lse ? "lse_set(at, x)" : "{}");
  if (!lse) std::erase_if(k.params, [](const Param& p) { return p.name == "lse"; });
  if (tensor) k.set("Y_PAIR(at,x,z)", store_of(a.to[0], "y"));
  bind_result(k, "Y", a.to[0], {a.batch, a.heads, a.rows, a.width});
  int y = 3 + optional_inputs(a);
  buffers.push_back(y);
  if (lse) buffers.push_back(y + 1);
  int64_t each = tensor ? tensor_tile : tile;
  return {{launch(t, std::move(k), a.batch * a.heads, a.rows, each, std::move(buffers))}, {}};
}

namespace {

Launch grad_of_queries(const Target& t, const Attention& a, int& next) {
  bool tensor = declines_tensor_cores(t, a).empty();
  Kernel k = kernel_of(tensor ? "attention_mma_dq" : "attention_dq", a);
  std::vector<int> buffers = bind(k, t, a, 6);
  if (tensor) {
    bind_tensor_cores(k, t, a, a.batch * a.heads * ceil_div(a.rows, tensor_tile), a.depth / 4 * 3 + a.width / 4 + 68);
    k.set("DQ_PAIR(at,x,z)", store_of(a.to[0], "dq"));
  } else {
    k.set("COLS", ceil_div(a.depth, columns));
  }
  bind_result(k, "DQ", a.to[0], {a.batch, a.heads, a.rows, a.depth});
  buffers.push_back(next++);
  return launch(t, std::move(k), a.batch * a.heads, a.rows, tensor ? tensor_tile : tile, std::move(buffers));
}

Launch grad_of_keys(const Target& t, const Attention& a, std::array<bool, 3> wanted, int& next) {
  bool tensor = declines_tensor_cores(t, a).empty();
  Kernel k = kernel_of(tensor ? "attention_mma_dkv" : "attention_dkv", a);
  std::vector<int> buffers = bind(k, t, a, 6);
  if (tensor) {
    bind_tensor_cores(k, t, a, a.batch * a.key_heads * ceil_div(a.keys, tensor_tile), (a.depth + a.width) / 4 * 3 + 80);
  } else {
    k.set("COLS_K", ceil_div(a.depth, columns));
    k.set("COLS_V", ceil_div(a.width, columns));
  }
  bind_result(k, "DK", a.to[1], {a.batch, a.key_heads, a.keys, a.depth});
  bind_result(k, "DV", a.to[2], {a.batch, a.key_heads, a.keys, a.width});
  for (size_t n : {size_t{1}, size_t{2}}) {
    std::string name = n == 1 ? "dk" : "dv", capitals = n == 1 ? "DK" : "DV";
    if (tensor)
      k.set(capitals + "_PAIR(at,x,z)", wanted[n] ? store_of(a.to[n], name) : "{}");
    else
      k.set("STORE_" + capitals + "(at,x)", wanted[n] ? name + "_set(at, x)" : "{}");
    if (wanted[n])
      buffers.push_back(next++);
    else
      std::erase_if(k.params, [&](const Param& p) { return p.name == name; });
  }
  return launch(t, std::move(k), a.batch * a.key_heads, a.keys, tensor ? tensor_tile : tile, std::move(buffers));
}

}  // namespace

LaunchList attention_grad(const Target& t, const Attention& a, std::array<bool, 3> wanted) {
  check(t, a);
  LaunchList list;
  int next = 6 + optional_inputs(a);
  if (wanted[0]) list.launches.push_back(grad_of_queries(t, a, next));
  if (wanted[1] || wanted[2]) list.launches.push_back(grad_of_keys(t, a, wanted, next));
  return list;
}

}  // namespace tutti::codegen

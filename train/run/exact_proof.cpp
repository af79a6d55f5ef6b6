#include "train/run/exact_proof.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "core/base/hash.h"
#include "core/base/option_text.h"
#include "core/base/philox.h"
#include "core/runtime/blob_cache.h"
#include "core/runtime/registry.h"
#include "core/runtime/selector.h"
#include "graph/autodiff/autodiff.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "train/run/reference.h"
#include "train/run/runner.h"

namespace tutti {
namespace {

constexpr int64_t elements = 4096;
constexpr uint64_t seed = 43;

/// Element i of tensor `stream`: special values, bits of any kind, and numbers around 1.
float number(uint32_t stream, int64_t i) {
  static constexpr float special[] = {0.0f, -0.0f,     1.0f,      -1.0f,        HUGE_VALF, -HUGE_VALF,
                                      NAN,  0x1p-126f, 0x1p-127f, -0x1.8p-140f, 0x1p-149f, 3.4028235e38f,
                                      0.5f, 88.7f,     -103.9f,   1e5f};
  constexpr int64_t n = std::size(special);
  if (i < n * n) return special[stream % 2 ? i / n : i % n];  // all pairs
  uint32_t bits = random_block(seed, 0, stream, static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)];
  return i % 2 ? std::bit_cast<float>(bits) : static_cast<float>(bits >> 8) * 0x1p-21f - 4.0f;
}

/// A graph with drawn inputs.
struct Case {
  Graph graph;
  HostTensors inputs;

  /// An input of the numbers of number(), or without special values.
  Value any(const Shape& shape) {
    return add(shape, [](uint32_t s, int64_t i) { return number(s, i); });
  }
  Value moderate(const Shape& shape, float scale = 1) {
    return add(shape, [&](uint32_t s, int64_t i) {
      uint32_t bits = random_block(seed, 1, s, static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)];
      return (static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f) * scale;
    });
  }
  Value index(const Shape& shape, int32_t below) {
    std::string name = fmt::format("x{}", inputs.size());
    std::vector<int32_t> all;
    for (int64_t i = 0; i < num_elements(shape); ++i)
      all.push_back(static_cast<int32_t>(random_block(seed, 2, 0, static_cast<uint64_t>(i))[0] % uint32_t(below)));
    inputs.emplace(name, host_tensor(DType::i32, shape, all));
    return graph.feed(name, {DType::i32, shape});
  }
  void result(const std::string& name, Value v) { graph.set_state(name, v); }

 private:
  Value add(const Shape& shape, const std::function<float(uint32_t, int64_t)>& draw) {
    std::string name = fmt::format("x{}", inputs.size());
    std::vector<float> all;
    for (int64_t i = 0; i < num_elements(shape); ++i) all.push_back(draw(static_cast<uint32_t>(inputs.size()), i));
    inputs.emplace(name, host_tensor(DType::f32, shape, all));
    return graph.feed(name, {DType::f32, shape});
  }
};

/// Every elementwise op of floats.
void elementwise(Case& c) {
  int64_t n = elements, ops = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->elementwise() || op->exact || op->name.starts_with("logical_")) continue;
    std::vector<DType> dtypes(op->inputs.size(), DType::f32);
    try {
      expr_of(*op, dtypes, op->attrs);
    } catch (const Error&) {
      continue;  // not of floats
    }
    Values in;
    if (ops++ % 4 == 0) ++n;  // all ops of one shape would be one kernel, which takes minutes to compile
    while (in.size() < op->inputs.size()) in.push_back(c.any({n}));
    Values y = call_all(*op, in);
    for (size_t k = 0; k < y.size(); ++k) c.result(k ? fmt::format("{}.{}", op->name, k) : op->name, y[k]);
  }
  Value a = c.any({elements}), b = c.any({elements});
  c.result("add(mul(a, b), -mul(a, b))", a * b + (b * -a));  // not zero if a product is contracted
  c.result("mul(add(a, 1e8), 1e-8)", (a + 1e8) * 1e-8);
}

/// Products and sums, shorter and longer than a part.
void sums(Case& c) {
  c.result("matmul", matmul(c.moderate({37, 129}), c.moderate({129, 70})));
  c.result("matmul of 2500 terms", matmul(c.moderate({9, 2500}), c.moderate({2500, 33})));
  c.result("matmul ta", matmul(c.moderate({65, 20}), c.moderate({65, 66}), true, false));
  c.result("matmul tb", matmul(c.moderate({2, 3, 21, 40}), c.moderate({3, 34, 40}), false, true));
  c.result("matmul of small numbers", matmul(c.moderate({8, 16}, 0x1p-75f), c.moderate({16, 40}, 0x1p-60f)));
  Value x = c.moderate({3, 5000, 5}), rows = c.any({70, 130});
  c.result("sum of all", sum(x));
  c.result("sum of columns", sum(x, {1}));
  c.result("sum of rows", sum(x, {2}));
  c.result("sum of outer axes", sum(c.moderate({6, 7, 130}), {0, 2}));
  c.result("prod", prod(c.moderate({40, 50}, 1.5f), {1}));
  c.result("max", max(rows, {1}));
  c.result("min", min(rows, {0}));
  c.result("argmax", argmax(rows, {1}));
  Value index = c.index({200}, 31);
  c.result("gather", gather(c.any({31, 24}), index));
  c.result("scatter_add", scatter_add(index, c.moderate({200, 24}), 31));
  c.result("add_along_axis", add_along_axis(c.index({90, 8}, 13), c.moderate({90, 8}), 13, 0));
  c.result("fold", fold(c.moderate({2, 3, 3, 2, 9, 8}), {9, 16}, {3, 2}, {1, 2}, {1, 0}));
}

/// The losses and gradients of two small models.
void models(Case& c) {
  Value images = c.moderate({6, 2, 9, 9}), filters = c.moderate({5, 2, 3, 3}), shift = c.moderate({5});
  Value classes = c.index({6}, 10), head = c.moderate({80, 10});
  Value y = relu(conv2d(images, filters, {.padding = {1, 1}}) + reshape(shift, {5, 1, 1}));
  y = reshape(max_pool2d(y, {.kernel = {2, 2}, .stride = {2, 2}}), {6, 80});
  Value loss = cross_entropy(matmul(y, head), classes);
  Values d = gradients(loss, {filters, shift, head});
  c.result("loss of a convolutional model", loss);
  for (size_t k = 0; k < d.size(); ++k) c.result(fmt::format("gradient {} of a convolutional model", k), d[k]);
  Value tokens = c.moderate({2, 11, 24}), weights = c.moderate({24, 72}, 0.3f), scale = c.moderate({24});
  Value z = matmul(layer_norm(tokens, {24}, scale), weights);
  Values parts;
  for (int64_t k = 0; k < 3; ++k)
    parts.push_back(transpose(reshape(slice(z, {0, 0, 24 * k}, {2, 11, 24 * k + 24}), {2, 11, 4, 6}), {0, 2, 1, 3}));
  Value mixed = gelu(attention(parts[0], parts[1], parts[2], {.causal = true}));
  Value total = mean(mixed * mixed);
  d = gradients(total, {tokens, weights, scale});
  c.result("loss of attention", total);
  for (size_t k = 0; k < d.size(); ++k) c.result(fmt::format("gradient {} of attention", k), d[k]);
}

/// "" or the first element with other bits.
std::string difference(const HostTensor& got, const HostTensor& want) {
  std::vector<uint32_t> a, b;
  if (size_of(want.type.dtype) != 4) return got.bytes == want.bytes ? "" : "other bytes";
  a = got.as<uint32_t>();
  b = want.as<uint32_t>();
  bool real = is_float(want.type.dtype);
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    float x = std::bit_cast<float>(a[i]), y = std::bit_cast<float>(b[i]);
    if (real && std::isnan(x) && std::isnan(y)) continue;
    return fmt::format("element {} is {:#010x}, expected {:#010x}", i, a[i], b[i]) +
           (real ? fmt::format(" ({:.9g}, expected {:.9g})", x, y) : "");
  }
  return "";
}

/// The cache's key of a proof: what it depends on.
std::string key_of(const Device& d) {
  uint64_t plugins = fnv1a(nullptr, 0);
  for (const PluginReport& p : Registry::instance().plugins())
    if (p.name == d.plugin || p.name == "reference") {
      std::ifstream file(std::filesystem::path(p.library), std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(file), {}};
      plugins = fnv1a(bytes.data(), bytes.size(), plugins);
    }
  return fmt::format("exact proof\n{}\n{}\n{}\n{:016x}\n{}", d.id, d.name, d.driver, plugins, fmt::join(d.uuid, " "));
}

}  // namespace

void prove_exact(const Device& device, const std::map<std::string, std::string>& options) {
  if (is_reference(device)) return;
  BlobCache cache(BlobCache::default_folder());
  std::string key = key_of(device);
  if (!cache.get(key).empty()) return;
  std::map<std::string, std::string> exact = options;
  exact["numerics"] = "exact";
  Device reference = select_device(reference_device);
  for (void (*add)(Case&) : {elementwise, sums, models}) {
    Case c;
    add(c);
    HostTensors want = run(c.graph, reference, c.inputs, {{"numerics", "exact"}});
    HostTensors got = run(c.graph, device, c.inputs, exact);
    for (const State& s : c.graph.states())
      if (std::string why = difference(got.at(s.name), want.at(s.name)); !why.empty())
        throw Error(Code::declined, fmt::format("{}: its numerics are not exact: {}: {}", device.id, s.name, why),
                    "use another device (`tutti devices` lists them) or " + option_text("numerics", "fast"));
  }
  cache.put(key, "proved", 6);
}

}  // namespace tutti

// Times oneDNN's products in each layout of their operands. One product per line of stdin, one JSON object per line of
// stdout:
//   product_layouts [--threads N] [--ms T]
//   f32 BATCH M K N TA TB   ->   {"own": 412.0, ...}   GFLOP/s, the best run of T ms each
// bench/peers/shapes.py runs it (scripts/bench-shapes.sh).
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <dnnl.hpp>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using dnnl::memory;
using Desc = memory::desc;

struct Product {
  memory::data_type type = memory::data_type::f32;
  int64_t batch = 1, m = 1, k = 1, n = 1;
  bool ta = false, tb = false;
  double operations() const { return 2.0 * static_cast<double>(batch * m) * static_cast<double>(k * n); }
};

/// A way to lay out the operands.
struct Way {
  const char* name;
  bool ta, tb;        ///< transposed in memory
  bool own_a, own_b;  ///< oneDNN chooses the layout
};

/// The engine, the stream and how long to measure.
struct Bench {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  double seconds = 0.05;

  /// Seconds of the fastest run of `f`, which is called for `seconds` and at least three times.
  template <class F>
  double best(F&& f) const {
    using Clock = std::chrono::steady_clock;
    auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
    f();  // the first run touches memory
    double least = 1e30;
    auto begin = Clock::now();
    for (int runs = 0; runs < 3 || since(begin) < seconds; ++runs) {
      auto start = Clock::now();
      f();
      least = std::min(least, since(start));
    }
    return least;
  }
};

Desc operand(const Product& p, int64_t rows, int64_t columns, bool transposed, bool own) {
  memory::dims dims{rows, columns}, strides{transposed ? 1 : columns, transposed ? rows : 1};
  if (p.batch > 1) dims.insert(dims.begin(), p.batch), strides.insert(strides.begin(), rows * columns);
  return own ? Desc(dims, p.type, memory::format_tag::any) : Desc(dims, p.type, strides);
}

/// Memory filled with numbers that are not denormal.
memory filled(const Desc& desc, Bench& bench) {
  memory all(desc, bench.engine);
  auto* bytes = static_cast<uint16_t*>(all.get_data_handle());
  for (size_t k = 0; k < desc.get_size() / 2; ++k) bytes[k] = static_cast<uint16_t>(0x3f00 + k % 97);
  return all;
}

/// Seconds in which an operand as it is stored becomes `packed`.
double seconds_of_packing(const Desc& stored, memory& packed, Bench& bench) {
  memory plain = filled(stored, bench);
  dnnl::reorder pack(plain, packed);
  return bench.best([&] {
    pack.execute(bench.stream, plain, packed);
    bench.stream.wait();
  });
}

/// Seconds of the product, and those in which its operands come into oneDNN's layouts.
std::pair<double, double> seconds(const Product& p, const Way& way, Bench& bench) {
  Desc a = operand(p, p.m, p.k, way.ta, way.own_a), b = operand(p, p.k, p.n, way.tb, way.own_b);
  dnnl::matmul::primitive_desc pd(bench.engine, a, b, operand(p, p.m, p.n, false, false));
  dnnl::matmul product(pd);
  memory x = filled(pd.src_desc(), bench), w = filled(pd.weights_desc(), bench), y = filled(pd.dst_desc(), bench);
  double packing = way.own_a ? seconds_of_packing(operand(p, p.m, p.k, p.ta, false), x, bench) : 0;
  if (way.own_b) packing += seconds_of_packing(operand(p, p.k, p.n, p.tb, false), w, bench);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  double multiplying = bench.best([&] {
    product.execute(bench.stream, arguments);
    bench.stream.wait();
  });
  return {multiplying, packing};
}

double seconds_of_sgemm(const Product& p, Bench& bench) {
  std::vector<float> a(p.m * p.k, 0.5F), b(p.k * p.n, 0.5F), y(p.m * p.n);
  return bench.best([&] {
    dnnl::sgemm(p.ta ? 'T' : 'N', p.tb ? 'T' : 'N', p.m, p.n, p.k, 1, a.data(), p.ta ? p.m : p.k, b.data(),
                p.tb ? p.k : p.n, 0, y.data(), p.n);
  });
}

std::string measure(const Product& p, Bench& bench) {
  const Way ways[] = {{"row-major", false, false, false, false},
                      {"transposed", false, true, false, false},
                      {"as stored", p.ta, p.tb, false, false},
                      {"own", p.ta, p.tb, false, true},
                      {"own, both", p.ta, p.tb, true, true}};
  std::string text;
  auto add = [&](std::string_view name, double value) {
    text += fmt::format("{}\"{}\": {:.6g}", text.empty() ? "" : ", ", name, value);
  };
  for (const Way& way : ways) try {
      auto [multiplying, packing] = seconds(p, way, bench);
      add(way.name, 1e-9 * p.operations() / multiplying);
      if (way.own_b)
        add(fmt::format("{}, packed each time", way.name), 1e-9 * p.operations() / (multiplying + packing));
    } catch (const dnnl::error&) {  // no implementation in this layout
    }
  if (p.type == memory::data_type::f32 && p.batch == 1)
    add("sgemm", 1e-9 * p.operations() / seconds_of_sgemm(p, bench));
  return "{" + text + "}";
}

bool parse(const std::string& line, Product& p) {
  std::istringstream words(line);
  std::string type;
  if (!(words >> type >> p.batch >> p.m >> p.k >> p.n >> p.ta >> p.tb)) return false;
  p.type = type == "bf16" ? memory::data_type::bf16 : memory::data_type::f32;
  return (type == "f32" || type == "bf16") && std::min({p.batch, p.m, p.k, p.n}) >= 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Bench bench;
  for (int k = 1; k < argc; k += 2) {
    std::string_view name = argv[k];
    double value = k + 1 < argc ? std::stod(argv[k + 1]) : 0;
    if (value <= 0 || (name != "--threads" && name != "--ms")) {
      fmt::print(stderr, "product_layouts: {}: expected [--threads N] [--ms T], numbers above 0\n", name);
      return 2;
    }
    if (name == "--threads") omp_set_num_threads(static_cast<int>(value));
    if (name == "--ms") bench.seconds = value / 1000;
  }
  for (std::string line; std::getline(std::cin, line);) {
    Product p;
    if (!parse(line, p)) {
      fmt::print(stderr, "product_layouts: '{}': expected f32 or bf16, then BATCH M K N TA TB\n", line);
      return 2;
    }
    fmt::print("{}\n", measure(p, bench));
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "product_layouts: {}\n", e.what());
  return 1;
}

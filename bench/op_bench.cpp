// Times one op on one device: op_bench --device opencl:0 --op matmul --shape 512x2048x2048 [--ta] [--tb]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/runtime/selector.h"
#include "core/runtime/session.h"
#include "graph/autodiff/autodiff.h"
#include "graph/lower/compile.h"
#include "graph/ops/adam.h"
#include "graph/ops/add.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/div.h"
#include "graph/ops/exp.h"
#include "graph/ops/matmul.h"
#include "graph/ops/max_pool2d.h"
#include "graph/ops/min.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/softmax.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"

namespace {

using namespace tutti;

struct Settings {
  std::string device = "auto", op = "matmul", shape = "512x2048x2048", dtype = "f32", grad;
  bool ta = false, tb = false, json = false;
  int64_t stride = 1, padding = -1, axis = 0;
  double seconds = 1;
};

/// What one run does.
struct Effort {
  double flops = 0, bytes = 0;
};

double bytes_of(const Values& values) {
  double bytes = 0;
  for (Value v : values) bytes += static_cast<double>(num_bytes(v.type()));
  return bytes;
}

Shape parse_shape(const std::string& text, size_t least) {
  Shape shape;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find_first_of("x,", at), text.size());
    shape.push_back(std::atoll(text.substr(at, end - at).c_str()));
    if (shape.back() < 1)
      throw invalid(fmt::format("--shape {}: numbers of at least 1, separated by x or commas, are needed", text));
    at = end + 1;
  }
  if (shape.size() < least) throw invalid(fmt::format("--shape {}: {} numbers are needed", text, least));
  return shape;
}

/// y = matmul(a, b) of M x N x K, or of a batch of them.
Effort build_matmul(Graph& g, const Settings& s, DType t) {
  Shape d = parse_shape(s.shape, 3);
  Shape batch(d.begin(), d.end() - 3);
  int64_t m = d.end()[-3], n = d.end()[-2], k = d.end()[-1];
  auto operand = [&](const char* name, int64_t rows, int64_t columns) {
    Shape shape = batch;
    shape.insert(shape.end(), {rows, columns});
    return g.state(name, {t, shape});
  };
  Value a = s.ta ? operand("a", k, m) : operand("a", m, k);
  Value b = s.tb ? operand("b", n, k) : operand("b", k, n);
  Value y = matmul(a, b, s.ta, s.tb);
  g.set_state("y", y);
  return {2.0 * static_cast<double>(num_elements(d)), bytes_of({a, b, y})};
}

/// conv2d of N, C, H, W with K filters of size R x R, or one of its gradients.
Effort build_conv2d(Graph& g, const Settings& s, DType t) {
  Shape d = parse_shape(s.shape, 6);
  int64_t r = d[5], padding = s.padding < 0 ? r / 2 : s.padding;
  Value x = g.state("x", {t, {d[0], d[1], d[2], d[3]}}), w = g.state("w", {t, {d[4], d[1], r, r}});
  Value y = conv2d(x, w, {.stride = {s.stride, s.stride}, .padding = {padding, padding}});
  double flops = 2.0 * static_cast<double>(num_elements(y.shape()) * d[1] * r * r);
  if (s.grad.empty()) {
    g.set_state("y", y);
    return {flops, bytes_of({x, w, y})};
  }
  Value seed = g.state("dy", y.type());
  Value of = s.grad == "x" ? x : w;
  g.set_state("dx", gradients({y}, {seed}, {of})[0]);
  return {flops, bytes_of({x, w, y})};
}

/// max_pool2d of N, C, H, W with windows of 2 x 2, or its gradient.
Effort build_pool(Graph& g, const Settings& s, DType t) {
  Value x = g.state("x", {t, parse_shape(s.shape, 4)});
  Value y = max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}});
  if (s.grad.empty()) {
    g.set_state("y", y);
  } else {
    Value seed = g.state("dy", y.type());
    g.set_state("dx", gradients({y}, {seed}, {x})[0]);
  }
  return {0, bytes_of({x, y})};
}

/// One input, one output.
template <class F>
Effort build_unary(Graph& g, const Settings& s, DType t, F&& f) {
  Value x = g.state("x", {t, parse_shape(s.shape, 1)});
  Value y = f(x);
  g.set_state("y", y);
  return {0, bytes_of({x, y})};
}

Effort build_add(Graph& g, const Settings& s, DType t) {
  TensorType type{t, parse_shape(s.shape, 1)};
  Value a = g.state("a", type), b = g.state("b", type), y = a + b;
  g.set_state("y", y);
  return {0, bytes_of({a, b, y})};
}

/// The device's own copy of memory: what everything bound by memory is measured against.
Effort build_copy(Graph& g, const Settings& s, DType t) {
  Value x = g.state("x", {t, parse_shape(s.shape, 1)});
  g.set_state("y", x);
  return {0, bytes_of({x, x})};
}

/// One step of Adam over f32 parameters: 28 bytes for each.
Effort build_adam(Graph& g, const Settings& s, DType) {
  TensorType type{DType::f32, parse_shape(s.shape, 1)}, one{DType::f32, {}};
  Value p = g.state("p", type), m = g.state("m", type), v = g.state("v", type), gradient = g.state("g", type);
  Values after = adam(p, gradient, m, v, g.state("lr", one), g.state("c1", one), g.state("c2", one));
  g.set_state("p", after[0]);
  g.set_state("m", after[1]);
  g.set_state("v", after[2]);
  return {0, bytes_of({p, m, v, gradient, p, m, v})};
}

using Build = std::function<Effort(Graph&, const Settings&, DType)>;

const std::map<std::string, Build>& ops() {
  static const std::map<std::string, Build> all = {
      {"matmul", build_matmul},
      {"conv2d", build_conv2d},
      {"max_pool2d", build_pool},
      {"add", build_add},
      {"adam", build_adam},
      {"copy", build_copy},
      {"exp",
       [](Graph& g, const Settings& s, DType t) { return build_unary(g, s, t, [](Value x) { return exp(x); }); }},
      {"sum", [](Graph& g, const Settings& s,
                 DType t) { return build_unary(g, s, t, [&](Value x) { return sum(x, {s.axis}); }); }},
      {"softmax", [](Graph& g, const Settings& s,
                     DType t) { return build_unary(g, s, t, [&](Value x) { return softmax(x, -1); }); }},
      {"transpose", [](Graph& g, const Settings& s, DType t) {
         return build_unary(g, s, t, [](Value x) {
           Ints perm(x.rank());
           for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(perm.size() - 1 - d);
           return transpose(x, perm);
         });
       }}};
  return all;
}

/// Numbers in (-1, 1) in every state that is read.
void fill_states(Session& session, const Graph& g) {
  for (const State& s : g.states()) {
    if (s.before == none) continue;
    const TensorType& type = g.info(s.before).type;
    std::vector<std::byte> data(num_bytes(type));
    size_t size = size_of(type.dtype);
    for (size_t i = 0; i < data.size() / size; ++i) {
      auto x = static_cast<float>(static_cast<double>((i * 2654435761u) % 2001) / 1000.5 - 1);
      uint32_t bits = 0;
      if (type.dtype == DType::f32) std::memcpy(&bits, &x, 4);
      if (type.dtype == DType::f16) bits = f32_to_f16(x);
      if (type.dtype == DType::bf16) bits = f32_to_bf16(x);
      std::memcpy(data.data() + i * size, &bits, size);
    }
    session.write(s.name, data.data(), data.size());
  }
}

/// The median time of a run, each waited for, over `seconds` (at least 5 runs).
std::pair<double, int> median_time(Session& session, Executable& step, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  session.wait(step.run());
  session.wait(step.run());
  std::vector<double> times;
  for (auto start = Clock::now(); times.size() < 5 || (since(start) < seconds && times.size() < 100000);) {
    auto begin = Clock::now();
    session.wait(step.run());
    times.push_back(since(begin));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return {times[times.size() / 2], static_cast<int>(times.size())};
}

DType dtype_named(const std::string& text) {
  for (DType t : {DType::f32, DType::f16, DType::bf16})
    if (name(t) == text) return t;
  throw invalid(fmt::format("--dtype {}: f32, f16 or bf16 are possible", text));
}

void measure(const Settings& s) {
  auto op = ops().find(s.op);
  if (op == ops().end()) throw invalid(fmt::format("--op {} is not among the ops of this program", s.op), "see --help");
  Graph g;
  Effort effort = op->second(g, s, dtype_named(s.dtype));
  Session session(select_device(s.device));
  Legalizer legalizer(session);
  Lowered lowered = compile_for_device(g, legalizer);
  Executable step = session.compile(lowered.program());
  step.prepare();
  fill_states(session, g);
  auto [seconds, runs] = median_time(session, step, s.seconds);
  double gflops = effort.flops / seconds * 1e-9, gbytes = effort.bytes / seconds * 1e-9;
  if (s.json) {
    nlohmann::ordered_json result = {{"device", session.device().id},
                                     {"op", s.op},
                                     {"shape", s.shape},
                                     {"dtype", s.dtype},
                                     {"ta", s.ta},
                                     {"tb", s.tb},
                                     {"grad", s.grad},
                                     {"ms", seconds * 1e3},
                                     {"gflops", gflops},
                                     {"gbytes_per_s", gbytes},
                                     {"runs", runs},
                                     {"planned_bytes", step.planned_bytes()}};
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  std::string form = s.op == "matmul" ? fmt::format(" {}{}", s.ta ? "T" : "N", s.tb ? "T" : "N")
                     : s.grad.empty() ? ""
                                      : " d" + s.grad;
  std::printf("%-12s %s%s %s %s  %.4f ms  %.1f GFLOP/s  %.2f GB/s  (%d runs)\n", session.device().id.c_str(),
              s.op.c_str(), form.c_str(), s.shape.c_str(), s.dtype.c_str(), seconds * 1e3, gflops, gbytes, runs);
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  std::string names;
  for (const auto& [name, build] : ops()) names += (names.empty() ? "" : ", ") + name;
  CLI::App app("Times one op on one device: the median of many runs, each waited for.");
  app.add_option("--device", s.device, "as tutti train takes it");
  app.add_option("--op", s.op, names);
  app.add_option("--shape", s.shape,
                 "matmul: MxNxK or BATCHxMxNxK; conv2d: N,C,H,W,filters,size; others: the input's shape");
  app.add_option("--dtype", s.dtype, "f32, f16 or bf16");
  app.add_flag("--ta", s.ta, "matmul: a is stored transposed");
  app.add_flag("--tb", s.tb, "matmul: b is stored transposed");
  app.add_option("--grad", s.grad, "conv2d, max_pool2d: the gradient by x or w instead")
      ->check(CLI::IsMember({"x", "w"}));
  app.add_option("--stride", s.stride, "conv2d");
  app.add_option("--padding", s.padding, "conv2d; default: size / 2");
  app.add_option("--axis", s.axis, "sum");
  app.add_option("--seconds", s.seconds, "how long to measure");
  app.add_flag("--json", s.json, "print one JSON document");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(s);
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
    return 2;
  }
}

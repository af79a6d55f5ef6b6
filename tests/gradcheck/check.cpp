#include "tests/gradcheck/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops.h"
#include "graph/samples.h"

namespace tutti::test {
namespace {

constexpr size_t most_elements = 2000;

double step_for(double x) { return 1e-5 * std::max(1.0, std::fabs(x)); }

std::string feed_name(const char* kind, size_t i) { return fmt::format("{}{}", kind, i); }

/// A graph with the op's node, a feed for every input and a cotangent feed for every float result.
struct Built {
  Graph graph;
  Values x, y, d;  ///< inputs; results; cotangents of the float results
  std::map<std::string, Tensor> given;
  Built(const Case& c, const OpDef& def) {
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      x.push_back(graph.feed(feed_name("x", i), c.inputs[i].type));
      given.emplace(feed_name("x", i), c.inputs[i]);
    }
    y = graph.add(def, x, c.attrs);
    for (size_t k = 0; k < c.float_results.size(); ++k) {
      d.push_back(graph.feed(feed_name("d", k), c.cotangents[k].type));
      given.emplace(feed_name("d", k), c.cotangents[k]);
    }
  }
};

std::vector<std::vector<double>> values_of(const Built& b, const Values& asked, const Values& like) {
  Values present;
  for (const Value& v : asked)
    if (v) present.push_back(v);
  std::vector<Tensor> got = evaluate(b.graph, b.given, present);
  std::vector<std::vector<double>> out;
  for (size_t i = 0, n = 0; i < asked.size(); ++i)
    out.push_back(asked[i] ? got[n++].at : std::vector<double>(static_cast<size_t>(num_elements(like[i].shape()))));
  return out;
}

struct {
  const OpDef* op = nullptr;
  size_t input = 0;
  double factor = 1;
} broken;

}  // namespace

size_t Case::elements() const {
  size_t n = 0;
  for (const Tensor& x : inputs) n += x.at.size();
  return n;
}

uint64_t seed() {
  const char* text = std::getenv("TUTTI_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}

Case make_case(const OpDef& op, std::vector<Tensor> inputs, const Attrs& attrs, size_t which, const std::string& what) {
  Case c{.op = &op, .attrs = attrs.over(op.attrs), .what = what, .inputs = std::move(inputs)};
  Types types;
  for (const Tensor& x : c.inputs) {
    if (is_float(x.type.dtype)) c.float_inputs.push_back(types.size());
    types.push_back(x.type);
  }
  c.results = infer_types(op, types, c.attrs);
  for (size_t k = 0; k < c.results.size(); ++k) {
    if (!is_float(c.results[k].dtype)) continue;
    c.float_results.push_back(k);
    c.cotangents.push_back(draw_cotangent(op, c.results[k], which, k, seed()));
  }
  return c;
}

std::optional<Case> draw_case(const OpDef& op, size_t which, std::string& why_not) {
  const Sample& sample = op.samples[which];
  Case c = make_case(op, draw(op, sample, which, seed(), DType::f64), sample.attrs, which,
                     fmt::format("{}, sample {}, seed {}", op.name, which, seed()));
  size_t inputs = 0, results = 0;
  bool rounded = false;
  for (size_t i : c.float_inputs) inputs += c.inputs[i].at.size();
  for (const Tensor& d : c.cotangents) {
    results += d.at.size();
    rounded = rounded || d.type.dtype != DType::f64;
  }
  why_not = c.float_inputs.empty()         ? "no float input"
            : c.float_results.empty()      ? "no float result"
            : inputs == 0 || results == 0  ? "no elements"
            : rounded                      ? "a result is rounded below f64: a staircase has no differences"
            : c.elements() > most_elements ? "too many elements"
                                           : "";
  if (!why_not.empty()) return std::nullopt;
  return c;
}

std::vector<Gradient> numeric_gradients(const Case& c) {
  std::vector<Gradient> per_result(c.float_results.size());
  for (Gradient& g : per_result)
    for (size_t i : c.float_inputs) g.emplace_back(c.inputs[i].at.size());
  std::vector<Tensor> x = c.inputs;
  for (size_t n = 0; n < c.float_inputs.size(); ++n) {
    std::vector<double>& at = x[c.float_inputs[n]].at;
    for (size_t e = 0; e < at.size(); ++e) {
      double middle = at[e], up = middle + step_for(middle), down = middle - step_for(middle);
      at[e] = up;
      std::vector<Tensor> high = evaluate(*c.op, x, c.attrs);
      at[e] = down;
      std::vector<Tensor> low = evaluate(*c.op, x, c.attrs);
      at[e] = middle;
      for (size_t k = 0; k < c.float_results.size(); ++k) {
        const std::vector<double>&p = high[c.float_results[k]].at, &q = low[c.float_results[k]].at;
        double total = 0;
        for (size_t j = 0; j < p.size(); ++j) total += (p[j] - q[j]) * c.cotangents[k].at[j];
        per_result[k][n][e] = total / (up - down);
      }
    }
  }
  return per_result;
}

Gradient add_up(const std::vector<Gradient>& per_result, const std::vector<bool>& from) {
  Gradient total = per_result[0];
  for (auto& input : total) std::fill(input.begin(), input.end(), 0);
  for (size_t k = 0; k < per_result.size(); ++k) {
    if (!from[k]) continue;
    for (size_t n = 0; n < total.size(); ++n)
      for (size_t e = 0; e < total[n].size(); ++e) total[n][e] += per_result[k][n][e];
  }
  return total;
}

Gradient rule_gradient(const Case& c, const OpDef& def, const std::vector<bool>& wants, const std::vector<bool>& from) {
  Built b(c, def);
  Values results, seeds, wrt;
  for (size_t k = 0; k < c.float_results.size(); ++k) {
    if (!from[k]) continue;
    results.push_back(b.y[c.float_results[k]]);
    seeds.push_back(b.d[k]);
  }
  for (size_t n = 0; n < c.float_inputs.size(); ++n)
    if (wants[n]) wrt.push_back(b.x[c.float_inputs[n]]);
  auto got = values_of(b, gradients(results, seeds, wrt), wrt);
  Gradient out(c.float_inputs.size());
  for (size_t n = 0, next = 0; n < out.size(); ++n)
    if (wants[n]) out[n] = std::move(got[next++]);
  return out;
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

double relative_error(const std::vector<double>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> apart(got.size());
  for (size_t i = 0; i < got.size(); ++i) apart[i] = got[i] - expected[i];
  return norm(apart) / (norm(expected) + 1e-3);
}

OpDef break_rule(const OpDef& op, size_t input, double factor) {
  broken = {&op, input, factor};
  OpDef copy = op;
  copy.vjp = [](const VjpContext& g) {
    Values v = pull_back(*broken.op, g);
    if (v[broken.input]) v[broken.input] = v[broken.input] * broken.factor;
    return v;
  };
  return copy;
}

std::optional<double> second_order_error(const Case& c, std::string& why_not) {
  Built b(c, *c.op);
  Values results, wrt;
  for (size_t k : c.float_results) results.push_back(b.y[k]);
  for (size_t i : c.float_inputs) wrt.push_back(b.x[i]);
  Values first = gradients(results, b.d, wrt), reached, seeds;
  for (size_t n = 0; n < first.size(); ++n) {
    if (!first[n]) continue;
    reached.push_back(first[n]);
    Tensor r = draw_cotangent(*c.op, first[n].type(), 0, 100 + n, seed());
    seeds.push_back(b.graph.feed(feed_name("r", n), r.type));
    b.given.emplace(feed_name("r", n), r);
  }
  for (const Value& d : b.d) wrt.push_back(d);
  Values second;
  try {
    second = gradients(reached, seeds, wrt);
  } catch (const Error& e) {
    why_not = e.what();
    return std::nullopt;
  }
  auto by_rule = values_of(b, second, wrt);
  double worst = 0;
  for (size_t n = 0; n < wrt.size(); ++n) {
    Tensor& x = b.given.at(b.graph.info(wrt[n].id()).name);
    std::vector<double> numeric(x.at.size());
    for (size_t e = 0; e < x.at.size(); ++e) {
      double middle = x.at[e], up = middle + step_for(middle), down = middle - step_for(middle);
      x.at[e] = up;
      auto high = evaluate(b.graph, b.given, reached);
      x.at[e] = down;
      auto low = evaluate(b.graph, b.given, reached);
      x.at[e] = middle;
      for (size_t k = 0; k < reached.size(); ++k) {
        const Tensor& r = b.given.at(b.graph.info(seeds[k].id()).name);
        for (size_t j = 0; j < r.at.size(); ++j) numeric[e] += (high[k].at[j] - low[k].at[j]) * r.at[j] / (up - down);
      }
    }
    double error = relative_error(by_rule[n], numeric);
    if (!(error <= worst)) worst = error;  // a NaN stays
    if (worst != worst) break;
  }
  return worst;
}

}  // namespace tutti::test

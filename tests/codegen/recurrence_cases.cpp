#include <fmt/format.h>

#include <cmath>

#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

using Numbers = std::vector<double>;
using Call = LaunchList (*)(const Target&, const Recurrence&);

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The inputs of a recurrence and what it gives. `product`: added to the products of the state and the weights.
struct Run {
  Recurrence r;
  int64_t gates;  ///< 4: an LSTM, 3: a GRU
  Array h0, c0, w, b, z, lengths;
  Numbers product;

  Numbers y, c_n, kept, cells;  ///< kept: the gates as the ops keep them, 4 of each cell

  /// All steps, from the inputs.
  void forward() {
    auto steps = static_cast<size_t>(r.steps), n = static_cast<size_t>(r.rows), size = static_cast<size_t>(r.cells);
    auto parts = static_cast<size_t>(gates);
    Numbers h = h0.at, c = c0.at;
    y.assign(steps * n * size, 0);
    cells = y;
    kept.assign(4 * y.size(), 0);
    for (size_t k = 0; k < steps; ++k) {
      size_t t = r.reverse ? steps - 1 - k : k;
      Numbers before = h;
      for (size_t row = 0; row < n; ++row)
        for (size_t j = 0; j < size; ++j) {
          double sum[4] = {}, from_x[4] = {};
          for (size_t g = 0; g < parts; ++g) {
            size_t at = (t * n + row) * parts * size + g * size + j;
            from_x[g] = z.at[at];
            sum[g] = product[at] + (b.at.empty() ? 0 : b.at[g * size + j]);
            for (size_t i = 0; i < size; ++i) sum[g] += before[row * size + i] * w.at[(g * size + j) * size + i];
          }
          size_t e = row * size + j, here = t * n * size + e;
          bool live = lengths.at.empty() || static_cast<double>(t) < lengths.at[row];
          auto keep = [&](size_t g, double v) { return kept[(t * n + row) * 4 * size + g * size + j] = v; };
          if (gates == 4) {
            double in = keep(0, sigmoid(from_x[0] + sum[0])), forget = keep(1, sigmoid(from_x[1] + sum[1]));
            double fresh = keep(2, std::tanh(from_x[2] + sum[2])), out = keep(3, sigmoid(from_x[3] + sum[3]));
            if (live) c[e] = forget * c[e] + in * fresh;
            if (live) h[e] = out * std::tanh(c[e]);
            cells[here] = c[e];
          } else {
            double reset = keep(0, sigmoid(from_x[0] + sum[0])), update = keep(1, sigmoid(from_x[1] + sum[1]));
            double fresh = keep(2, std::tanh(from_x[2] + reset * keep(3, sum[2])));
            if (live) h[e] = (1 - update) * fresh + update * h[e];
          }
          y[here] = h[e];
        }
    }
    c_n = c;
  }
};

Run run_of(const Recurrence& r, int64_t gates) {
  Run x{r, gates, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  int64_t state = r.rows * r.cells, z = r.steps * r.rows * gates * r.cells;
  x.h0 = random(r.dtype, state, -1, 1, 1);
  x.c0 = random(r.dtype, gates == 4 ? state : 0, -1, 1, 2);
  double bound = 2 / std::sqrt(static_cast<double>(r.cells));
  x.w = random(r.dtype, gates * r.cells * r.cells, -bound, bound, 3);
  x.b = random(r.dtype, gates == 3 ? 3 * r.cells : 0, -1, 1, 4);
  x.z = random(r.dtype, z, -2, 2, 5);
  x.lengths = random(DType::i32, r.lengths ? r.rows : 0, 1, static_cast<double>(r.steps) + 1, 6);
  x.product.assign(static_cast<size_t>(z), 0);
  x.forward();
  return x;
}

Array rounded(DType t, Numbers x) {
  for (double& v : x) v = round_to(t, v);
  return {t, std::move(x)};
}

Case case_of(const std::string& what, const Recurrence& r, Call make) {
  Case c;
  c.name = fmt::format("{} {}x{}x{}{}{} {}", what, r.steps, r.rows, r.cells, r.reverse ? " reverse" : "",
                       r.lengths ? " lengths" : "", name(r.dtype));
  c.make = [=](const Target& t) { return make(t, r); };
  c.relative = r.dtype == DType::f32 ? 1e-5 : r.dtype == DType::f16 ? 2e-3 : 1e-2;
  c.absolute = r.dtype == DType::f32 ? 5e-6 : r.dtype == DType::f16 ? 1e-5 : 1e-4;
  return c;
}

/// The same with the result in the memory of an input, which is copied there first.
Case in_place(Case c, Recurrence r, Call make, int input, int result) {
  c.name += " in place";
  r.in_place = true;
  auto n = static_cast<int64_t>(c.inputs[static_cast<size_t>(input)].at.size());
  c.make = [=](const Target& t) {
    LaunchList all = copy(t, broadcast_copy({DType::f32, {n}}, {n})), work = make(t, r);
    all.launches.at(0).buffers = {input, result};
    work.launches.insert(work.launches.begin(), all.launches.begin(), all.launches.end());
    return work;
  };
  return c;
}

/// Keeps the results that somebody reads.
void expect(Case& c, const Recurrence& r, const std::vector<Array>& results) {
  for (size_t k = 0; k < results.size(); ++k) {
    if (r.wanted[k]) c.expected.push_back(results[k]);
    if (!r.wanted[k]) c.name += fmt::format(" without {}", k);
  }
}

Case forward(Recurrence r, int64_t gates, size_t absent = SIZE_MAX) {
  r.wanted.assign(gates == 4 ? 4 : 2, true);
  if (absent < r.wanted.size()) r.wanted[absent] = false;
  Run x = run_of(r, gates);
  Case c = case_of(gates == 4 ? "lstm" : "gru", r, gates == 4 ? lstm : gru);
  c.inputs = gates == 4 ? std::vector<Array>{x.h0, x.c0, x.w, x.z} : std::vector<Array>{x.h0, x.w, x.b, x.z};
  if (r.lengths) c.inputs.push_back(x.lengths);
  Array y = rounded(r.dtype, x.y), kept = rounded(DType::f32, x.kept);
  if (gates == 4)
    expect(c, r, {y, rounded(r.dtype, x.c_n), kept, rounded(DType::f32, x.cells)});
  else
    expect(c, r, {y, kept});
  return c;
}

/// The gradient of sum(dy * y) + sum(dc * c_n), by differences.
Case gradient(Recurrence r, int64_t gates) {
  r.wanted.assign(3, true);
  Run x = run_of(r, gates);
  const Numbers cells = x.cells, kept = x.kept, y = x.y;
  Array dy = random(r.dtype, static_cast<int64_t>(y.size()), -1, 1, 7),
        dc = random(r.dtype, static_cast<int64_t>(x.c0.at.size()), -1, 1, 8);
  auto loss = [&] {
    x.forward();
    double sum = 0;
    for (size_t i = 0; i < dy.at.size(); ++i) sum += dy.at[i] * x.y[i];
    for (size_t i = 0; i < dc.at.size(); ++i) sum += dc.at[i] * x.c_n[i];
    return sum;
  };
  auto of = [&](Numbers& v) {
    Numbers d;
    for (double& e : v) {
      double at = e, step = 1e-5;
      e = at + step;
      double above = loss();
      e = at - step;
      d.push_back((above - loss()) / (2 * step));
      e = at;
    }
    return rounded(r.dtype, d);
  };
  Case c = case_of(gates == 4 ? "lstm_dx" : "gru_dx", r, gates == 4 ? lstm_dx : gru_dx);
  Array of_h0 = of(x.h0.at), of_z = of(x.z.at);
  if (gates == 4) {
    c.inputs = {x.c0, x.w, rounded(DType::f32, kept), rounded(DType::f32, cells), dy, dc};
    expect(c, r, {of_h0, of(x.c0.at), of_z});
  } else {
    c.inputs = {x.h0, x.w, rounded(DType::f32, kept), rounded(r.dtype, y), dy};
    expect(c, r, {of_h0, of_z, of(x.product)});
    // The kernel reads the states before a step as y keeps them.
    if (r.dtype != DType::f32) c.absolute *= 100;
  }
  if (r.lengths) c.inputs.push_back(x.lengths);
  return c;
}

}  // namespace

std::vector<Case> recurrence_cases() {
  std::vector<Case> all;
  for (int64_t gates : {4, 3}) {
    for (const Recurrence& r : {Recurrence{DType::f32, 3, 2, 5, false, false, false, {}},
                                Recurrence{DType::f32, 1, 1, 1, true, false, false, {}},
                                Recurrence{DType::f32, 4, 7, 20, true, true, false, {}},
                                Recurrence{DType::f32, 3, 50, 3, false, true, false, {}},
                                Recurrence{DType::f32, 2, 2, 70, true, false, false, {}},
                                Recurrence{DType::f16, 3, 3, 17, false, true, false, {}},
                                Recurrence{DType::bf16, 3, 3, 17, true, false, false, {}}}) {
      all.push_back(forward(r, gates));
      all.push_back(gradient(r, gates));
    }
    Recurrence r{DType::f32, 3, 4, 16, false, true, false, {}};
    for (size_t absent = 0; absent < 4; ++absent) all.push_back(forward(r, gates, absent));
    if (gates == 4) {
      r.wanted.assign(4, true);
      all.push_back(in_place(forward(r, 4), r, lstm, 3, 5 + 2));
      r.wanted.assign(3, true);
      all.push_back(in_place(gradient(r, 4), r, lstm_dx, 2, 7 + 2));
    }
    all.push_back(forward({DType::f32, 2, 0, 4, false, false, false, {}}, gates));
    all.push_back(forward({DType::bf16, 2, 3, 260, false, false, false, {}}, gates));  // more than a group keeps of K
  }
  return all;
}

}  // namespace tutti::codegen::cases

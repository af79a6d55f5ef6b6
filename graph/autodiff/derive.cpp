// Derives gradients for ops without a rule: differentiates an elementwise op's scalar expression instruction by
// instruction (reverse mode) and expresses the derivative in public ops.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/instr.h"
#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/functions/elementwise.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/abs.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/cos.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/erf.h"
#include "graph/ops/exp.h"
#include "graph/ops/expm1.h"
#include "graph/ops/floor.h"
#include "graph/ops/fmod.h"
#include "graph/ops/less.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/log.h"
#include "graph/ops/log1p.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/logical_or.h"
#include "graph/ops/maximum.h"
#include "graph/ops/minimum.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/pow.h"
#include "graph/ops/rsqrt.h"
#include "graph/ops/select.h"
#include "graph/ops/sign.h"
#include "graph/ops/sin.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/ops/tanh.h"

namespace tutti {
namespace {

class Lifted;

/// One instruction expressed in public ops: its operands, its value and, for gradient rules, its cotangent.
struct Step {
  Lifted& at;
  const Expr& e;
  uint32_t own;
  Value d = {};
  const TuttiInstr& i() const { return e.code[own]; }
  Value a() const;
  Value b() const;
  Value c() const;
  Value y() const;
};
using S = const Step&;

/// The value of an instruction in public ops, and the gradients of its operands; null: zero almost everywhere.
struct Rule {
  Value (*lift)(S) = nullptr;
  Value (*da)(S) = nullptr, (*db)(S) = nullptr, (*dc)(S) = nullptr;
};

/// The gradient of one operand of MIN and MAX: equal operands share the gradient; if one is NaN both get it, as in
/// PyTorch.
Value share(S s, uint32_t own, uint32_t other);

const Rule& rule_of(uint16_t code) {
  static const auto rules = [] {
    std::array<Rule, instr::count> r;
    auto d = [](S s) { return s.d; };
    auto share_a = [](S s) { return share(s, s.i().a, s.i().b); };
    auto share_b = [](S s) { return share(s, s.i().b, s.i().a); };
    r[TUTTI_X_ADD] = {[](S s) { return s.a() + s.b(); }, d, d};
    r[TUTTI_X_SUB] = {[](S s) { return s.a() - s.b(); }, d, [](S s) { return -s.d; }};
    r[TUTTI_X_MUL] = {[](S s) { return s.a() * s.b(); }, [](S s) { return s.d * s.b(); },
                      [](S s) { return s.d * s.a(); }};
    r[TUTTI_X_DIV] = {[](S s) { return s.a() / s.b(); }, [](S s) { return s.d / s.b(); },
                      [](S s) { return -(s.d * s.y() / s.b()); }};
    r[TUTTI_X_NEG] = {[](S s) { return -s.a(); }, [](S s) { return -s.d; }};
    r[TUTTI_X_ABS] = {[](S s) { return abs(s.a()); }, [](S s) { return s.d * sign(s.a()); }};
    r[TUTTI_X_MIN] = {[](S s) { return minimum(s.a(), s.b()); }, share_a, share_b};
    r[TUTTI_X_MAX] = {[](S s) { return maximum(s.a(), s.b()); }, share_a, share_b};
    r[TUTTI_X_SQRT] = {[](S s) { return sqrt(s.a()); }, [](S s) { return s.d * 0.5 / s.y(); }};
    r[TUTTI_X_RSQRT] = {[](S s) { return rsqrt(s.a()); }, [](S s) { return s.d * -0.5 * s.y() * (s.y() * s.y()); }};
    r[TUTTI_X_EXP] = {[](S s) { return exp(s.a()); }, [](S s) { return s.d * s.y(); }};
    r[TUTTI_X_EXPM1] = {[](S s) { return expm1(s.a()); }, [](S s) { return s.d * (s.y() + 1); }};
    r[TUTTI_X_LOG] = {[](S s) { return log(s.a()); }, [](S s) { return s.d / s.a(); }};
    r[TUTTI_X_LOG1P] = {[](S s) { return log1p(s.a()); }, [](S s) { return s.d / (s.a() + 1); }};
    r[TUTTI_X_TANH] = {[](S s) { return tanh(s.a()); }, [](S s) { return s.d * (1 - s.y() * s.y()); }};
    r[TUTTI_X_ERF] = {[](S s) { return erf(s.a()); },
                      [](S s) { return s.d * 1.1283791670955126 * exp(-(s.a() * s.a())); }};
    r[TUTTI_X_SIN] = {[](S s) { return sin(s.a()); }, [](S s) { return s.d * cos(s.a()); }};
    r[TUTTI_X_COS] = {[](S s) { return cos(s.a()); }, [](S s) { return -(s.d * sin(s.a())); }};
    // d/da = b a^(b-1), 0 where b is 0; d/db = a^b ln a, 0 where a is 0 and b is not below 0
    r[TUTTI_X_POW] = {
        [](S s) { return pow(s.a(), s.b()); },
        [](S s) { return select(equal(s.b(), s.b().like(0)), s.d.like(0), s.d * (s.b() * pow(s.a(), s.b() - 1))); },
        [](S s) {
          Value zero = logical_and(equal(s.a(), s.a().like(0)), less_equal(s.b().like(0), s.b()));
          return s.d * (s.y() * log(select(zero, s.a().like(1), s.a())));
        }};
    r[TUTTI_X_FMOD] = {[](S s) { return fmod(s.a(), s.b()); }, [](S s) { return s.d; },
                       [](S s) { return -(s.d * trunc(s.a() / s.b())); }};
    r[TUTTI_X_FLOOR] = {[](S s) { return floor(s.a()); }};
    r[TUTTI_X_LESS] = {[](S s) { return less(s.a(), s.b()); }};
    r[TUTTI_X_LESS_EQUAL] = {[](S s) { return less_equal(s.a(), s.b()); }};
    r[TUTTI_X_EQUAL] = {[](S s) { return equal(s.a(), s.b()); }};
    r[TUTTI_X_NOT] = {[](S s) { return logical_not(s.a()); }};
    r[TUTTI_X_AND] = {[](S s) { return logical_and(s.a(), s.b()); }};
    r[TUTTI_X_OR] = {[](S s) { return logical_or(s.a(), s.b()); }};
    r[TUTTI_X_SELECT] = {[](S s) { return select(s.a(), s.b(), s.c()); }, nullptr,
                         [](S s) { return select(s.a(), s.d, s.d.like(0)); },
                         [](S s) { return select(s.a(), s.d.like(0), s.d); }};
    r[TUTTI_X_CAST] = {[](S s) { return cast(s.a(), static_cast<DType>(s.i().dtype)); },
                       [](S s) { return cast(s.d, static_cast<DType>(s.e.code[s.i().a].dtype)); }};
    return r;
  }();
  static const Rule none;
  return code < rules.size() ? rules[code] : none;
}

/// The value of every instruction in public ops, created on first use.
class Lifted {
 public:
  /// `reuse`: reads the results of the forward pass instead of recomputing them.
  Lifted(const Expr& e, const VjpContext& g, bool reuse) : e_(e), g_(g), values_(e.code.size()) {
    for (const TuttiInstr& i : e.code)
      if (reuse && i.code == TUTTI_X_RESULT) values_[i.a] = g.out[i.b];
  }
  Value operator[](uint32_t at) {
    if (!values_[at]) values_[at] = make(at);
    return values_[at];
  }

 private:
  Value make(uint32_t at) {
    const TuttiInstr& i = e_.code[at];
    if (i.code == TUTTI_X_INPUT) return g_.in[i.a];
    if (i.code == TUTTI_X_CONST) return g_.graph.full(static_cast<DType>(i.dtype), constant_of(i));
    if (auto lift = rule_of(i.code).lift) return lift({*this, e_, at});
    throw invalid(
        fmt::format("the instruction '{}' cannot be differentiated: it has no corresponding op", instr_name(i.code)),
        "define a gradient rule for the op");
  }

  const Expr& e_;
  const VjpContext& g_;
  Values values_;
};

Value Step::a() const { return at[i().a]; }
Value Step::b() const { return at[i().b]; }
Value Step::c() const { return at[i().c]; }
Value Step::y() const { return at[own]; }

Value share(S s, uint32_t own, uint32_t other) {
  Value loses = s.i().code == TUTTI_X_MIN ? less(s.at[other], s.at[own]) : less(s.at[own], s.at[other]);
  return select(loses, s.d.like(0), select(equal(s.at[own], s.at[other]), s.d * 0.5, s.d));
}

/// Which instructions depend on a wanted input through floats only.
std::vector<bool> active(const Expr& e, const std::vector<bool>& wants) {
  std::vector<bool> on(e.code.size());
  for (size_t k = 0; k < e.code.size(); ++k) {
    const TuttiInstr& i = e.code[k];
    if (!is_float(static_cast<DType>(i.dtype))) continue;
    if (i.code == TUTTI_X_INPUT) {
      on[k] = wants[i.a];
      continue;
    }
    int n = operand_count(i.code);
    on[k] = (n > 0 && on[i.a]) || (n > 1 && on[i.b]) || (n > 2 && on[i.c]);
  }
  return on;
}

/// One gradient per input, with the shape of the result.
Values derive(const OpDef& op, const VjpContext& g, bool reuse) {
  std::vector<DType> dtypes;
  for (const Value& v : g.in) dtypes.push_back(v.dtype());
  Expr e = expr_of(op, dtypes, g.a);
  Lifted at(e, g, reuse);
  std::vector<bool> on = active(e, g.wants);
  Values d(e.code.size());
  auto give = [&](uint32_t to, auto&& make) {
    if (!on[to]) return;
    Value v = make();
    d[to] = d[to] ? d[to] + v : v;
  };
  for (uint32_t k = static_cast<uint32_t>(e.code.size()); k-- > 0;) {
    const TuttiInstr& i = e.code[k];
    if (i.code == TUTTI_X_RESULT) {
      if (g.d[i.b]) give(i.a, [&] { return g.d[i.b]; });
      continue;
    }
    if (!d[k]) continue;
    const Rule& rule = rule_of(i.code);
    Step step{at, e, k, d[k]};
    if (rule.da) give(i.a, [&] { return rule.da(step); });
    if (rule.db) give(i.b, [&] { return rule.db(step); });
    if (rule.dc) give(i.c, [&] { return rule.dc(step); });
  }
  Values out(g.in.size());
  for (uint32_t k = 0; k < e.code.size(); ++k)
    if (e.code[k].code == TUTTI_X_INPUT) out[e.code[k].a] = d[k];
  return out;
}

}  // namespace

Values derive_from_expr(const OpDef& op, const VjpContext& g) {
  bool reuse = std::none_of(g.out.begin(), g.out.end(), holds_narrow);
  Values d = rounded_once([&](const VjpContext& p) { return derive(op, p, reuse); }, g);
  for (size_t k = 0; k < d.size(); ++k)
    if (d[k]) d[k] = sum_to(d[k], g.in[k].shape());
  return d;
}

Values derive_from_decomposition(const OpDef& op, const VjpContext& g) {
  size_t first = g.graph.nodes().size();  // paths from one input to another do not belong to this node's gradient
  Values out = op.decompose({g.graph, g.in, g.a}), wrt, seeds, results;
  for (size_t k = 0; k < out.size(); ++k) {
    if (!g.d[k]) continue;
    results.push_back(out[k]);
    seeds.push_back(g.d[k]);
  }
  std::vector<size_t> asked;  // a value that is passed as two inputs is requested once
  for (size_t k = 0; k < g.in.size(); ++k) {
    if (!g.wants[k] || std::find(wrt.begin(), wrt.end(), g.in[k]) != wrt.end()) continue;
    wrt.push_back(g.in[k]);
    asked.push_back(k);
  }
  Values got = gradients(results, seeds, wrt, Unreached::null, first), all(g.in.size());
  for (size_t n = 0; n < asked.size(); ++n) all[asked[n]] = got[n];
  return all;
}

Values pull_back(const OpDef& op, const VjpContext& g) {
  if (op.vjp) return op.vjp(g);
  if (op.expr) return derive_from_expr(op, g);
  if (op.decompose) return derive_from_decomposition(op, g);
  throw invalid(fmt::format("{}: this op has no gradient", op.name), "do not differentiate through it");
}

}  // namespace tutti

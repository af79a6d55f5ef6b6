// Gradients that no rule gives: an elementwise op's scalar expression is differentiated instruction by instruction
// (reverse mode) and the derivative is written in public ops.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
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

/// The value of every instruction in public ops, made when it is first asked for.
class Lifted {
 public:
  /// `reuse`: what the forward pass computed is read again.
  Lifted(const Expr& e, const VjpContext& g, bool reuse) : e_(e), g_(g), values_(e.code.size()) {
    for (const TuttiInstr& i : e.code)
      if (reuse && i.code == TUTTI_X_RESULT) values_[i.a] = g.out[i.b];
  }
  Value operator[](uint32_t at) {
    if (!values_[at]) values_[at] = make(e_.code[at]);
    return values_[at];
  }

 private:
  Value make(const TuttiInstr& i) {
    auto a = [&] { return (*this)[i.a]; };
    auto b = [&] { return (*this)[i.b]; };
    switch (i.code) {
      case TUTTI_X_INPUT: return g_.in[i.a];
      case TUTTI_X_CONST: return g_.graph.full(static_cast<DType>(i.dtype), constant_of(i));
      case TUTTI_X_ADD: return a() + b();
      case TUTTI_X_SUB: return a() - b();
      case TUTTI_X_MUL: return a() * b();
      case TUTTI_X_DIV: return a() / b();
      case TUTTI_X_NEG: return -a();
      case TUTTI_X_ABS: return abs(a());
      case TUTTI_X_MIN: return minimum(a(), b());
      case TUTTI_X_MAX: return maximum(a(), b());
      case TUTTI_X_SQRT: return sqrt(a());
      case TUTTI_X_RSQRT: return rsqrt(a());
      case TUTTI_X_EXP: return exp(a());
      case TUTTI_X_EXPM1: return expm1(a());
      case TUTTI_X_LOG: return log(a());
      case TUTTI_X_LOG1P: return log1p(a());
      case TUTTI_X_TANH: return tanh(a());
      case TUTTI_X_ERF: return erf(a());
      case TUTTI_X_SIN: return sin(a());
      case TUTTI_X_COS: return cos(a());
      case TUTTI_X_POW: return pow(a(), b());
      case TUTTI_X_FLOOR: return floor(a());
      case TUTTI_X_LESS: return less(a(), b());
      case TUTTI_X_LESS_EQUAL: return less_equal(a(), b());
      case TUTTI_X_EQUAL: return equal(a(), b());
      case TUTTI_X_NOT: return logical_not(a());
      case TUTTI_X_AND: return logical_and(a(), b());
      case TUTTI_X_OR: return logical_or(a(), b());
      case TUTTI_X_SELECT: return select(a(), b(), (*this)[i.c]);
      case TUTTI_X_CAST: return cast(a(), static_cast<DType>(i.dtype));
      default:
        throw invalid(fmt::format("no public op for the instruction '{}'", instr_name(i.code)),
                      "give the op a gradient rule of its own");
    }
  }

  const Expr& e_;
  const VjpContext& g_;
  Values values_;
};

/// Which instructions depend on a wanted input through floats alone.
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

/// One gradient per input, of the result's shape.
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
    Value c = d[k];
    if (!c) continue;
    uint32_t a = i.a, b = i.b;
    switch (i.code) {
      case TUTTI_X_ADD:
        give(a, [&] { return c; });
        give(b, [&] { return c; });
        break;
      case TUTTI_X_SUB:
        give(a, [&] { return c; });
        give(b, [&] { return -c; });
        break;
      case TUTTI_X_MUL:
        give(a, [&] { return c * at[b]; });
        give(b, [&] { return c * at[a]; });
        break;
      case TUTTI_X_DIV:
        give(a, [&] { return c / at[b]; });
        give(b, [&] { return -(c * at[k] / at[b]); });
        break;
      case TUTTI_X_NEG: give(a, [&] { return -c; }); break;
      case TUTTI_X_ABS: give(a, [&] { return c * sign(at[a]); }); break;
      case TUTTI_X_MIN:
      case TUTTI_X_MAX: {  // equal operands share the gradient; beside a NaN both get it, as in PyTorch
        auto share = [&](uint32_t own, uint32_t other) {
          Value loses = i.code == TUTTI_X_MIN ? less(at[other], at[own]) : less(at[own], at[other]);
          return select(loses, c.like(0), select(equal(at[own], at[other]), c * 0.5, c));
        };
        give(a, [&] { return share(a, b); });
        give(b, [&] { return share(b, a); });
        break;
      }
      case TUTTI_X_SQRT: give(a, [&] { return c * 0.5 / at[k]; }); break;
      case TUTTI_X_RSQRT: give(a, [&] { return c * -0.5 * at[k] * (at[k] * at[k]); }); break;
      case TUTTI_X_EXP: give(a, [&] { return c * at[k]; }); break;
      case TUTTI_X_EXPM1: give(a, [&] { return c * (at[k] + 1); }); break;
      case TUTTI_X_LOG: give(a, [&] { return c / at[a]; }); break;
      case TUTTI_X_LOG1P: give(a, [&] { return c / (at[a] + 1); }); break;
      case TUTTI_X_TANH: give(a, [&] { return c * (1 - at[k] * at[k]); }); break;
      case TUTTI_X_ERF: give(a, [&] { return c * 1.1283791670955126 * exp(-(at[a] * at[a])); }); break;
      case TUTTI_X_SIN: give(a, [&] { return c * cos(at[a]); }); break;
      case TUTTI_X_COS: give(a, [&] { return -(c * sin(at[a])); }); break;
      case TUTTI_X_POW:  // d/da = b a^(b-1), 0 where b is 0; d/db = a^b ln a, 0 where a is 0 and b is not below 0
        give(a, [&] { return select(equal(at[b], at[b].like(0)), c.like(0), c * (at[b] * pow(at[a], at[b] - 1))); });
        give(b, [&] {
          Value zero = logical_and(equal(at[a], at[a].like(0)), less_equal(at[b].like(0), at[b]));
          return c * (at[k] * log(select(zero, at[a].like(1), at[a])));
        });
        break;
      case TUTTI_X_SELECT:
        give(b, [&] { return select(at[a], c, c.like(0)); });
        give(i.c, [&] { return select(at[a], c.like(0), c); });
        break;
      case TUTTI_X_CAST: give(a, [&] { return cast(c, static_cast<DType>(e.code[a].dtype)); }); break;
      default: break;  // FLOOR, comparisons: zero almost everywhere
    }
  }
  Values out(g.in.size());
  for (uint32_t k = 0; k < e.code.size(); ++k)
    if (e.code[k].code == TUTTI_X_INPUT) out[e.code[k].a] = d[k];
  return out;
}

}  // namespace

Values derive_from_expr(const OpDef& op, const VjpContext& g) {
  bool reuse = std::none_of(g.out.begin(), g.out.end(), is_narrow);
  Values d = rounded_once([&](const VjpContext& p) { return derive(op, p, reuse); }, g);
  for (size_t k = 0; k < d.size(); ++k)
    if (d[k]) d[k] = sum_to(d[k], g.in[k].shape());
  return d;
}

Values pull_back(const OpDef& op, const VjpContext& g) {
  if (op.vjp) return op.vjp(g);
  if (op.expr) return derive_from_expr(op, g);
  if (!op.decompose)
    throw invalid(fmt::format("{}: this op has no gradient", op.name), "do not differentiate through it");
  Values out = op.decompose({g.graph, g.in, g.a}), wrt, seeds, results;
  for (size_t k = 0; k < out.size(); ++k) {
    if (!g.d[k]) continue;
    results.push_back(out[k]);
    seeds.push_back(g.d[k]);
  }
  for (size_t k = 0; k < g.in.size(); ++k)
    if (g.wants[k]) wrt.push_back(g.in[k]);
  Values got = gradients(results, seeds, wrt), all(g.in.size());
  for (size_t k = 0, n = 0; k < g.in.size(); ++k)
    if (g.wants[k]) all[k] = got[n++];
  return all;
}

}  // namespace tutti

#include "graph/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/status.h"

namespace tutti {
namespace {

constexpr size_t block = 256;

double wrap(DType t, double x) {  // integer arithmetic is modulo 2^bits
  switch (t) {
    case DType::i32: return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(x)));
    case DType::u32: return static_cast<uint32_t>(static_cast<int64_t>(x));
    case DType::u8: return static_cast<uint8_t>(static_cast<int64_t>(x));
    default: return x;
  }
}

double integer_div(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }

double multiply_integers(DType t, double a, double b) {
  auto p = static_cast<uint64_t>(static_cast<int64_t>(a)) * static_cast<uint64_t>(static_cast<int64_t>(b));
  if (t == DType::i64) return static_cast<double>(static_cast<int64_t>(p));
  if (t == DType::i32) return static_cast<int32_t>(static_cast<uint32_t>(p));
  if (t == DType::u8) return static_cast<uint8_t>(p);
  return static_cast<uint32_t>(p);
}

template <class F>
void apply(F f, double* y, const double* a, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = f(a[i]);
}
template <class F>
void apply(F f, double* y, const double* a, const double* b, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

uint64_t bits(double x) { return static_cast<uint64_t>(static_cast<int64_t>(x)); }

/// Runs one instruction over n elements, in float64 (integers: in the arithmetic of their dtype).
void run(const TuttiInstr& i, double* y, const double* a, const double* b, const double* c, size_t n) {
  auto t = static_cast<DType>(i.dtype);
  bool whole = is_integer(t);
  switch (i.code) {
    case TUTTI_X_ADD: return apply([&](double p, double q) { return whole ? wrap(t, p + q) : p + q; }, y, a, b, n);
    case TUTTI_X_SUB: return apply([&](double p, double q) { return whole ? wrap(t, p - q) : p - q; }, y, a, b, n);
    case TUTTI_X_MUL:
      return apply([&](double p, double q) { return whole ? multiply_integers(t, p, q) : p * q; }, y, a, b, n);
    case TUTTI_X_DIV:
      return apply([&](double p, double q) { return whole ? wrap(t, integer_div(p, q)) : p / q; }, y, a, b, n);
    case TUTTI_X_NEG: return apply([&](double p) { return whole ? wrap(t, -p) : -p; }, y, a, n);
    case TUTTI_X_ABS: return apply([&](double p) { return whole ? wrap(t, std::fabs(p)) : std::fabs(p); }, y, a, n);
    case TUTTI_X_MIN:
      return apply([](double p, double q) { return p != p ? p : q != q ? q : std::min(p, q); }, y, a, b, n);
    case TUTTI_X_MAX:
      return apply([](double p, double q) { return p != p ? p : q != q ? q : std::max(p, q); }, y, a, b, n);
    case TUTTI_X_SQRT: return apply([](double p) { return std::sqrt(p); }, y, a, n);
    case TUTTI_X_RSQRT: return apply([](double p) { return 1 / std::sqrt(p); }, y, a, n);
    case TUTTI_X_EXP: return apply([](double p) { return std::exp(p); }, y, a, n);
    case TUTTI_X_EXPM1: return apply([](double p) { return std::expm1(p); }, y, a, n);
    case TUTTI_X_LOG: return apply([](double p) { return std::log(p); }, y, a, n);
    case TUTTI_X_LOG1P: return apply([](double p) { return std::log1p(p); }, y, a, n);
    case TUTTI_X_TANH: return apply([](double p) { return std::tanh(p); }, y, a, n);
    case TUTTI_X_ERF: return apply([](double p) { return std::erf(p); }, y, a, n);
    case TUTTI_X_SIN: return apply([](double p) { return std::sin(p); }, y, a, n);
    case TUTTI_X_COS: return apply([](double p) { return std::cos(p); }, y, a, n);
    case TUTTI_X_POW: return apply([](double p, double q) { return std::pow(p, q); }, y, a, b, n);
    case TUTTI_X_FMOD: return apply([](double p, double q) { return std::fmod(p, q); }, y, a, b, n);
    case TUTTI_X_FLOOR: return apply([](double p) { return std::floor(p); }, y, a, n);
    case TUTTI_X_LESS: return apply([](double p, double q) { return p < q; }, y, a, b, n);
    case TUTTI_X_LESS_EQUAL: return apply([](double p, double q) { return p <= q; }, y, a, b, n);
    case TUTTI_X_EQUAL: return apply([](double p, double q) { return p == q; }, y, a, b, n);
    case TUTTI_X_NOT: return apply([](double p) { return p == 0; }, y, a, n);
    case TUTTI_X_AND:
      return apply([&](double p, double q) { return round_to(t, double(int64_t(bits(p) & bits(q)))); }, y, a, b, n);
    case TUTTI_X_OR:
      return apply([&](double p, double q) { return round_to(t, double(int64_t(bits(p) | bits(q)))); }, y, a, b, n);
    case TUTTI_X_XOR:
      return apply([&](double p, double q) { return round_to(t, double(int64_t(bits(p) ^ bits(q)))); }, y, a, b, n);
    case TUTTI_X_SHL:
      return apply([&](double p, double q) { return wrap(t, double(int64_t(bits(p) << (bits(q) & 31)))); }, y, a, b, n);
    case TUTTI_X_SHR: return apply([](double p, double q) { return std::floor(std::ldexp(p, -int(q))); }, y, a, b, n);
    case TUTTI_X_SELECT:
      for (size_t k = 0; k < n; ++k) y[k] = a[k] != 0 ? b[k] : c[k];
      return;
    case TUTTI_X_CAST: return apply([&](double p) { return round_to(t, p); }, y, a, n);
    default: throw Error(Code::internal, fmt::format("unknown instruction {}", i.code));
  }
}

/// Reads a broadcast input in the row-major order of the result.
class BroadcastReader {
 public:
  BroadcastReader(const Tensor& x, const Shape& to)
      : x_(x), shape_(to), step_(broadcast_strides(x.shape(), to)), index_(to.size()) {}
  void next(double* into, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      into[i] = x_.at[static_cast<size_t>(at_)];
      for (size_t d = index_.size(); d-- > 0;) {
        at_ += step_[d];
        if (++index_[d] < shape_[d]) break;
        at_ -= step_[d] * index_[d];
        index_[d] = 0;
      }
    }
  }

 private:
  const Tensor& x_;
  const Shape& shape_;
  Shape step_, index_;
  int64_t at_ = 0;
};

void evaluate_expr(const Expr& e, std::span<const Tensor> in, std::span<Tensor> out, bool exact,
                   ExactInstruction instruction = nullptr) {
  size_t total = out[0].at.size();
  std::vector<BroadcastReader> walks;
  for (const Tensor& x : in) walks.emplace_back(x, out[0].shape());
  std::vector<std::vector<double>> r(e.code.size(), std::vector<double>(block));
  for (size_t start = 0; start < total; start += block) {
    size_t n = std::min(block, total - start);
    for (size_t k = 0; k < e.code.size(); ++k) {
      const TuttiInstr& i = e.code[k];
      if (i.code == TUTTI_X_INPUT) {
        walks[i.a].next(r[k].data(), n);
        continue;
      }
      if (i.code == TUTTI_X_RESULT) {
        std::copy_n(r[i.a].data(), n, out[i.b].at.data() + start);
        continue;
      }
      if (i.code == TUTTI_X_CONST) {
        double x = constant_of(i);
        std::fill_n(r[k].data(), n,
                    exact || !is_float(static_cast<DType>(i.dtype)) ? round_to(static_cast<DType>(i.dtype), x) : x);
        continue;
      }
      int operands = operand_count(i.code);
      const double *a = r[i.a].data(), *b = operands > 1 ? r[i.b].data() : nullptr;
      if (instruction && i.dtype == TUTTI_F32 && instruction(i.code, r[k].data(), a, b, n)) continue;
      run(i, r[k].data(), a, b, operands > 2 ? r[i.c].data() : nullptr, n);
      if (exact)
        for (size_t j = 0; j < n; ++j) r[k][j] = round_to(static_cast<DType>(i.dtype), r[k][j]);
    }
  }
}

void round_results(std::vector<Tensor>& out) {
  for (Tensor& y : out)
    if (y.type.dtype != DType::f64)
      for (double& x : y.at) x = round_to(y.type.dtype, x);
}

void evaluate_into(const OpDef& op, std::span<const Tensor> in, std::vector<Tensor>& out, const Attrs& a) {
  if (op.expr) {
    std::vector<DType> dtypes;
    for (const Tensor& x : in) dtypes.push_back(x.type.dtype);
    return evaluate_expr(expr_of(op, dtypes, a), in, out, op.exact);
  }
  if (op.reference) return op.reference(in, out, a);
  Graph g;
  Values feeds;
  std::map<std::string, Tensor> given;
  for (size_t i = 0; i < in.size(); ++i) {
    feeds.push_back(g.feed(fmt::format("x{}", i), in[i].type));
    given.emplace(fmt::format("x{}", i), in[i]);
  }
  out = evaluate(g, given, op.decompose({g, feeds, a}));
}

}  // namespace

std::vector<Tensor> evaluate(const Expr& e, std::span<const Tensor> in, const Shape& shape, bool exact,
                             ExactInstruction instruction) {
  std::vector<Tensor> out;
  for (DType t : e.results) out.emplace_back(TensorType{t, shape});
  evaluate_expr(e, in, out, exact, instruction);
  round_results(out);
  return out;
}

std::vector<Tensor> evaluate(const OpDef& op, std::span<const Tensor> in, const Attrs& a) {
  std::vector<TensorType> types;
  for (const Tensor& x : in) types.push_back(x.type);
  std::vector<Tensor> out;
  for (const TensorType& t : infer_types(op, types, a)) out.emplace_back(t);
  evaluate_into(op, in, out, a);
  round_results(out);
  return out;
}

std::vector<Tensor> evaluate(const Graph& g, const std::map<std::string, Tensor>& inputs, const Values& outputs) {
  std::vector<bool> needed(g.values().size());
  for (const Value& v : outputs) needed[v.id()] = true;
  for (size_t k = g.nodes().size(); k-- > 0;) {
    const Node& n = g.nodes()[k];
    if (std::any_of(n.results.begin(), n.results.end(), [&](ValueId r) { return r != no_id && needed[r]; }))
      for (ValueId i : n.inputs) needed[i] = true;
  }
  std::vector<Tensor> at(g.values().size());
  for (ValueId id = 0; id < at.size(); ++id) {
    const ValueInfo& v = g.info(id);
    if (!needed[id] || v.role == Role::temp) continue;
    if (v.role == Role::constant) {
      at[id] = tensor_from(v.type, v.data.data());
      continue;
    }
    auto it = inputs.find(v.name);
    if (it == inputs.end()) throw invalid(fmt::format("evaluate: no tensor for '{}'", v.name));
    if (it->second.type != v.type)
      throw invalid(
          fmt::format("evaluate: '{}' is {}, given {}", v.name, to_string(v.type), to_string(it->second.type)));
    at[id] = it->second;
  }
  for (const Node& n : g.nodes()) {
    if (std::none_of(n.results.begin(), n.results.end(), [&](ValueId r) { return r != no_id && needed[r]; })) continue;
    std::vector<Tensor> in;
    for (ValueId i : n.inputs) in.push_back(at[i]);
    std::vector<Tensor> out = evaluate(*n.op, in, n.attrs);
    for (size_t k = 0; k < out.size(); ++k)
      if (n.results[k] != no_id) at[n.results[k]] = std::move(out[k]);
  }
  std::vector<Tensor> result;
  for (const Value& v : outputs) result.push_back(at[v.id()]);
  return result;
}

}  // namespace tutti

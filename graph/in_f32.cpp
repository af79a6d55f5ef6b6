#include "graph/in_f32.h"

#include <algorithm>

#include "graph/ops/cast.h"

namespace tutti {

Value wide(Value v) { return cast(v, wide(v.dtype())); }

namespace {

bool any_narrow(std::span<const Value> values) { return std::any_of(values.begin(), values.end(), holds_narrow); }

Values wide(std::span<const Value> values) {
  Values out;
  for (const Value& v : values) out.push_back(v ? tutti::wide(v) : v);
  return out;
}

}  // namespace

Values rounded_once(const std::function<Values(const Call&)>& f, const Call& c) {
  auto narrow = std::find_if(c.in.begin(), c.in.end(), holds_narrow);
  if (narrow == c.in.end()) return f(c);
  Values in = wide(c.in), out = f({c.graph, in, c.a});
  for (Value& v : out)
    if (v.dtype() == DType::f32) v = cast(v, narrow->dtype());
  return out;
}

Value rounded_once(const Values& in, const std::function<Value(const Values&)>& f) {
  auto g = [&](const Call& c) { return Values{f({c.in.begin(), c.in.end()})}; };
  return rounded_once(std::function<Values(const Call&)>(g), Call{in[0].graph(), in, {}})[0];
}

Values rounded_once(const std::function<Values(const VjpContext&)>& f, const VjpContext& g) {
  if (!any_narrow(g.in) && !any_narrow(g.out)) return f(g);
  Values in = wide(g.in), out = wide(g.out), d = wide(g.d);
  Values got = f({g.graph, in, out, d, g.a, g.wants});
  for (size_t k = 0; k < got.size(); ++k)
    if (got[k]) got[k] = cast(got[k], g.in[k].dtype());
  return got;
}

Value rounded_once(Value x, const std::function<Value(Value)>& f) {
  return holds_narrow(x) ? cast(f(cast(x, DType::f32)), x.dtype()) : f(x);
}

}  // namespace tutti

// Ops of one's own, in a program that links the library: a record, a function of scalars, and a custom gradient.
#include <tutti/tutti.h>
#include <cstdio>

using namespace tutti;

/// An elementwise op. Every device computes the expression in one pass; the gradient is derived from it.
const OpDef soft_clip_op{.name = "soft_clip",
                         .doc = "y = limit tanh(x / limit)",
                         .inputs = {"x"},
                         .attrs = {{"limit", Reals{1.0}}},
                         .expr = [](In x, const Attrs& a) { return Exs{a.f("limit") * tanh(x[0] / a.f("limit"))}; }};

/// An op made of others, for devices that have no kernel of that name: its gradient is that of its decomposition.
const OpDef unit_op{.name = "unit", .doc = "y = x / sqrt(mean x^2)", .inputs = {"x"}, .decompose = [](const Call& c) {
                      Value x = c.in[0];
                      return Values{x / sqrt(mean(x * x))};
                    }};

/// The same without a record: a function of scalars becomes one node.
Value gate(Value x, Value a) {
  return elementwise("gate", {x, a}, [](const Values& v) { return Values{v[0] * tanh(v[1] * v[0])}; })[0];
}

/// Rounds, with the gradient of y = x ("straight through").
Value rounded(Value x) {
  return custom_vjp(
      "rounded", {x},
      [](const Values& in) {
        return Forwarded{{floor(in[0] + 0.5)}, {}};
      },
      [](const Values&, const Values& d) { return Values{d[0]}; })[0];
}

int main(int argc, char** argv) try {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4}});
  Value y = rounded(gate(call(unit_op, {call(soft_clip_op, {x}, {{"limit", Reals{2.0}}})}), x.like(3)));
  g.set_state("y", y);
  g.set_state("dx", gradients(sum(y * y), {x})[0]);
  HostTensors out = run(g, select_device(argc > 1 ? argv[1] : "auto"), {{"x", host_tensor({-3, -0.5, 1, 4})}});
  std::vector<float> values = out.at("y").as<float>(), slopes = out.at("dx").as<float>();
  for (size_t i = 0; i < values.size(); ++i) std::printf("y %2.0f  dx %7.4f\n", values[i], slopes[i]);
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}

// Entries of the kernel list for recurrences and their gradients.
#include "sdk/rendered/entries.h"

namespace tutti::sdk {
namespace {

using codegen::LaunchList;
using NodeView = RenderNodeView;

/// Types of a recurrence: state, weights, steps, and gates with a given number of parts.
struct Types {
  TensorType state;
  int64_t steps;

  /// Derives the types from the state and an input [T, …].
  Types(const NodeView& c, size_t state_at, size_t steps_at) {
    if (c.node().inputs.size() <= std::max(state_at, steps_at) || c.in(state_at).shape.size() != 2 ||
        c.in(steps_at).shape.size() != 3)
      throw decline("the inputs must include a state [N, H] and steps [T, N, …]");
    state = c.in(state_at);
    steps = c.in(steps_at).shape[0];
  }
  TensorType weights(int64_t gates) const { return {state.dtype, {gates * state.shape[1], state.shape[1]}}; }
  TensorType all(DType t, int64_t parts = 1) const { return {t, {steps, state.shape[0], parts * state.shape[1]}}; }
};

/// The recurrence of a node with these types of inputs (without lengths) and results.
codegen::Recurrence recurrence_of(const NodeView& c, const Types& t, const std::vector<TensorType>& in,
                                  const std::vector<TensorType>& out) {
  bool lengths = c.node().inputs.size() == in.size() + 1;
  expect(c, in.size() + (lengths ? 1 : 0), {"reverse"});
  codegen::Recurrence r{
      t.state.dtype, t.steps, t.state.shape[0], t.state.shape[1], c.node().attrs.i("reverse") != 0, lengths,
      c.in_place,    {}};
  auto same = [](const TensorType& have, const TensorType& want) {
    if (have != want) throw decline(fmt::format("an operand is {}, expected {}", to_string(have), to_string(want)));
  };
  for (size_t k = 0; k < in.size(); ++k) same(c.in(k), in[k]);
  if (lengths) same(c.in(in.size()), {DType::i32, {r.rows}});
  if (c.node().results.size() != out.size())
    throw decline(fmt::format("{} results, expected {}", c.node().results.size(), out.size()));
  for (size_t k = 0; k < out.size(); ++k) {
    r.wanted.push_back(c.wants(k));
    if (r.wanted[k]) same(c.out(k), out[k]);
  }
  return r;
}

LaunchList lstm(const NodeView& c) {
  Types t(c, 0, 3);
  DType d = t.state.dtype;
  TensorType z = t.all(d, 4);
  return codegen::lstm(c.traits, recurrence_of(c, t, {t.state, t.state, t.weights(4), z},
                                               {t.all(d), t.state, t.all(DType::f32, 4), t.all(DType::f32)}));
}

LaunchList lstm_dx(const NodeView& c) {
  Types t(c, 0, 2);
  DType d = t.state.dtype;
  TensorType z = t.all(d, 4);
  return codegen::lstm_dx(
      c.traits, recurrence_of(c, t, {t.state, t.weights(4), t.all(DType::f32, 4), t.all(DType::f32), t.all(d), t.state},
                              {t.state, t.state, z}));
}

LaunchList gru(const NodeView& c) {
  Types t(c, 0, 3);
  DType d = t.state.dtype;
  TensorType z = t.all(d, 3);
  return codegen::gru(
      c.traits, recurrence_of(c, t, {t.state, t.weights(3), {d, {z.shape[2]}}, z}, {t.all(d), t.all(DType::f32, 4)}));
}

LaunchList gru_dx(const NodeView& c) {
  Types t(c, 0, 2);
  DType d = t.state.dtype;
  TensorType z = t.all(d, 3);
  return codegen::gru_dx(
      c.traits,
      recurrence_of(c, t, {t.state, t.weights(3), t.all(DType::f32, 4), t.all(d), t.all(d)}, {t.state, z, z}));
}

}  // namespace

std::vector<RenderEntry> recurrence_entries() {
  return {{"portable lstm", "lstm_recurrence", declines<lstm>, lstm, {.in_place = {{3, 2}}}},
          {"portable lstm gradient", "lstm_recurrence_grad", declines<lstm_dx>, lstm_dx, {.in_place = {{2, 2}}}},
          {"portable gru", "gru_recurrence", declines<gru>, gru},
          {"portable gru gradient", "gru_recurrence_grad", declines<gru_dx>, gru_dx}};
}

}  // namespace tutti::sdk

// Subgraphs: branches whose condition is known, and loops whose number of steps is.
#include <fmt/format.h>

#include <algorithm>

#include "graph/functions/lines.h"
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

constexpr int64_t most_steps = 1 << 16;  // of an unrolled loop

Values branch(const Context& c) {
  bool taken = c.number(0, "condition") != 0;
  return c.run(c.body(taken ? "then_branch" : "else_branch"), {});
}

/// Unrolled: inputs are the trip count, the condition and the carried values; the body gives the next condition, the
/// next carried values, and one row of every scanned output.
Values loop(const Context& c) {
  const Body& body = c.body("body");
  size_t carried = c.inputs() < 2 ? 0 : c.inputs() - 2;
  if (body.inputs.size() != carried + 2 || body.outputs.size() < carried + 1 || c.outputs() > body.outputs.size() - 1)
    c.bad("the body's inputs and outputs do not match those of the loop");
  int64_t count = c.has(0) ? c.integer(0, "trip count") : most_steps + 1;
  bool going = !c.has(1) || c.number(1, "condition") != 0;
  Values state;
  for (size_t k = 0; k < carried; ++k) state.push_back(c.in(k + 2));
  std::vector<Values> rows(body.outputs.size() - 1 - carried);
  int64_t step = 0;
  for (; going && step < count; ++step) {
    if (step >= most_steps) c.unsupported(fmt::format("a loop of more than {} steps, which are unrolled,", most_steps));
    Values in{c.graph().full(DType::i32, static_cast<double>(step)), c.graph().full(DType::boolean, 1)};
    in.insert(in.end(), state.begin(), state.end());
    Values out = c.run(body, in);
    auto next = c.elements(out[0]);
    if (!next || next->size() != 1) c.unsupported("a loop whose condition is computed from data");
    going = (*next)[0] != 0;
    state.assign(out.begin() + 1, out.begin() + 1 + static_cast<int64_t>(carried));
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(out[1 + carried + k]);
  }
  Values results = state;
  for (size_t k = 0; k < rows.size(); ++k) {
    if (step == 0 && c.wants(carried + k)) c.unsupported("a scanned output of a loop without steps");
    results.push_back(step == 0 ? Value{} : stack(rows[k], 0));
  }
  return results;
}

/// Unrolled over the axis of its scanned inputs; otherwise like Loop.
Values scan(const Context& c) {
  if (c.opset() < 9) c.unsupported("Scan of opset 8 (with sequence lengths)");
  const Body& body = c.body("body");
  auto scanned = static_cast<size_t>(std::max<int64_t>(c.i("num_scan_inputs", 0), 0));
  if (scanned < 1 || scanned > c.inputs() || body.inputs.size() != c.inputs() || body.outputs.size() != c.outputs() ||
      c.outputs() < c.inputs() - scanned)
    c.bad("the body's inputs and outputs do not match num_scan_inputs and those of the node");
  size_t carried = c.inputs() - scanned, made = c.outputs() - carried;
  Ints in_axes = c.ints("scan_input_axes", Ints(scanned, 0)), out_axes = c.ints("scan_output_axes", Ints(made, 0)),
       in_from = c.ints("scan_input_directions", Ints(scanned, 0)),
       out_from = c.ints("scan_output_directions", Ints(made, 0));
  if (in_axes.size() != scanned || in_from.size() != scanned || out_axes.size() != made || out_from.size() != made)
    c.bad("scan axes and directions must have one value per scanned input or output");
  Values state, series;
  for (size_t k = 0; k < carried; ++k) state.push_back(c.in(k));
  int64_t steps = 0;
  for (size_t k = 0; k < scanned; ++k) {
    Value x = c.in(carried + k);
    int64_t axis = axis_of(c, in_axes[k], x.rank());
    series.push_back(movedim(x, {axis}, {0}));
    int64_t length = series[k].shape()[0];
    if (k > 0 && length != steps) c.bad("the scanned inputs have different lengths");
    steps = length;
  }
  if (steps < 1 || steps > most_steps)
    c.unsupported(fmt::format("a scan of {} steps (1 to {}, which are unrolled)", steps, most_steps));
  std::vector<Values> rows(made, Values(static_cast<size_t>(steps)));
  for (int64_t step = 0; step < steps; ++step) {
    Values in = state;
    for (size_t k = 0; k < scanned; ++k)
      in.push_back(squeeze(narrow(series[k], 0, in_from[k] ? steps - 1 - step : step, 1), {0}));
    Values out = c.run(body, in);
    state.assign(out.begin(), out.begin() + static_cast<int64_t>(carried));
    for (size_t k = 0; k < made; ++k)
      rows[k][static_cast<size_t>(out_from[k] ? steps - 1 - step : step)] = out[carried + k];
  }
  for (size_t k = 0; k < made; ++k) {
    Value y = stack(rows[k], 0);
    state.push_back(movedim(y, {0}, {axis_of(c, out_axes[k], y.rank())}));
  }
  return state;
}

}  // namespace

void add_control(Table& t) {
  t["If"] = branch;
  t["Loop"] = loop;
  t["Scan"] = scan;
}

}  // namespace tutti::onnx

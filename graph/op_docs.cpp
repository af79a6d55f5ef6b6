#include "graph/op_docs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/op.h"
#include "graph/samples.h"

namespace tutti {
namespace {

constexpr size_t longest_expression = 24;  // instructions; longer expressions are harder to read than the formula

/// Escapes * and < for Markdown; `names` remain code.
std::string escaped(const std::string& text) {
  std::string y;
  bool code = false;
  for (char c : text) {
    if (c == '`') code = !code;
    if (!code && (c == '*' || c == '<')) y += '\\';
    y += c;
  }
  return y;
}

std::string code_list(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& n : names) quoted.push_back("`" + n + "`");
  return quoted.empty() ? "none" : fmt::format("{}", fmt::join(quoted, ", "));
}

std::string value_of(const OpDef& op) {
  if (!op.expr) {
    if (!op.reference) return "decomposition into other ops";
    return op.decompose ? "float64 reference; devices without a kernel run its decomposition" : "float64 reference";
  }
  std::vector<DType> dtypes;
  for (const TensorType& t : sample_types(op.samples.at(0))) dtypes.push_back(t.dtype);
  Expr e = expr_of(op, dtypes, op.samples[0].attrs.over(op.attrs));
  std::string rounding = op.exact ? ", rounded after every instruction: the same bits everywhere" : "";
  if (e.code.size() > longest_expression)
    return fmt::format("scalar expression of {} instructions{}", e.code.size(), rounding);
  return fmt::format("scalar expression `{}`{}", to_string(e), rounding);
}

bool differentiable(const OpDef& op) {
  auto any_float = [](const Types& types) {
    return std::any_of(types.begin(), types.end(), [](const TensorType& t) { return is_float(t.dtype); });
  };
  return std::any_of(op.samples.begin(), op.samples.end(), [&](const Sample& s) {
    Types in = sample_types(s);
    return any_float(in) && any_float(infer_types(op, in, s.attrs.over(op.attrs)));
  });
}

std::string gradient_of(const OpDef& op) {
  if (!differentiable(op)) return "none: no float input or no float result";
  if (op.vjp) return "rule";
  if (op.expr) return "derived from the expression";
  return op.decompose ? "derived from the decomposition" : "none";
}

std::string cell_text(const ParityMatrix& parity, const std::string& op, const std::string& device) {
  auto row = parity.ops.find(op);
  if (row == parity.ops.end() || !row->second.contains(device)) return "not run";
  const ParityMatrix::Cell& c = row->second.at(device);
  std::string text = c.failed ? fmt::format("**{} failed**, {}", c.failed, c.pass) : fmt::format("{}", c.pass);
  if (c.not_judged) text += fmt::format(" (+{})", c.not_judged);
  return c.pass ? fmt::format("{} · {:.2g}", text, c.worst) : text;
}

std::string matrix(const ParityMatrix& parity) {
  std::string text = fmt::format(
      "\n## Ops and devices\n\n"
      "The number of cases that pass (`tutti parity --full`: forward and gradients, every sample and dtype, further\n"
      "shapes), and the largest error divided by the tolerance, from [{0}](results/{0}).\n"
      "(+n): further cases that a plugin's manifest expects to fail, or that need more memory than the machine has;\n"
      "that file lists them.\n\n",
      parity.source);
  for (const ParityMatrix::Device& d : parity.devices) text += fmt::format("- `{}`: {}\n", d.id, d.name);
  text += "\n| op |";
  for (const ParityMatrix::Device& d : parity.devices) text += fmt::format(" {} |", d.id);
  text += "\n| --- |";
  for (size_t i = 0; i < parity.devices.size(); ++i) text += " --- |";
  text += "\n";
  for (const OpDef* op : all_ops()) {
    text += fmt::format("| [{0}](#{0}) |", op->name);
    for (const ParityMatrix::Device& d : parity.devices)
      text += fmt::format(" {} |", cell_text(parity, op->name, d.id));
    text += "\n";
  }
  return text;
}

}  // namespace

std::string ops_markdown(const ParityMatrix& parity) {
  std::string text = fmt::format(
      "# Ops\n\n"
      "Generated from the op definitions in `graph/ops/` and the newest full parity result in `docs/results/`; do not\n"
      "edit. The test `OpDocs` checks that this file is up to date, and rewrites it when run with `TUTTI_UPDATE=1`.\n\n"
      "There are {} ops. Elementwise ops (those with a scalar expression) broadcast their inputs by NumPy's rules; in\n"
      "expressions x0, x1, … are the inputs in order. Attributes are listed with their defaults.\n",
      all_ops().size());
  if (!parity.source.empty()) text += matrix(parity);
  for (const OpDef* op : all_ops()) {
    text += fmt::format("\n## {}\n\n{}\n\n", op->name, escaped(op->doc));
    text += fmt::format("- version {}; inputs {}; results {}\n", op->version, code_list(op->inputs),
                        code_list(op->results));
    if (!op->attrs.empty()) text += fmt::format("- attributes `{}`\n", op->attrs.to_string());
    text += fmt::format("- value: {}\n- gradient: {}\n- samples: {}\n", value_of(*op), gradient_of(*op),
                        op->samples.size());
  }
  return text;
}

}  // namespace tutti

#include "graph/lower/legalize.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/key_bytes.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/lower/lower.h"
#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

/// The attributes, without long lists.
std::string brief(const Attrs& attrs) {
  constexpr size_t most = 24;
  Attrs shown = attrs;
  for (const auto& [name, value] : attrs)
    if (const auto* list = std::get_if<Ints>(&value); list && list->size() > most)
      shown.set(name, fmt::format("{} integers", list->size()));
  return shown.to_string();
}

/// "matmul(f32[2, 3], f32[3, 4])"; runs of four or more equal operands are written as "64 x f32[1, 64, 256]".
std::string signature(const Graph& g, const Node& n) {
  std::string text = n.op->name + brief(n.attrs) + "(";
  for (size_t k = 0; k < n.inputs.size();) {
    const TensorType& type = g.info(n.inputs[k]).type;
    size_t end = k + 1;
    while (end < n.inputs.size() && g.info(n.inputs[end]).type == type) ++end;
    bool many = end - k >= 4;
    text += (k ? ", " : "") + (many ? fmt::format("{} x ", end - k) : "") + to_string(type);
    k = many ? end : k + 1;
  }
  return text + ")";
}

/// "" or the reason why the node has no exact numerics.
std::string inexact(const Graph& g, const Node& n) {
  for (const auto& list : {n.inputs, n.results})
    for (ValueId v : list) {
      DType t = g.info(v).type.dtype;
      if (is_float(t) && t != DType::f32) return fmt::format("exact numerics are those of f32, not {}", name(t));
    }
  return "";
}

}  // namespace

Legalizer::Legalizer(Session& session)
    : Legalizer(Ask([&session](const Graph& g) { return session.check(Lowered(g, {}, session.numerics()).program()); }),
                session.device().id, session.numerics()) {}

std::vector<const Verdict*> Legalizer::learn(const Graph& g) {
  std::vector<const Verdict*> verdicts;
  std::vector<std::pair<std::string, Verdict*>> fresh;
  Graph question;  // one node per new signature, over feeds
  for (const Node& n : g.nodes()) {
    KeyBytes key;
    key.add(n.op).add(n.attrs);
    for (ValueId i : n.inputs) key.add(g.info(i).type);
    std::string bytes = key.take();
    auto [at, unknown] = verdicts_.try_emplace(bytes);
    verdicts.push_back(&at->second);
    if (!unknown) continue;
    Values in;
    for (ValueId i : n.inputs)
      in.push_back(question.feed(fmt::format("x{}", question.values().size()), g.info(i).type));
    question.set_origin(n);
    Values out = question.add(*n.op, in, n.attrs);
    for (size_t k = 0; k < out.size(); ++k) question.set_state(fmt::format("y{}.{}", fresh.size(), k), out[k]);
    fresh.emplace_back(std::move(bytes), &at->second);
  }
  if (fresh.empty()) return verdicts;
  ++calls_;
  try {
    std::vector<Verdict> answers = ask_(question);
    for (size_t k = 0; k < fresh.size(); ++k) *fresh[k].second = std::move(answers.at(k));
    if (numerics_ == TUTTI_EXACT)
      for (size_t k = 0; k < fresh.size(); ++k)
        if (std::string why = inexact(question, question.nodes()[k]); !why.empty()) *fresh[k].second = {false, why};
  } catch (...) {  // a signature without an answer would count as declined without a reason
    for (const auto& [bytes, verdict] : fresh) verdicts_.erase(bytes);
    throw;
  }
  return verdicts;
}

Graph Legalizer::expand(const Graph& g) {
  std::vector<const Verdict*> verdicts = learn(g);
  bool expanded = false;
  Rewriter r(g);
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    const bool fixed = numerics_ == TUTTI_EXACT && !n.op->moves;  // whatever the device accepts
    const bool keeps = fixed ? n.op->ordered || n.op->elementwise() : verdicts[k]->accepted;
    if (!n.op->decompose || keeps) {
      r.copy(n);
      continue;
    }
    r.to().set_origin(n);
    Values out = n.op->decompose({r.to(), r.map(n.inputs), n.attrs});
    for (size_t i = 0; i < out.size(); ++i) r.set(n.results[i], out[i]);
    expanded = true;
  }
  Graph out = r.finish();
  return expanded ? expand(out) : std::move(out);
}

std::vector<Declined> Legalizer::declined(const Graph& g) {
  std::vector<const Verdict*> verdicts = learn(g);
  std::vector<Declined> out;
  for (uint32_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    if (!verdicts[k]->accepted)
      out.push_back({k, signature(g, n) + (n.label.empty() ? "" : " at " + n.label), verdicts[k]->reason});
  }
  return out;
}

Graph Legalizer::run(const Graph& g) {
  Graph out = expand(g);
  if (std::vector<Declined> rest = declined(out); !rest.empty())
    throw_declined(device_, rest, out.nodes().size(),
                   "use another device (`tutti devices` lists them), a smaller batch, another dtype, or " +
                       option_text("fallback", "cpu"));
  return out;
}

void throw_declined(const std::string& device, const std::vector<Declined>& nodes, size_t of,
                    const std::string& remedy) {
  std::vector<std::pair<std::string, int>> lines;
  for (const Declined& d : nodes) {
    std::string line = fmt::format("{}: {}", d.text, d.reason);
    auto at = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == line; });
    if (at == lines.end()) at = lines.insert(at, {line, 0});
    ++at->second;
  }
  std::string text = fmt::format("{} declines {} of {} nodes, which have no decomposition:", device, nodes.size(), of);
  constexpr size_t most = 12;
  for (const auto& [line, count] : std::span(lines).first(std::min(most, lines.size())))
    text += fmt::format("\n  {}{}", line, count > 1 ? fmt::format(" ({} times)", count) : "");
  if (lines.size() > most) text += fmt::format("\n  and {} more", lines.size() - most);
  throw Error(Code::declined, text, remedy);
}

}  // namespace tutti

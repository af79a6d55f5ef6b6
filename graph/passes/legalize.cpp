#include "graph/passes/legalize.h"

#include <fmt/format.h>

#include <set>

#include "core/base/status.h"
#include "graph/passes/lower.h"
#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

std::string signature(const Graph& g, const Node& n) {
  std::string text = n.op->name + n.attrs.to_string() + "(";
  for (ValueId i : n.inputs) text += to_string(g.info(i).type) + " ";
  return text + ")";
}

}  // namespace

Legalizer::Legalizer(Session& session)
    : Legalizer(Ask([&session](const Graph& g) { return session.check(Lowered(g).program()); })) {}

void Legalizer::learn(const Graph& g) {
  std::vector<std::string> fresh;
  Graph question;  // one node per new signature, over feeds
  for (const Node& n : g.nodes()) {
    std::string key = signature(g, n);
    if (!verdicts_.try_emplace(key).second) continue;
    Values in;
    for (ValueId i : n.inputs)
      in.push_back(question.feed(fmt::format("x{}", question.values().size()), g.info(i).type));
    question.set_label(n.label);
    Values out = question.add(*n.op, in, n.attrs);
    for (size_t k = 0; k < out.size(); ++k) question.set_state(fmt::format("y{}.{}", fresh.size(), k), out[k]);
    fresh.push_back(std::move(key));
  }
  if (fresh.empty()) return;
  ++calls_;
  std::vector<Verdict> answers = ask_(question);
  for (size_t k = 0; k < fresh.size(); ++k) verdicts_[fresh[k]] = std::move(answers[k]);
}

Graph Legalizer::run(const Graph& g) {
  learn(g);
  bool expanded = false;
  std::vector<std::string> problems;
  Rewriter r(g);
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    const Verdict& answer = verdicts_.at(signature(g, n));
    if (answer.accepted) {
      r.copy(n);
      continue;
    }
    if (!n.op->decompose) {
      problems.push_back(
          fmt::format("  {}{}{}: {}", signature(g, n), n.label.empty() ? "" : " at ", n.label, answer.reason));
      r.copy(n);
      continue;
    }
    r.to().set_label(n.label);
    Values out = n.op->decompose({r.to(), r.map(n.inputs), n.attrs});
    for (size_t i = 0; i < out.size(); ++i) r.set(n.results[i], out[i]);
    expanded = true;
  }
  if (!problems.empty()) {
    std::set<std::string> once(problems.begin(), problems.end());
    std::string text = fmt::format("the device declines {} of {} nodes, which have no decomposition:", problems.size(),
                                   g.nodes().size());
    for (const std::string& p : once) text += "\n" + p;
    throw Error(Code::declined, text, "use another device (`tutti devices` lists them) or another dtype");
  }
  Graph out = r.finish();
  return expanded ? run(out) : std::move(out);
}

}  // namespace tutti

#include "verify/bisect/bisect_side.h"

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "graph/passes/rewrite.h"

namespace tutti::bisect {
namespace {

Grouped grouped_for(const Device& device, const Graph& step) {
  Session session(device);
  Legalizer legalizer(session);
  return group(legalizer.run(expand_for_device(step, legalizer)));
}

/// A span for each chain and for each other node; nodes of a batch are independent, so they are separate.
std::vector<Span> groups_of(const Grouped& grouped) {
  std::vector<Span> spans;
  auto count = static_cast<uint32_t>(grouped.graph.nodes().size());
  auto next = grouped.groups.begin();
  for (uint32_t k = 0; k < count;) {
    while (next != grouped.groups.end() && (next->first < k || next->kind != TUTTI_CHAIN)) ++next;
    bool chain = next != grouped.groups.end() && next->first == k;
    spans.push_back({k, chain ? next->count : 1});
    k += spans.back().count;
  }
  return spans;
}

/// Whether a device may fuse the span's single node into the following elementwise nodes, because nothing else reads
/// its result.
bool joins(const Graph& g, const Readers& readers, Span one, Span behind) {
  constexpr uint32_t most = 32;
  const Node& n = g.nodes()[one.first];
  if (one.count > 1 || n.op->elementwise() || one.count + behind.count > most) return false;
  Span both{one.first, one.count + behind.count};
  return std::ranges::none_of(n.results, [&](ValueId v) { return leaves(g, readers, both, v); });
}

/// The groups; a product or a reshaped bias before a chain is added to the chain, because devices fuse them.
std::vector<Span> spans_of(const Grouped& grouped, const Readers& readers) {
  std::vector<Span> spans;
  for (Span span : groups_of(grouped)) {
    const Node& head = grouped.graph.nodes()[span.first];
    if (head.op->elementwise() && head.phase != Phase::update)
      for (; !spans.empty() && joins(grouped.graph, readers, spans.back(), span); spans.pop_back())
        span = {spans.back().first, spans.back().count + span.count};
    spans.push_back(span);
  }
  return spans;
}

}  // namespace

double change_error(const Tensor& got, const Tensor& want, const Tensor* before) {
  double wrong = 0, square = 0, size = 0, change = 0;
  for (size_t i = 0; i < want.at.size(); ++i) {
    double d = got.at[i] - want.at[i], c = before ? want.at[i] - before->at[i] : want.at[i];
    if (got.at[i] == want.at[i] || (std::isnan(got.at[i]) && std::isnan(want.at[i]))) d = 0;
    wrong += d != 0;
    square += d * d;
    change += c * c;
    size += want.at[i] * want.at[i];
  }
  if (square == 0) return 0;
  if (!is_float(want.type.dtype)) return wrong / static_cast<double>(want.at.size());
  if (before && std::sqrt(square) <= 0x1p-22 * std::sqrt(size)) return 0;
  return std::sqrt(square / std::max(change, 1e-300));
}

Side::Side(const Device& device, const Graph& step) : device_(device) {
  try {
    Grouped grouped = grouped_for(device, step);
    readers_ = readers_of(grouped.graph);
    groups_ = spans_of(grouped, readers_);
    graph_ = std::move(grouped.graph);
    for (Span span : groups_)
      for (uint32_t k = span.first; k < span.first + span.count; ++k)
        for (ValueId v : graph_.nodes()[k].results)
          if (std::ranges::any_of(readers_[v], [&](uint32_t reader) { return !span.holds(reader); }))
            between_.push_back(v);
    plain_ = std::make_unique<OwnProgram>(device, with({}));
    kept_form_ = std::make_unique<OwnProgram>(device, with(between_));
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    throw Error(e.code, e.what(), "compare with another device (`tutti devices` lists them), or in another precision");
  }
}

Span Side::group_of(uint32_t node) const {
  return *std::ranges::find_if(groups_, [&](Span s) { return s.holds(node); });
}

Graph Side::with(const std::vector<ValueId>& values) const {
  Rewriter r(graph_);
  for (const Node& n : graph_.nodes()) r.copy(n);
  for (ValueId v : values) r.to().set_state(value_name(v), r[v]);
  return r.finish();
}

void Side::step(const Tensors& inputs) {
  if (history_.size() == 2) history_.erase(history_.begin());
  history_.push_back(inputs);
  plain_results_ = plain_->run(inputs);
  kept_results_ = kept_form_->run(inputs);
}

Tensors Side::keeping(const std::vector<ValueId>& values) const {
  OwnProgram program(device_, with(values));
  Tensors results;
  for (const Tensors& inputs : history_) results = program.run(inputs);
  return results;
}

Tensors Side::inputs_of(const Graph& piece, const Tensors& results) const {
  Tensors all;
  for (const ValueInfo& v : piece.values()) {
    if (v.role != Role::feed && v.role != Role::state) continue;
    auto given = inputs().find(v.name);
    all.emplace(v.name, given != inputs().end() ? given->second : results.at(v.name));
  }
  return all;
}

std::optional<Violation> Side::examine(Span span, const Tensors& results, double& worst_share) const {
  Graph piece = cut(graph_, readers_, span);
  Tensors own = inputs_of(piece, results), truth = truths_of(piece, own);
  Judgement j = judge(piece, own, truth, results);
  if (j.ok) {
    worst_share = std::max(worst_share, j.share);
    return {};
  }
  Tensors got;
  for (const auto& [name, value] : truth) got.emplace(name, results.at(name));
  return Violation{span, std::move(j), std::move(piece), std::move(own), std::move(truth), std::move(got)};
}

}  // namespace tutti::bisect

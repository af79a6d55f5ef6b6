// Values that the host exchanges with other processes during a run.
#include <algorithm>

#include "sdk/rendered/entries.h"
#include "sdk/rendered/memory.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

codegen::LaunchList exchange(const RenderNodeView& c) {
  const Attrs& a = c.node().attrs;
  a.i("number");
  auto dtype = parse_dtype(a.text("dtype"));
  if (!dtype) throw decline("dtype " + a.text("dtype"));
  const TensorType type{*dtype, a.ints("shape")};
  if (c.node().inputs.size() > 1) throw decline(fmt::format("{} inputs, expected 1 or none", c.node().inputs.size()));
  if (!c.node().inputs.empty() && c.in(0) != type)
    throw decline(fmt::format("the input is {}, expected {}", to_string(c.in(0)), to_string(type)));
  expect_result(c, type);
  return {};
}

}  // namespace

std::vector<RenderEntry> exchange_entries() {
  return {{"host exchange", "tutti.exchange", declines<exchange>, exchange, {.exact = true}}};
}

uint64_t Planner::exchange_room(uint64_t bytes) {
  std::vector<Travelling> busy;
  for (const auto& [value, t] : travelling_) busy.push_back(t);
  std::ranges::sort(busy, {}, &Travelling::at);
  uint64_t at = 0;
  for (const Travelling& t : busy) {
    if (at + padded(bytes) <= t.at) break;
    at = t.at + padded(t.bytes);
  }
  plan_.exchanged_bytes = std::max(plan_.exchanged_bytes, at + padded(bytes));
  return at;
}

/// A value of which only another exchange is read travels between both: it is in the host's memory alone.
void Planner::exchange(uint32_t k) {
  const Node& n = p_.nodes[k];
  const uint32_t v = n.results[0], reader = only_reader(v);
  const std::string name = describe("host exchange", k, 0);
  HostExchange e{.number = static_cast<uint64_t>(n.attrs.i("number")), .bytes = num_bytes(p_.type(v))};
  auto begun = n.inputs.empty() ? travelling_.end() : travelling_.find(n.inputs[0]);
  const bool awaited = begun != travelling_.end(), begins = reader != TUTTI_NONE && p_.nodes[reader].op == n.op;
  e.at = awaited ? begun->second.at : exchange_room(e.bytes);
  if (!n.inputs.empty() && !awaited) e.from = memory_of(n.inputs[0]);
  if (begins) {
    travelling_[v] = {e.at, e.bytes};
    hold(v, temporary(padded(0), "sign of " + name));
  } else {
    Capabilities can;
    if (e.from != TUTTI_NONE) can.in_place = {0, 0};
    e.to = overwritten_input(n, can);
    if (e.to == TUTTI_NONE)
      e.to = place_result(v, name);
    else
      hold(v, e.to);
  }
  if (awaited) travelling_.erase(begun);
  const uint32_t used[] = {e.from == TUTTI_NONE ? memory_of(v) : e.from}, written[] = {memory_of(v)};
  e.position = plan_.launches.size();
  plan_.exchanges.push_back(e);
  step(used, written);
}

}  // namespace tutti::sdk

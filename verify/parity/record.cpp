#include "verify/parity/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "graph/print.h"
#include "verify/parity/conditioning.h"
#include "verify/parity/huge.h"

namespace tutti::parity {
namespace {

/// The same options with another seed and a `see` callback.
SuiteOptions seeing(SuiteOptions options, uint64_t seed, decltype(SuiteOptions::see) see) {
  options.seed = seed;
  options.see = std::move(see);
  return options;
}

/// The case computed by run 0; for "batch" cases the one with the recorded shapes.
CaseId first_of(const CaseId& id) {
  CaseId first = id;
  if (id.variant == "batch") first.variant.clear();
  return first;
}

void add(Report& to, Report&& from) {
  to.seed = from.seed;
  for (DeviceResult& d : from.devices) to.devices.push_back(std::move(d));
  for (std::string& r : from.remarks) to.remarks.push_back(std::move(r));
}

/// Compares one case's results with the recorded ones.
void compare_case(const RecordedCase& there, uint64_t seed, const CaseId& id, const std::vector<Tensor>& results,
                  std::vector<Parted>& parted) {
  CaseId first = first_of(id);
  Graph g = graph_of(first);
  for (size_t k = 0; k < results.size(); ++k) {
    const std::string& name = g.states()[k].name;
    auto it = there.results.find(name);
    if (it == there.results.end()) continue;
    Bound bound = bound_of(*id.op, g, results[k].type.dtype, name[0] == 'd');
    bound.relative *= 2;
    bound.absolute *= 2;
    auto inner = [&] { return conditioning(first, inputs_of(first, g, seed), k, ""); };
    Difference d = compare(thinned(results[k]), it->second, bound, inner);
    if (!d.ok) parted.push_back({id, name, d});
  }
}

}  // namespace

Tensor thinned(const Tensor& t) {
  size_t count = std::min(most_recorded, t.at.size());
  Tensor out({t.type.dtype, {static_cast<int64_t>(count)}});
  for (size_t i = 0; i < count; ++i) out.at[i] = t.at[count > 1 ? i * (t.at.size() - 1) / (count - 1) : 0];
  return out;
}

std::string fingerprint(const CaseId& id, uint64_t seed) {
  CaseId first = first_of(id);
  Graph g = graph_of(first);
  std::string text = fmt::format("{} {}\n{}", id.text(), id.op->version, print(g));
  uint64_t hash = fnv1a(text.data(), text.size());
  for (const auto& [name, t] : inputs_of(first, g, seed)) {
    std::vector<std::byte> bytes(num_bytes(t.type));
    store_tensor(t, bytes.data());
    hash = fnv1a(bytes.data(), bytes.size(), fnv1a(name.data(), name.size(), hash));
  }
  return fmt::format("{:016x}", hash);
}

Record record(const Device& device, const std::vector<CaseId>& cases, const SuiteOptions& options, Report& report,
              const Runner& by) {
  Record r;
  r.seed = options.seed;
  r.device = device.id;
  r.name = device.name;
  r.driver = device.driver;
  auto see = [&](const CaseId& id, const std::vector<Tensor>& results) {
    RecordedCase& c = r.cases[id.text()];
    c.fingerprint = fingerprint(id, r.seed);
    Graph g = graph_of(first_of(id));
    for (size_t k = 0; k < results.size(); ++k) c.results.emplace(g.states()[k].name, thinned(results[k]));
  };
  add(report, by({device}, cases, seeing(options, r.seed, see)));
  return r;
}

std::vector<CaseId> cases_of(const Record& r, const std::vector<const OpDef*>& ops) {
  std::vector<CaseId> cases;
  for (const auto& [text, recorded] : r.cases) {
    const OpDef* op = find_op(text.substr(0, text.find(':')));
    if (!ops.empty() && std::ranges::find(ops, op) == ops.end()) continue;
    auto fail = [&, &text = text](const std::string& why) {  // clang 14 cannot capture structured bindings
      throw invalid(fmt::format("case {} of the recorded file differs from this build's: {}", text, why),
                    fmt::format("record the file again with this version; it was recorded by tutti {}", r.version));
    };
    try {
      cases.push_back(parse_case(text));
    } catch (const Error& e) {
      fail(e.what());
    }
    if (fingerprint(cases.back(), r.seed) != recorded.fingerprint) fail("its graph or its inputs have changed");
  }
  return cases;
}

Comparison against(const Record& r, const Device& device, const std::vector<CaseId>& cases, const SuiteOptions& options,
                   Report& report, const Runner& by) {
  Comparison c{.device = device};
  std::set<std::string> seen;
  auto see = [&](const CaseId& id, const std::vector<Tensor>& results) {
    ++c.compared;
    seen.insert(id.text());
    compare_case(r.cases.at(id.text()), r.seed, id, results, c.parted);
  };
  Report own = by({device}, cases, seeing(options, r.seed, see));
  for (const CaseResult& result : own.devices[0].cases) {
    if (result.outcome == Outcome::unsupported) c.missing.push_back(result.id.text() + ": " + result.why);
    if (result.outcome == Outcome::fail && !seen.contains(result.id.text()))
      c.parted.push_back({result.id, "without a result", {.ok = false, .text = result.why}});
  }
  add(report, std::move(own));
  return c;
}

}  // namespace tutti::parity

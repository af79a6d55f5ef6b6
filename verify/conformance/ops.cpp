// Compares every op with the float64 reference, using the cases of `tutti parity`.
#include <fmt/format.h>

#include "graph/op.h"
#include "verify/conformance/plugin_under_test.h"
#include "verify/parity/suite.h"

namespace tutti::conformance {
namespace {

/// Two samples with all gradients if there are any (which checks forward results too), and in-place updates of states;
/// with `full`, all cases.
std::vector<parity::CaseId> cases(const OpDef& op, bool full) {
  if (full) return parity::cases_of(op, parity::Extent::normal);
  std::vector<parity::CaseId> all;
  for (const parity::CaseId& id : parity::cases_of(op, parity::Extent::quick)) {
    if (!all.empty() && all.back().sample == id.sample) all.pop_back();  // the forward case of the same sample
    all.push_back(id);
  }
  for (const parity::CaseId& id : parity::cases_of(op, parity::Extent::normal))
    if (id.variant == "state") all.push_back(id);
  return all;
}

void hold(const OpDef& op, PluginUnderTest& plugin, Findings& f) {
  Device device = plugin.engine_device();
  parity::Report report = parity::run({device}, cases(op, plugin.setup().full), {});
  const std::vector<parity::CaseResult>& all = report.devices[0].cases;
  std::string declined, expected;
  size_t unsupported = 0, passed = 0;
  for (const parity::CaseResult& c : all) {
    std::string text = fmt::format("case {}: {}", c.id.text(), c.why);
    if (c.outcome == parity::Outcome::fail) f.add(text);
    if (c.outcome == parity::Outcome::pass) ++passed;
    if (c.outcome == parity::Outcome::expected) expected = text;
    if (c.outcome == parity::Outcome::unsupported && unsupported++ == 0) declined = text;
  }
  if (!f.empty()) return;
  if (unsupported)
    throw Unsupported(
        fmt::format("{} of {} cases are declined, which \"expected_failures\" of the manifest does not list; {}",
                    unsupported, all.size(), declined));
  if (!expected.empty()) throw ExpectedFailure(fmt::format("{} of {} cases pass; {}", passed, all.size(), expected));
}

}  // namespace

Checks op_checks() {
  Checks all;
  for (const OpDef* op : all_ops())
    all.push_back({fmt::format("op.{}", op->name), fmt::format("{} agrees with the float64 reference", op->name),
                   [op](PluginUnderTest& plugin, Findings& f) { hold(*op, plugin, f); }});
  return all;
}

}  // namespace tutti::conformance

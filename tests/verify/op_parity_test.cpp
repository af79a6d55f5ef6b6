// Every op record's samples on every device: forward, each input's gradient alone and all together, in every float
// dtype, against the float64 reference (verify/parity says how they are judged).
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "core/os/environment.h"
#include "tests/support/device_run.h"
#include "verify/parity/suite.h"

namespace tutti {
namespace {

/// Rendered sessions look for writes outside of their memory.
[[maybe_unused]] const bool guarded = (os::set_variable("TUTTI_SENTINELS", "1", false), true);

class OpParity : public testing::TestWithParam<std::string> {};

TEST_P(OpParity, MatchesTheReference) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  // Software devices compile every kernel for seconds: two samples here, everything by `tutti parity --full`.
  std::vector<Device> fast, slow;
  for (const Device& d : devices) (d.kind == DeviceKind::software ? slow : fast).push_back(d);
  parity::SuiteOptions options{.seed = 20240607};
  const OpDef& op = *find_op(GetParam());
  parity::Report report = run(fast, parity::cases_of(op, parity::Extent::normal), options);
  parity::Report quick = run(slow, parity::cases_of(op, parity::Extent::quick), options);
  report.devices.insert(report.devices.end(), quick.devices.begin(), quick.devices.end());
  for (const parity::DeviceResult& d : report.devices) {
    for (const parity::CaseResult& c : d.cases) {
      if (c.outcome == parity::Outcome::fail || c.outcome == parity::Outcome::unsupported)
        ADD_FAILURE() << name(c.outcome) << ": " << d.replay(c, options.seed) << "\n  " << c.why;
      if (c.outcome == parity::Outcome::expected)
        std::cout << "expected failure: " << d.device.id << " " << c.id.text() << ": " << c.why << "\n";
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const OpDef* op : all_ops()) out.push_back(op->name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, OpParity, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti

// Many cases in one launch on the first OpenCL device.
#include "kernels/codegen/serial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/codegen/opencl_run.h"
#include "tests/support/require.h"

namespace tutti::codegen::cases {
namespace {

/// Cases whose launches become one; their buffers stand as those of `work`, inputs before results before scratch.
struct Together {
  Case all{"in one launch"};
  LaunchList work;
  std::vector<const Case*> cases;
};

Together together_of(const Target& t, const std::vector<Case>& list) {
  Together g;
  size_t inputs = 0, results = 0, in = 0, out = 0;
  for (const Case& c : list) {
    const LaunchList work = c.make(t);
    if (std::ranges::all_of(work.launches, [&](const Launch& l) { return can_be_serial(t, *l.kernel); }))
      g.cases.push_back(&c), inputs += c.inputs.size(), results += c.expected.size();
  }
  for (const Case* c : g.cases) {
    LaunchList work = c->make(t);
    for (Launch& l : work.launches) {
      for (int& b : l.buffers) {
        const auto at = static_cast<size_t>(b), first = c->inputs.size(), end = first + c->expected.size();
        b = static_cast<int>(at < first ? in + at
                             : at < end ? inputs + out + at - first
                                        : inputs + results + g.work.scratch_bytes.size() + at - end);
      }
      g.work.launches.push_back(std::move(l));
    }
    in += c->inputs.size();
    out += c->expected.size();
    for (uint64_t bytes : work.scratch_bytes) g.work.scratch_bytes.push_back(bytes);
    g.all.inputs.insert(g.all.inputs.end(), c->inputs.begin(), c->inputs.end());
    g.all.expected.insert(g.all.expected.end(), c->expected.begin(), c->expected.end());
  }
  return g;
}

TEST(Serial, ManyLaunchesAreOne) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  const Target t = target(Language::opencl_c(), true);
  std::vector<Case> list;
  for (auto& some : {index_cases(), elementwise_cases(), reduce_cases(), row_cases()})
    for (size_t n = 0; n < some.size(); n += 9) list.push_back(some[n]);
  const Together g = together_of(t, list);
  ASSERT_GT(g.cases.size(), 10u);
  const std::vector<Array> got = run_serially(t, g.work, g.all.inputs, g.all.expected);
  size_t at = 0;
  for (const Case* c : g.cases) {
    const auto first = got.begin() + static_cast<std::ptrdiff_t>(at);
    at += c->expected.size();
    EXPECT_EQ(compare(*c, {first, got.begin() + static_cast<std::ptrdiff_t>(at)}), "") << c->name;
  }
}

/// A copy of words writes what the next part reads as floats, and what the one behind it overwrites.
TEST(Serial, APartReadsWhatAnotherWroteAsAnotherType) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  const Target t = target(Language::opencl_c(), true);
  constexpr int64_t n = 1000;
  const TensorType type{DType::f32, {n}};
  Array x = random(DType::f32, n, -2, 2, 1), doubled = x, fours = x;
  for (double& v : doubled.at) v *= 2;
  for (double& v : fours.at) v *= 4;
  Instructions twice;
  const uint32_t v = twice.in(DType::f32, 0);
  twice.out(DType::f32, twice.add(TUTTI_X_ADD, DType::f32, v, v));
  const DType out[] = {DType::f32};
  const Operand in[] = {{DType::f32, {1}}};
  LaunchList work;
  auto add = [&](const LaunchList& list, int from, int to) {
    work.launches.push_back(list.launches.at(0));
    work.launches.back().buffers = {from, to};
  };
  const LaunchList copied = copy(t, slice_copy(type, {n}, {0}, {1}));
  add(copied, 0, 3);
  add(elementwise(t, twice.list, {n}, in, out, false), 3, 1);
  add(copied, 1, 3);
  add(elementwise(t, twice.list, {n}, in, out, false), 3, 2);
  work.scratch_bytes = {4 * n};
  const std::vector<Array> got = run_serially(t, work, {x}, {doubled, fours});
  const Case c{"twice", {}, {x}, {doubled, fours}, 1e-6, 1e-6};
  EXPECT_EQ(compare(c, got), "");
}

}  // namespace
}  // namespace tutti::codegen::cases

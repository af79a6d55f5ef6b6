// A session asks its kernel list once for nodes alike.
#include <gtest/gtest.h>

#include <functional>

#include "sdk/kernel_list.h"
#include "tests/sdk/raw_program.h"

namespace tutti::sdk {
namespace {

struct View {
  const Program& program;
  uint32_t number;
  const Node& node() const { return program.nodes[number]; }
};

int asked = 0;

Choice<View, int> ask(const View&) {
  ++asked;
  return {};
}

/// y = op(x, x2) over f32[n]; `change` edits the node.
Program program(const std::function<void(test::RawProgram&)>& change = {}, std::vector<int64_t> dims = {4}) {
  test::RawProgram p;
  uint32_t a = p.value(TUTTI_FEED, TUTTI_F32, dims, "a"), b = p.value(TUTTI_FEED, TUTTI_F32, dims, "b");
  uint32_t y = p.value(TUTTI_TEMP, TUTTI_F32, dims);
  p.node("add", {a, b}, {y});
  p.binary(TUTTI_X_ADD);
  if (change) change(p);
  p.states.push_back({"y", TUTTI_NONE, y});
  return Program::parse(p.raw());
}

/// How often a list is asked for the first nodes of two programs.
int times_asked(const Program& p, const Program& q) {
  asked = 0;
  ChoiceCache<View, int> cache(ask);
  cache.of({p, 0});
  cache.of({q, 0});
  return asked;
}

TEST(ChoiceCache, AsksOnceForNodesAlike) { EXPECT_EQ(times_asked(program(), program()), 1); }

TEST(ChoiceCache, AsksForAnotherShape) { EXPECT_EQ(times_asked(program(), program({}, {5})), 2); }

TEST(ChoiceCache, AsksForAnotherExpression) {
  EXPECT_EQ(times_asked(program(), program([](test::RawProgram& p) { p.binary(TUTTI_X_MUL); })), 2);
}

TEST(ChoiceCache, AsksForAnotherRounding) {
  EXPECT_EQ(times_asked(program(), program([](test::RawProgram& p) { p.nodes[0].flags = TUTTI_NODE_EXACT; })), 2);
}

TEST(ChoiceCache, AsksForOneValueReadTwice) {
  static const uint32_t same[] = {0, 0};
  EXPECT_EQ(times_asked(program(), program([](test::RawProgram& p) { p.nodes[0].inputs = same; })), 2);
}

TEST(ChoiceCache, AsksForAnotherAttribute) {
  static const int64_t one = 1, two = 2;
  auto with = [](const int64_t& x) {
    return program([&x](test::RawProgram& p) { p.attrs({{"k", TUTTI_ATTR_I64, 1, &x}}); });
  };
  EXPECT_EQ(times_asked(with(one), with(two)), 2);
  EXPECT_EQ(times_asked(with(one), with(one)), 1);
}

TEST(ChoiceCache, AsksForAResultThatNothingReads) {
  Program p = program(), q = program();
  q.nodes[0].results[0] = TUTTI_NONE;
  EXPECT_EQ(times_asked(p, q), 2);
}

}  // namespace
}  // namespace tutti::sdk

#include "sdk/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/instr.h"
#include "sdk/plan/liveness.h"
#include "tests/sdk/raw_program.h"

namespace tutti::sdk {
namespace {

using test::MultiplyAdd;
using test::RawProgram;

struct Outcome {
  int code = TUTTI_OK;
  uint32_t node = TUTTI_NONE;
  std::string text;
};

Outcome parse(const TuttiProgram& raw) {
  try {
    Program::parse(raw);
    return {};
  } catch (const NodeError& e) {
    return {static_cast<int>(e.code), e.node, e.what()};
  } catch (const Error& e) {
    return {static_cast<int>(e.code), TUTTI_NONE, e.what()};
  }
}

/// Expects INVALID with `text` in the message, about `node`.
void expect_invalid(const TuttiProgram& raw, const std::string& text, uint32_t node = TUTTI_NONE) {
  Outcome o = parse(raw);
  EXPECT_EQ(o.code, TUTTI_INVALID) << text;
  EXPECT_EQ(o.node, node) << o.text;
  EXPECT_NE(o.text.find(text), std::string::npos) << "expected \"" << text << "\", got \"" << o.text << "\"";
}

// What the changes below point values and nodes at.
const int64_t negative[] = {-1}, huge[] = {int64_t{1} << 49}, wide[] = {int64_t{1} << 40, int64_t{1} << 40},
              other[] = {4};
const uint32_t far[] = {0, 50}, late[] = {4, 1}, again[] = {3}, to_feed[] = {0};

template <class Change>
void expect_bad(const std::string& text, uint32_t node, Change change) {
  MultiplyAdd p;
  change(p);
  expect_invalid(p.raw(), text, node);
}

TEST(Program, CopiesEverything) {
  Program p;
  {
    MultiplyAdd raw;
    float half = 0.5f;
    uint32_t c = raw.value(TUTTI_CONST, TUTTI_F32, {}, nullptr, &half);
    uint32_t y = raw.value(TUTTI_TEMP, TUTTI_F32, {2, 3});
    int64_t dims[] = {2, 3};
    double eps = 1e-5;
    raw.node("mystery", {c}, {y, TUTTI_NONE}).label = "fc1";
    raw.attrs(
        {{"shape", TUTTI_ATTR_I64, 2, dims}, {"eps", TUTTI_ATTR_F64, 1, &eps}, {"to", TUTTI_ATTR_TEXT, 3, "f16"}});
    raw.groups = {{TUTTI_CHAIN, 0, 2, 0}, {77, 2, 1, 0}};
    p = Program::parse(raw.raw());
    half = 0;
    dims[0] = 9;
  }
  ASSERT_EQ(p.values.size(), 7u);
  EXPECT_EQ(p.feeds(), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(p.values[1].name, "b");
  EXPECT_EQ(to_string(p.type(6)), "f32[2, 3]");
  float half;
  ASSERT_EQ(p.values[5].data.size(), sizeof half);
  std::memcpy(&half, p.values[5].data.data(), sizeof half);
  EXPECT_EQ(half, 0.5f);
  ASSERT_EQ(p.nodes.size(), 3u);
  EXPECT_TRUE(p.nodes[0].elementwise());
  EXPECT_EQ(p.nodes[1].expr[2].code, TUTTI_X_ADD);
  const Node& n = p.nodes[2];
  EXPECT_EQ(n.op, "mystery");
  EXPECT_EQ(n.label, "fc1");
  EXPECT_EQ(n.results, (std::vector<uint32_t>{6, TUTTI_NONE}));
  EXPECT_EQ(n.attrs.ints("shape"), (Ints{2, 3}));
  EXPECT_EQ(n.attrs.f("eps"), 1e-5);
  EXPECT_EQ(n.attrs.text("to"), "f16");
  ASSERT_EQ(p.groups.size(), 1u) << "a hint of an unknown kind is dropped";
  EXPECT_EQ(p.states[0].after, 4u);
}

TEST(Program, ToleratesGrownStructs) {
  MultiplyAdd small;
  struct GrownValue {
    TuttiValue v;
    char more[24];
  };
  struct GrownNode {
    TuttiNode n;
    uint64_t more;
  };
  struct GrownProgram {
    TuttiProgram p;
    uint64_t more;
  };
  std::vector<GrownValue> values;
  for (const TuttiValue& v : small.values) values.push_back({v, "????"});
  std::vector<GrownNode> nodes;
  for (const TuttiNode& n : small.nodes) nodes.push_back({n, ~0ull});
  GrownProgram grown = {small.raw(), ~0ull};
  grown.p.size = sizeof grown;
  grown.p.values = RawProgram::array(values);
  grown.p.nodes = RawProgram::array(nodes);
  Program p = Program::parse(grown.p);
  EXPECT_EQ(p.values[1].name, "b");
  EXPECT_EQ(p.nodes[1].op, "add");
}

TEST(Program, RefusesBadStructs) {
  TuttiProgram raw = MultiplyAdd().raw();
  raw.size = sizeof raw - 8;
  expect_invalid(raw, "size is");
  MultiplyAdd p;
  raw = p.raw();
  raw.values.stride = sizeof(TuttiValue) - 8;
  expect_invalid(raw, "values: elements of 32 bytes");
  raw = p.raw();
  raw.nodes.stride = 16;
  expect_invalid(raw, "nodes: elements of 16 bytes");
  raw = p.raw();
  raw.states.at = nullptr;
  expect_invalid(raw, "states: 1 elements at address NULL");
  raw = p.raw();
  raw.required = 4;
  EXPECT_EQ(parse(raw).code, TUTTI_DECLINED);
  raw = p.raw();
  raw.numerics = 2;
  EXPECT_EQ(parse(raw).code, TUTTI_DECLINED);
  raw.numerics = TUTTI_EXACT;
  EXPECT_EQ(parse(raw).code, TUTTI_OK);
}

TEST(Program, RefusesBadValues) {
  expect_bad("value 3: unknown role 4", TUTTI_NONE, [](auto& p) { p.values[3].role = 4; });
  expect_bad("value 0: rank 33", TUTTI_NONE, [](auto& p) { p.values[0].rank = 33; });
  expect_bad("value 0: rank 1 with dims NULL", TUTTI_NONE, [](auto& p) { p.values[0].dims = nullptr; });
  expect_bad("negative dimension", TUTTI_NONE, [](auto& p) { p.values[0].dims = negative; });
  expect_bad("more than 2^48", TUTTI_NONE, [](auto& p) { p.values[0].dims = huge; });
  expect_bad("more than 2^62", TUTTI_NONE, [](auto& p) { p.values[0].rank = 2, p.values[0].dims = wide; });
  expect_bad("a feed needs a name", TUTTI_NONE, [](auto& p) { p.values[0].name = nullptr; });
  expect_bad("a state needs a name", TUTTI_NONE, [](auto& p) { p.values[2].name = ""; });
  expect_bad("the name 'a' is already used", TUTTI_NONE, [](auto& p) { p.values[1].name = "a"; });
  expect_bad("a constant of 4 bytes with data NULL", TUTTI_NONE, [](auto& p) { p.value(TUTTI_CONST, TUTTI_F32, {}); });
}

TEST(Program, RefusesBadNodes) {
  expect_bad("node 0: no op name", 0, [](auto& p) { p.nodes[0].op = nullptr; });
  expect_bad("op version 0", 1, [](auto& p) { p.nodes[1].version = 0; });
  expect_bad("2 inputs at address NULL", 0, [](auto& p) { p.nodes[0].inputs = nullptr; });
  expect_bad("1 results at address NULL", 0, [](auto& p) { p.nodes[0].results = nullptr; });
  expect_bad("input 1 is value 50, but the program has only 5", 0, [](auto& p) { p.nodes[0].inputs = far; });
  expect_bad("input 0 is value 4, which no earlier node produces", 0, [](auto& p) { p.nodes[0].inputs = late; });
  expect_bad("result 0 is value 50", 0, [](auto& p) { p.nodes[0].results = far + 1; });
  expect_bad("result 0 is value 3, which is already produced", 1, [](auto& p) { p.nodes[1].results = again; });
  expect_bad("result 0 is value 0, whose role is not", 0, [](auto& p) { p.nodes[0].results = to_feed; });
  expect_bad("node 1 (add in fc1): ", 1, [](auto& p) { p.nodes[1].label = "fc1", p.nodes[1].version = 0; });
}

TEST(Program, RefusesBadAttributes) {
  static const int64_t one = 1;
  expect_bad("attribute 0 has no name", 1, [](auto& p) { p.attrs({{nullptr, TUTTI_ATTR_I64, 1, &one}}); });
  expect_bad("attribute 'k': 1 elements at address NULL", 1, [](auto& p) {
    p.attrs({{"k", TUTTI_ATTR_I64, 1, nullptr}});
  });
  expect_bad("attribute 'k' occurs twice", 1, [](auto& p) {
    p.attrs({{"k", TUTTI_ATTR_I64, 1, &one}, {"k", TUTTI_ATTR_I64, 1, &one}});
  });
}

/// The last node's expression replaced.
void expect_bad_expr(const std::string& text, std::vector<TuttiInstr> code) {
  expect_bad(text, 1, [&](auto& p) { p.expr(code); });
}

TEST(Program, RefusesBadExpressions) {
  const TuttiInstr x0 = {TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0}, y = {TUTTI_X_RESULT, TUTTI_F32, 0, 0, 0};
  EXPECT_EQ(
      [&] {
        MultiplyAdd p;
        p.expr({x0, y});
        return parse(p.raw()).text;
      }(),
      "");
  expect_bad_expr("it reads input 2, but the node has only 2", {{TUTTI_X_INPUT, TUTTI_F32, 2, 0, 0}, y});
  expect_bad_expr("input 0 has dtype f32, not f64", {{TUTTI_X_INPUT, TUTTI_F64, 0, 0, 0}, y});
  expect_bad_expr("operand 1 refers to instruction 1; it must refer to an earlier instruction",
                  {x0, {TUTTI_X_ADD, TUTTI_F32, 0, 1, 0}, y});
  expect_bad_expr("operand 0 refers to instruction 7", {x0, {TUTTI_X_NEG, TUTTI_F32, 7, 0, 0}, y});
  expect_bad_expr("operand 0 is a RESULT", {x0, y, {TUTTI_X_NEG, TUTTI_F32, 1, 0, 0}});
  expect_bad_expr("it writes result 3, but the node has only 1", {x0, {TUTTI_X_RESULT, TUTTI_F32, 0, 3, 0}});
  expect_bad_expr("produces result 0 0 times", {x0});
  expect_bad_expr("produces result 0 2 times", {x0, y, y});
  expect_bad_expr("operand 0 has dtype f32, expected bool", {x0, {TUTTI_X_SELECT, TUTTI_F32, 0, 0, 0}, y});
  expect_bad_expr("operand 1 has dtype f64, expected f32", {x0,
                                                            {TUTTI_X_CONST, TUTTI_F64, 0, 0, 0},
                                                            {TUTTI_X_ADD, TUTTI_F32, 0, 1, 0},
                                                            {TUTTI_X_RESULT, TUTTI_F32, 2, 0, 0}});
  expect_bad_expr("a comparison must have dtype bool",
                  {x0, {TUTTI_X_LESS, TUTTI_F32, 0, 0, 0}, {TUTTI_X_RESULT, TUTTI_F32, 1, 0, 0}});
  expect_bad_expr("operand 0 has dtype f32, expected bool", {x0, {TUTTI_X_NOT, TUTTI_BOOL, 0, 0, 0}, y});
  expect_bad_expr("result 0 has dtype f64, but its value has dtype f32",
                  {x0, {TUTTI_X_CAST, TUTTI_F64, 0, 0, 0}, {TUTTI_X_RESULT, TUTTI_F64, 1, 0, 0}});
  expect_bad("do not broadcast", 0, [](auto& p) { p.values[1].dims = other; });
  expect_bad("result 0 has shape [4], but the inputs broadcast to [3]", 0, [](auto& p) { p.values[3].dims = other; });
}

TEST(Program, RefusesBadStatesAndGroups) {
  expect_bad("state 0 has no name", TUTTI_NONE, [](auto& p) { p.states[0].name = nullptr; });
  expect_bad("`after` is value 9", TUTTI_NONE, [](auto& p) { p.states[0].after = 9; });
  expect_bad("`after` is value 4294967295", TUTTI_NONE, [](auto& p) { p.states[0].after = TUTTI_NONE; });
  expect_bad("`after` is value 5, which no node produces", TUTTI_NONE,
             [](auto& p) { p.states[0].after = p.value(TUTTI_TEMP, TUTTI_F32, {3}); });
  expect_bad("`before` is value 9", TUTTI_NONE, [](auto& p) { p.states[0].before = 9; });
  expect_bad("`before` is value 0, which is not the value of this state", TUTTI_NONE,
             [](auto& p) { p.states[0].before = 0; });
  expect_bad("`before` is value 2, which is not", TUTTI_NONE, [](auto& p) { p.states[0].name = "t"; });
  expect_bad("state 's' occurs twice", TUTTI_NONE, [](auto& p) { p.states.push_back(p.states[0]); });
  expect_bad("'s' is not the `before` of any state", TUTTI_NONE, [](auto& p) { p.states.clear(); });
  expect_bad("'a' is both a feed and a state", TUTTI_NONE, [](auto& p) { p.states.push_back({"a", TUTTI_NONE, 3}); });
  expect_bad("state 's' is f32[3] before the step and f32[1] after it", TUTTI_NONE,
             [](auto& p) { p.states[0].after = p.value(TUTTI_FEED, TUTTI_F32, {1}, "c"); });
  expect_bad("group 0: nodes [1, 3) are empty or outside", TUTTI_NONE, [](auto& p) {
    p.groups = {{TUTTI_CHAIN, 1, 2, 0}};
  });
  expect_bad("group 0: nodes [0, 0) are empty or outside", TUTTI_NONE, [](auto& p) {
    p.groups = {{TUTTI_CHAIN, 0, 0, 0}};
  });
  expect_bad("nodes [4294967295, 4294967297)", TUTTI_NONE, [](auto& p) { p.groups = {{TUTTI_CHAIN, ~0u, 2, 0}}; });
  expect_bad("group 1: starts at node 0", TUTTI_NONE, [](auto& p) {
    p.groups = {{TUTTI_CHAIN, 0, 1, 0}, {TUTTI_BATCH, 0, 2, 0}};
  });
}

TEST(Program, MarksWhatIsUnknown) {
  MultiplyAdd flags, instr, attr;
  flags.nodes[1].flags = 8;
  EXPECT_EQ(Program::parse(flags.raw()).nodes[1].unknown, "unknown node flags 0x8");
  instr.expr({{instr::count, TUTTI_F32, 0, 0, 0}});
  EXPECT_NE(Program::parse(instr.raw()).nodes[1].unknown.find(fmt::format("unknown instruction {}", instr::count)),
            std::string::npos);
  int64_t one = 1;
  attr.attrs({{"k", 3, 1, &one}});
  EXPECT_NE(Program::parse(attr.raw()).nodes[1].unknown.find("'k' has the unknown kind 3"), std::string::npos);
  EXPECT_EQ(Program::parse(attr.raw()).nodes[0].unknown, "");
  MultiplyAdd dtype;  // only the product reads value 0
  dtype.values[0].dtype = 9;
  Program p = Program::parse(dtype.raw());
  EXPECT_EQ(p.nodes[0].unknown, "value 0 has the unknown dtype 9");
  EXPECT_EQ(p.nodes[1].unknown, "");
}

TEST(Program, UnreadTempsNeedNoProducer) {
  MultiplyAdd p;
  uint32_t unread = p.value(TUTTI_TEMP, TUTTI_F32, {3});
  Program parsed = Program::parse(p.raw());
  EXPECT_EQ(last_readers(parsed)[unread], TUTTI_NONE);
}

TEST(Program, LastReaders) {
  EXPECT_EQ(last_readers(Program::parse(MultiplyAdd().raw())), (std::vector<uint32_t>{0, 0, 1, 1, 2}));
  MultiplyAdd p;
  p.value(TUTTI_FEED, TUTTI_F32, {3}, "unread");
  EXPECT_EQ(last_readers(Program::parse(p.raw())).back(), TUTTI_NONE);
}

std::vector<bool> in_place(const RawProgram& p) { return in_place_states(Program::parse(p.raw())); }

TEST(Program, InPlaceStates) {
  using Flags = std::vector<bool>;
  EXPECT_EQ(in_place(MultiplyAdd()), Flags{true});

  MultiplyAdd structured;  // a node that is not elementwise may read the old value after it wrote the new one
  structured.nodes[1].expr = {};
  EXPECT_EQ(in_place(structured), Flags{false});
  structured.nodes[1].input_count = 1;  // it reads only t now
  EXPECT_EQ(in_place(structured), Flags{true});

  MultiplyAdd read_later;
  read_later.value(TUTTI_TEMP, TUTTI_F32, {3});
  read_later.node("neg", {2}, {5});
  EXPECT_EQ(in_place(read_later), Flags{false});

  MultiplyAdd read_only;
  read_only.states[0].after = 2;
  EXPECT_EQ(in_place(read_only), Flags{false});

  MultiplyAdd previous;  // another state keeps the old value of s
  previous.states.push_back({"previous", TUTTI_NONE, 2});
  EXPECT_EQ(in_place(previous), (Flags{false, false}));

  MultiplyAdd twice;  // write-only outputs: one may hold the value itself
  twice.states.push_back({"out", TUTTI_NONE, 3});
  twice.states.push_back({"copy", TUTTI_NONE, 3});
  EXPECT_EQ(in_place(twice), (Flags{true, true, false}));

  MultiplyAdd of_feed;
  of_feed.states.push_back({"out", TUTTI_NONE, 0});
  EXPECT_EQ(in_place(of_feed), (Flags{true, false}));
}

TEST(Program, Constants) {
  auto bits = std::bit_cast<uint64_t>(-0.1);
  EXPECT_EQ(constant_of({TUTTI_X_CONST, TUTTI_F32, uint32_t(bits), uint32_t(bits >> 32), 0}), -0.1);
}

}  // namespace
}  // namespace tutti::sdk

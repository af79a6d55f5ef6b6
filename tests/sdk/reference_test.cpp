// The reference backend through its real C table, in this process.
#include "backends/reference/reference.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/sdk/raw_program.h"

namespace tutti {
namespace {

using test::MultiplyAdd;
using test::RawProgram;

class Reference : public testing::Test {
 protected:
  void SetUp() override {
    uint32_t mine[2];
    t = sdk::table(1, 1, mine, reference::make_plugin);
    ASSERT_NE(t, nullptr);
    e.size = sizeof e;
    ASSERT_EQ(t->init(nullptr, &e), TUTTI_OK) << e.message;
    ASSERT_EQ(t->open(0, {}, &session, &e), TUTTI_OK) << e.message;
  }
  void TearDown() override {
    t->close(session);
    t->shutdown();
  }

  std::map<uint32_t, std::string> declined(const RawProgram& p, uint32_t numerics = TUTTI_FAST) {
    std::map<uint32_t, std::string> reasons;
    std::vector<uint8_t> accepted(p.nodes.size(), 9);
    TuttiProgram raw = p.raw();
    raw.numerics = numerics;
    TuttiSink sink = {&reasons, [](void* to, uint32_t node, const char* text) {
                        (*static_cast<std::map<uint32_t, std::string>*>(to))[node] = text;
                      }};
    EXPECT_EQ(t->check(session, &raw, accepted.data(), sink, &e), TUTTI_OK) << e.message;
    for (uint32_t k = 0; k < accepted.size(); ++k) EXPECT_EQ(accepted[k], reasons.contains(k) ? 0 : 1);
    return reasons;
  }

  /// Compiles, adds the plan to `planned`, prepares, and expects the plugin's own count to be the plan.
  TuttiExecutable* prepared(const RawProgram& p) {
    TuttiProgram raw = p.raw();
    TuttiExecutable* x = nullptr;
    TuttiMemory m = {sizeof m};
    EXPECT_EQ(t->compile(session, &raw, nullptr, &x, &m, &e), TUTTI_OK) << e.message;
    last = m;
    planned += m.state + m.constants + m.arena + m.workspace + m.staging;
    EXPECT_EQ(t->prepare(x, &e), TUTTI_OK) << e.message;
    expect_used(planned);
    return x;
  }
  void expect_used(uint64_t bytes) {
    uint64_t now = 0, peak = 0;
    EXPECT_EQ(t->usage(session, &now, &peak, &e), TUTTI_OK);
    EXPECT_EQ(now, bytes);
    EXPECT_EQ(peak, planned);
  }
  void run(TuttiExecutable* x, std::vector<std::vector<float>> feeds) {
    std::vector<void*> at(feeds.size());
    ASSERT_EQ(t->stage(x, at.data(), &e), TUTTI_OK) << e.message;
    for (size_t i = 0; i < feeds.size(); ++i) std::memcpy(at[i], feeds[i].data(), feeds[i].size() * 4);
    uint64_t ticket = 0;
    ASSERT_EQ(t->run(x, &ticket, &e), TUTTI_OK) << e.message;
    ASSERT_EQ(t->wait(session, ticket, ~0ull, &e), TUTTI_OK) << e.message;
  }
  std::vector<float> read(const char* state, size_t n) {
    std::vector<float> y(n);
    EXPECT_EQ(t->read(session, state, y.data(), n * 4, &e), TUTTI_OK) << e.message;
    return y;
  }
  void write(const char* state, std::vector<float> x) {
    EXPECT_EQ(t->write(session, state, x.data(), x.size() * 4, &e), TUTTI_OK) << e.message;
  }
  void expect_error(int32_t code, int32_t wanted, const std::string& text) {
    EXPECT_EQ(code, wanted);
    EXPECT_NE(std::string(e.message).find(text), std::string::npos)
        << "expected \"" << text << "\", got \"" << e.message << "\"";
  }

  const TuttiPlugin* t = nullptr;
  TuttiSession* session = nullptr;
  TuttiError e = {};
  TuttiMemory last = {};
  uint64_t planned = 0;
};

using Floats = std::vector<float>;

TEST_F(Reference, Device) {
  TuttiArray list = {};
  ASSERT_EQ(t->devices(&list, &e), TUTTI_OK);
  ASSERT_EQ(list.count, 1u);
  auto* d = static_cast<const TuttiDevice*>(list.at);
  EXPECT_STREQ(d->name, "reference (float64 on the host)");
  EXPECT_EQ(d->kind, static_cast<uint32_t>(TUTTI_SOFTWARE));
  EXPECT_GT(d->memory_total, uint64_t{1} << 26);
  EXPECT_LE(d->memory_free, d->memory_total);
}

TEST_F(Reference, Options) {
  TuttiSession* s = nullptr;
  std::vector<TuttiPair> pairs = {{"threads", "4"}};
  ASSERT_EQ(t->open(0, RawProgram::array(pairs), &s, &e), TUTTI_OK) << e.message;
  t->close(s);
  for (const char* bad : {"0", "-1", "two", "4x", "", "99999999999"}) {
    pairs[0].value = bad;
    expect_error(t->open(0, RawProgram::array(pairs), &s, &e), TUTTI_INVALID,
                 "option threads is '" + std::string(bad) + "'");
  }
  pairs[0] = {"colour", "red"};
  expect_error(t->open(0, RawProgram::array(pairs), &s, &e), TUTTI_INVALID,
               "unknown option 'colour'; the valid option is: threads");
  expect_error(t->open(1, {}, &s, &e), TUTTI_INVALID, "no device 1");
}

TEST_F(Reference, MultiplyAddOverSteps) {
  MultiplyAdd p;
  EXPECT_TRUE(declined(p).empty());
  TuttiExecutable* x = prepared(p);
  EXPECT_EQ(last.state, 12u);
  EXPECT_EQ(last.arena, 12u) << "s' is computed in the state's own memory";
  EXPECT_EQ(last.staging, 64u + 12u);
  EXPECT_EQ(last.constants + last.workspace, 0u);
  EXPECT_EQ(read("s", 3), (Floats{0, 0, 0}));
  write("s", {1, 2, 3});
  run(x, {{1, 2, 3}, {10, 20, 30}});
  EXPECT_EQ(read("s", 3), (Floats{11, 42, 93}));
  run(x, {{1, 1, 1}, {1, 1, 1}});
  EXPECT_EQ(read("s", 3), (Floats{12, 43, 94}));
  expect_used(planned);
  float y[4];
  expect_error(t->read(session, "s", y, 16, &e), TUTTI_INVALID, "state 's' is f32[3] with 12 bytes, but 16");
  expect_error(t->write(session, "s", y, 8, &e), TUTTI_INVALID, "12 bytes, but 8");
  expect_error(t->read(session, "q", y, 12, &e), TUTTI_INVALID, "no state 'q' in this session; its states are: s");
  expect_error(t->wait(session, 77, 0, &e), TUTTI_INVALID, "ticket 77 was never returned by run; the newest is 2");
  t->release(x);
  expect_used(12);
  EXPECT_EQ(read("s", 3), (Floats{12, 43, 94})) << "state stays with the session";
}

TEST_F(Reference, ProgramsShareState) {
  TuttiExecutable* add = prepared(MultiplyAdd());
  run(add, {{1, 2, 3}, {1, 1, 1}});
  RawProgram other;  // out = s * [2]
  float two = 2;
  uint32_t s = other.value(TUTTI_STATE, TUTTI_F32, {3}, "s"),
           c = other.value(TUTTI_CONST, TUTTI_F32, {1}, nullptr, &two);
  uint32_t y = other.value(TUTTI_TEMP, TUTTI_F32, {3});
  other.node("mul", {s, c}, {y});
  other.binary(TUTTI_X_MUL);
  other.states = {{"s", s, s}, {"out", TUTTI_NONE, y}};
  TuttiExecutable* x = prepared(other);
  EXPECT_EQ(last.state, 12u) << "only `out` is new";
  EXPECT_EQ(last.constants, 4u);
  run(x, {});
  EXPECT_EQ(read("out", 3), (Floats{2, 4, 6}));
  EXPECT_EQ(read("s", 3), (Floats{1, 2, 3}));

  RawProgram clash;
  uint32_t v = clash.value(TUTTI_STATE, TUTTI_F32, {4}, "s");
  clash.states = {{"s", v, v}};
  TuttiProgram raw = clash.raw();
  TuttiMemory m = {sizeof m};
  TuttiExecutable* none = nullptr;
  expect_error(t->compile(session, &raw, nullptr, &none, &m, &e), TUTTI_INVALID,
               "'s' is f32[3] in this session, but f32[4] in the program");
}

// States that take each other's old values: each copy must see what was there before the step.
TEST_F(Reference, SwapAndShift) {
  RawProgram p;
  uint32_t a = p.value(TUTTI_STATE, TUTTI_F32, {2}, "a"), b = p.value(TUTTI_STATE, TUTTI_F32, {2}, "b");
  uint32_t c = p.value(TUTTI_STATE, TUTTI_F32, {2}, "c"), f = p.value(TUTTI_FEED, TUTTI_F32, {2}, "f");
  p.states = {{"a", a, b}, {"b", b, a}, {"c", c, f}, {"previous", TUTTI_NONE, c}};
  TuttiExecutable* x = prepared(p);
  EXPECT_GT(last.workspace, 0u);
  write("a", {1, 2});
  write("b", {3, 4});
  write("c", {5, 6});
  run(x, {{7, 8}});
  EXPECT_EQ(read("a", 2), (Floats{3, 4}));
  EXPECT_EQ(read("b", 2), (Floats{1, 2}));
  EXPECT_EQ(read("c", 2), (Floats{7, 8}));
  EXPECT_EQ(read("previous", 2), (Floats{5, 6}));
}

// The old value is read after the new one is known: the new one waits in the arena.
TEST_F(Reference, OldValueReadLater) {
  MultiplyAdd p;
  uint32_t y = p.value(TUTTI_TEMP, TUTTI_F32, {3});
  p.node("sub", {2, 4}, {y});
  p.binary(TUTTI_X_SUB);
  p.states.push_back({"change", TUTTI_NONE, y});
  TuttiExecutable* x = prepared(p);
  write("s", {100, 100, 100});
  run(x, {{1, 2, 3}, {1, 1, 1}});
  EXPECT_EQ(read("s", 3), (Floats{101, 102, 103}));
  EXPECT_EQ(read("change", 3), (Floats{-1, -2, -3}));
}

// Every dtype is stored in its own width and rounded to it.
TEST_F(Reference, StoresDeclaredDtypes) {
  const std::pair<uint32_t, const char*> types[] = {{TUTTI_F64, "f64"},   {TUTTI_F16, "f16"}, {TUTTI_BF16, "bf16"},
                                                    {TUTTI_I32, "i32"},   {TUTTI_I64, "i64"}, {TUTTI_U8, "u8"},
                                                    {TUTTI_BOOL, "bool"}, {TUTTI_U32, "u32"}};
  const double wanted[] = {300.7f, 300.75, 300, 300, 300, 255, 1, 300};
  RawProgram p;
  std::vector<std::string> names;
  for (auto [dtype, name] : types) names.push_back(std::string("back.") + name);
  uint32_t x = p.value(TUTTI_FEED, TUTTI_F32, {2}, "x");
  size_t bytes = 0;
  for (size_t i = 0; i < std::size(types); ++i) {
    auto [dtype, name] = types[i];
    uint32_t there = p.value(TUTTI_TEMP, dtype, {2}), back = p.value(TUTTI_TEMP, TUTTI_F64, {2});
    p.node("cast", {x}, {there});
    p.attrs({{"to", TUTTI_ATTR_TEXT, static_cast<uint32_t>(std::strlen(name)), name}});
    p.node("cast", {there}, {back});
    p.attrs({{"to", TUTTI_ATTR_TEXT, 3, "f64"}});
    p.states.push_back({name, TUTTI_NONE, there});
    p.states.push_back({names[i].c_str(), TUTTI_NONE, back});
    bytes += 2 * size_of(static_cast<DType>(dtype)) + 16;
  }
  TuttiExecutable* e1 = prepared(p);
  EXPECT_EQ(last.state, bytes);
  run(e1, {{300.7f, 300.7f}});
  for (size_t i = 0; i < std::size(types); ++i) {
    double y[2] = {};
    EXPECT_EQ(t->read(session, names[i].c_str(), y, 16, &e), TUTTI_OK) << e.message;
    EXPECT_EQ(y[1], wanted[i]) << types[i].second;
  }
  int64_t whole[2] = {};
  EXPECT_EQ(t->read(session, "i64", whole, 16, &e), TUTTI_OK) << e.message;
  EXPECT_EQ(whole[0], 300);
}

TEST_F(Reference, DeclinesWithAReason) {
  MultiplyAdd p;
  p.nodes[0].op = "frobnicate";
  p.nodes[0].expr = {};  // with one it would be an elementwise op of the caller's
  p.nodes[1].version = 1000;
  auto reasons = declined(p);
  EXPECT_EQ(reasons[0], "unknown op 'frobnicate'");
  EXPECT_NE(reasons[1].find("version 1000 of 'add' is not supported"), std::string::npos) << reasons[1];
  TuttiProgram raw = p.raw();
  TuttiMemory m = {sizeof m};
  TuttiExecutable* x = nullptr;
  EXPECT_EQ(t->compile(session, &raw, nullptr, &x, &m, &e), TUTTI_DECLINED);
  EXPECT_EQ(e.node, 0u);

  MultiplyAdd flags;
  flags.nodes[1].flags = TUTTI_NODE_EXACT;
  EXPECT_NE(declined(flags)[1].find("not round after every instruction"), std::string::npos);

  MultiplyAdd attr;
  int64_t one = 1;
  attr.attrs({{"colour", TUTTI_ATTR_I64, 1, &one}});
  EXPECT_EQ(declined(attr)[1], "unknown attribute 'colour'");

  RawProgram wrong;  // a matrix product whose result has another shape than its inputs say
  uint32_t a = wrong.value(TUTTI_FEED, TUTTI_F32, {2, 3}, "a"), b = wrong.value(TUTTI_FEED, TUTTI_F32, {3, 4}, "b");
  uint32_t y = wrong.value(TUTTI_TEMP, TUTTI_F32, {4, 2}), z = wrong.value(TUTTI_TEMP, TUTTI_F32, {2, 2});
  uint32_t w = wrong.value(TUTTI_TEMP, TUTTI_F32, {2, 4});
  wrong.node("matmul", {a, b}, {y});
  wrong.node("matmul", {a, a}, {z});
  wrong.node("matmul", {a, b}, {w, TUTTI_NONE});
  reasons = declined(wrong);
  EXPECT_EQ(reasons[0], "result 0 of 'matmul' should be f32[2, 4], but is f32[4, 2] in the program");
  EXPECT_NE(reasons[1].find("the inner dimensions differ"), std::string::npos) << reasons[1];
  EXPECT_EQ(reasons[2], "'matmul' has 1 results, but the node has 2");

  MultiplyAdd exact;
  raw = exact.raw();
  raw.numerics = TUTTI_EXACT;
  uint8_t accepted[2] = {9, 9};
  EXPECT_EQ(t->check(session, &raw, accepted, {}, &e), TUTTI_OK);
  EXPECT_EQ(accepted[0] + accepted[1], 2);
  RawProgram decomposed;
  uint32_t fed = decomposed.value(TUTTI_FEED, TUTTI_F32, {2, 3}, "x");
  decomposed.node("softmax", {fed}, {decomposed.value(TUTTI_TEMP, TUTTI_F32, {2, 3})});
  EXPECT_EQ(declined(decomposed, TUTTI_EXACT)[0], "'softmax' has no exact numerics");
}

TEST_F(Reference, TooLargeForTheMachine) {
  RawProgram p;
  uint32_t s = p.value(TUTTI_STATE, TUTTI_F64, {int64_t{1} << 46}, "huge");
  p.states = {{"huge", s, s}};
  TuttiProgram raw = p.raw();
  TuttiMemory m = {sizeof m};
  TuttiExecutable* x = nullptr;
  ASSERT_EQ(t->compile(session, &raw, nullptr, &x, &m, &e), TUTTI_OK) << e.message;
  EXPECT_EQ(m.state, uint64_t{1} << 49);
  expect_error(t->prepare(x, &e), TUTTI_NO_MEMORY, "562949953421312 bytes  f64[70368744177664] of state 'huge'");
}

}  // namespace
}  // namespace tutti

// Accounting and running out: what is planned is what is allocated, before anything runs.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/sdk/raw_program.h"
#include "tests/sdk/rendered/fake_driver.h"

namespace tutti::sdk {
namespace {

using test::RawProgram;
using test::Tape;

struct Rig {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::unique_ptr<Session> session;
  std::unique_ptr<Session>& open() { return session = make_rendered_session(test::make_fake_driver(tape), Host()); }
  std::unique_ptr<Executable> compile(const RawProgram& raw) { return session->compile(Program::parse(raw.raw()), {}); }
};

/// y = (x + c) s over feed x, constant c and state s of n elements, each node alone.
struct Sums : RawProgram {
  explicit Sums(int64_t n) : numbers(static_cast<size_t>(n), 2.5f) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {n}, "x"),
             c = value(TUTTI_CONST, TUTTI_F32, {n}, nullptr, numbers.data());
    uint32_t s = value(TUTTI_STATE, TUTTI_F32, {n}, "s"), p = value(TUTTI_TEMP, TUTTI_F32, {n}),
             y = value(TUTTI_TEMP, TUTTI_F32, {n});
    node("add", {x, c}, {p});
    binary(TUTTI_X_ADD);
    node("mul", {p, s}, {y});
    binary(TUTTI_X_MUL);
    states = {{"s", s, s}, {"y", TUTTI_NONE, y}};
  }
  std::vector<float> numbers;
};

uint64_t total(const TuttiMemory& m) { return m.state + m.constants + m.arena + m.workspace + m.staging; }

TEST(RenderedMemory, WhatIsPlannedIsAllocated) {
  Rig b;
  b.open();
  auto e = b.compile(Sums(1000));
  TuttiMemory m = e->memory();
  EXPECT_EQ(b.tape->bytes(), 0u) << "compile allocates nothing";
  EXPECT_EQ(m.state, 8000u);
  EXPECT_EQ(m.constants, 4000u);
  EXPECT_EQ(m.arena, 4000u);
  EXPECT_EQ(m.workspace, 0u);
  EXPECT_EQ(m.staging, 3 * 4000u) << "two slots and the range they are copied to";
  e->prepare();
  uint64_t now = 0, peak = 0;
  b.session->usage(now, peak);
  EXPECT_EQ(now, total(m));
  EXPECT_EQ(peak, total(m));
  EXPECT_EQ(b.tape->bytes(), total(m));

  auto second = b.compile(Sums(1000));
  EXPECT_EQ(second->memory().state, 0u) << "the state is there already";
  second->prepare();
  EXPECT_EQ(b.tape->bytes(), total(m) + total(second->memory()));
  e.reset();
  EXPECT_EQ(b.tape->bytes(), m.state + total(second->memory()));
  second.reset();
  EXPECT_EQ(b.tape->bytes(), m.state) << "state stays with the session";
  b.session->usage(now, peak);
  EXPECT_EQ(now, m.state);
}

TEST(RenderedMemory, BuffersOfUploadsArePlannedAndCounted) {
  Rig b;
  b.tape->traits.double_buffered_uploads = true;
  b.open();
  auto e = b.compile(Sums(1000));
  TuttiMemory m = e->memory();
  EXPECT_EQ(m.staging, 5 * 4000u) << "two slots with an upload buffer each, and the range they are copied to";
  e->prepare();
  uint64_t now = 0, peak = 0;
  b.session->usage(now, peak);
  EXPECT_EQ(peak, total(m));
  EXPECT_EQ(b.tape->bytes(), total(m));
  e.reset();
  EXPECT_EQ(b.tape->bytes(), m.state);
}

TEST(RenderedMemory, AFailedAllocationLeavesNothingBehind) {
  for (int at = 0; at < 7; ++at) {  // two states, constants, arena, feeds, two slots
    Rig b;
    b.tape->allocation_fails_at = at;
    b.open();
    auto e = b.compile(Sums(1000));
    try {
      e->prepare();
      FAIL() << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Code::no_memory);
      EXPECT_NE(std::string(error.what()).find("f32[1000] of state 's'"), std::string::npos) << error.what();
    }
    EXPECT_EQ(b.tape->bytes(), 0u);
    uint64_t now = 1, peak = 0;
    b.session->usage(now, peak);
    EXPECT_EQ(now, 0u);
    e->prepare();  // there is room now
    EXPECT_EQ(b.tape->bytes(), total(e->memory()));
  }
}

TEST(RenderedMemory, SaysBeforehandWhatWouldFit) {
  Rig b;
  b.tape->traits.memory_bytes = 20000;
  b.open();
  auto e = b.compile(Sums(1000));  // 12000 fixed + 16000 that grow with the batch
  try {
    e->prepare();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::no_memory);
    EXPECT_NE(std::string(error.what()).find("about 50 % of this batch"), std::string::npos) << error.what();
  }
  EXPECT_EQ(b.tape->allocations, 0);
}

TEST(RenderedMemory, NewStateIsZeroAndConstantsArrive) {
  Rig b;
  b.open();
  Sums raw(5);
  auto e = b.compile(raw);
  e->prepare();
  std::vector<float> s(5, 9);
  b.session->read("s", s.data(), 20);
  EXPECT_EQ(s, std::vector<float>(5, 0));
  std::iota(s.begin(), s.end(), 1.f);
  b.session->write("s", s.data(), 20);
  std::vector<float> back(5);
  b.session->read("s", back.data(), 20);
  EXPECT_EQ(back, s);
  bool found = false;
  for (const auto& [id, data] : b.tape->memory)
    found |= data.size() == 32 &&
             std::equal(raw.numbers.begin(), raw.numbers.end(), reinterpret_cast<const float*>(data.data()));
  EXPECT_TRUE(found) << "the constants are in no allocation";
  EXPECT_THROW(b.session->read("s", back.data(), 16), Error);
  EXPECT_THROW(b.session->read("t", back.data(), 20), Error);
  EXPECT_THROW(b.session->write("s", back.data(), 24), Error);
}

TEST(RenderedMemory, StatesKeepTheirType) {
  Rig b;
  b.open();
  auto e = b.compile(Sums(5));
  EXPECT_THROW(b.compile(Sums(6)), Error);
  EXPECT_THROW(b.session->read("s", nullptr, 20), Error) << "declared, but without memory";
}

}  // namespace
}  // namespace tutti::sdk

// Runs that stop between launches: states that are reported, and values that processes exchange.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/sdk/raw_program.h"
#include "tests/sdk/rendered/fake_driver.h"

namespace tutti::sdk {
namespace {

using test::RawProgram;
using test::Tape;

/// The feeds a and b, of `count` elements, become the states A and B.
struct KeepTwo : RawProgram {
  explicit KeepTwo(int64_t count) {
    uint32_t a = value(TUTTI_FEED, TUTTI_I32, {count}, "a"), b = value(TUTTI_FEED, TUTTI_I32, {count}, "b");
    states = {{"A", TUTTI_NONE, a}, {"B", TUTTI_NONE, b}};
  }
};

/// What a run reports of KeepTwo, and how many sequences had been submitted then.
struct Report {
  uint32_t state;
  int32_t first, last;
  size_t submitted;
  bool operator==(const Report&) const = default;
};

std::vector<Report> reports(int64_t count, uint32_t flags, int runs) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  TuttiOptions options = {.size = sizeof(TuttiOptions), .flags = flags};
  auto e = session->compile(Program::parse(KeepTwo(count).raw()), options);
  e->prepare();
  std::vector<Report> all;
  e->watch({"B", "A"}, [&](uint32_t state, const void* data) {
    auto* x = static_cast<const int32_t*>(data);
    all.push_back({state, x[0], x[count - 1], tape->submitted.size()});
  });
  for (int run = 0; run < runs; ++run) {
    void* feeds[2] = {};
    e->stage(feeds);
    for (int k = 0; k < 2; ++k) std::fill_n(static_cast<int32_t*>(feeds[k]), count, 10 * run + k);
    session->wait(e->run(), ~0ull);
  }
  return all;
}

TEST(RenderedStops, TheDeviceGoesOnWhileStatesAreReported) {
  const std::vector<Report> want = {{1, 0, 0, 2}, {0, 1, 1, 2}, {1, 10, 10, 4}, {0, 11, 11, 4}};
  EXPECT_EQ(reports(1 << 16, 0, 2), want) << "A's copy is a sequence, and B's is submitted before A is reported";
}

TEST(RenderedStops, SmallStatesAreReportedTogether) {
  EXPECT_EQ(reports(3, 0, 1), (std::vector<Report>{{1, 0, 0, 1}, {0, 1, 1, 1}}));
}

TEST(RenderedStops, ATimedRunReportsToo) {
  const std::vector<Report> all = reports(1 << 16, TUTTI_OPT_PROFILE, 1);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first + all[1].first, 1);
}

/// Exchange 0 of the state w begins, and is awaited by exchange 2, which makes y; meanwhile exchange 1 of w makes z.
struct Exchanges : RawProgram {
  Exchanges() {
    uint32_t w = value(TUTTI_STATE, TUTTI_F32, {3}, "w"), y[3];
    for (size_t k = 0; k < 3; ++k) {
      y[k] = value(TUTTI_TEMP, TUTTI_F32, {3});
      node("tutti.exchange", {k < 2 ? w : y[0]}, {y[k]});
      attrs({{"number", TUTTI_ATTR_I64, 1, &numbers[k]},
             {"dtype", TUTTI_ATTR_TEXT, 3, "f32"},
             {"shape", TUTTI_ATTR_I64, 1, &shape}});
    }
    states = {{"w", w, w}, {"y", TUTTI_NONE, y[2]}, {"z", TUTTI_NONE, y[1]}};
  }
  static constexpr int64_t numbers[] = {0, 1, 2};
  static constexpr int64_t shape = 3;
};

void exchange_values(uint32_t flags) {
  auto tape = std::make_shared<Tape>();
  auto session = make_rendered_session(test::make_fake_driver(tape), Host());
  TuttiOptions options = {.size = sizeof(TuttiOptions), .flags = flags};
  auto e = session->compile(Program::parse(Exchanges().raw()), options);
  e->prepare();
  uint64_t now = 0, peak = 0;
  session->usage(now, peak);
  TuttiMemory m = e->memory();
  EXPECT_EQ(m.state + m.constants + m.arena + m.workspace + m.staging, peak);
  EXPECT_EQ(m.staging, 32u) << "the value that travels, and another one";
  EXPECT_THROW(e->run(), Error) << "nobody is connected";
  std::vector<uint64_t> order;
  float* travels = nullptr;
  e->connect([&](uint64_t number, void* data, uint64_t bytes) {
    order.push_back(number);
    auto* x = static_cast<float*>(data);
    ASSERT_EQ(bytes, 12u);
    if (number == 0) {
      EXPECT_EQ(x[2], 3) << "the state";
      travels = x;
    } else if (number == 1) {
      EXPECT_EQ(x[2], 3);
      x[2] = 5;
      travels[2] = 7;
    } else {
      EXPECT_EQ(x, travels);
      EXPECT_EQ(x[2], 7) << "the host wrote it meanwhile";
    }
  });
  float w[3] = {1, 2, 3}, y[3] = {}, z[3] = {};
  session->write("w", w, sizeof w);
  for (int run = 0; run < 2; ++run) session->wait(e->run(), ~0ull);
  session->read("y", y, sizeof y);
  session->read("z", z, sizeof z);
  EXPECT_EQ(y[2], 7);
  EXPECT_EQ(z[2], 5);
  EXPECT_EQ(order, (std::vector<uint64_t>{0, 1, 2, 0, 1, 2}));
}

TEST(RenderedStops, ValuesAreExchanged) { exchange_values(0); }
TEST(RenderedStops, ValuesAreExchangedInATimedRun) { exchange_values(TUTTI_OPT_PROFILE); }

}  // namespace
}  // namespace tutti::sdk

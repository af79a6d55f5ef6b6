// Kernels within a device's limits: loops of few rounds, small groups, and element numbers about 2^31.
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "kernels/codegen/kernel.h"
#include "tests/codegen/host_run.h"
#include "tests/support/error_of.h"

namespace tutti::codegen::cases {
namespace {

Target few_rounds(bool cpu_like, uint32_t rounds) {
  Target t = target(Language::cpp(), cpu_like);
  if (!cpu_like) t.subgroup = 1;
  t.max_rounds = rounds;
  return t;
}

/// Each case is right or declined for its rounds; gives the names of those that are declined.
std::vector<std::string> within(const Target& t, const std::vector<Case>& all) {
  std::vector<std::string> declined;
  std::vector<std::pair<const Case*, LaunchList>> works;
  std::vector<std::string> texts;
  for (const Case& c : all) try {
      LaunchList work = c.make(t);
      for (const Launch& d : work.launches) {
        EXPECT_LE(rounds_of(*d.kernel), t.max_rounds) << c.name << ": " << d.name;
        texts.push_back(render(t, *d.kernel).text);
      }
      works.emplace_back(&c, std::move(work));
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::declined);
      EXPECT_NE(std::string(e.what()).find("loop iterations in a work-item"), std::string::npos) << e.what();
      declined.push_back(c.name);
    }
  if (works.empty()) return declined;
  HostKernels kernels(texts);
  for (const auto& [c, work] : works) {
    SCOPED_TRACE(c->name);
    EXPECT_EQ(compare(*c, run_on_host(kernels, t, work, c->inputs, c->expected)), "");
  }
  return declined;
}

using Names = std::vector<std::string>;

TEST(Limits, ReductionsAndArgmaxAreCutToFewRounds) {
  std::vector<Case> all = reduce_cases();
  std::erase_if(all, [](const Case& c) { return c.inputs[0].at.size() < 30000 || c.inputs[0].dtype != DType::f32; });
  ASSERT_GT(all.size(), 20u);
  for (bool cpu_like : {true, false}) EXPECT_EQ(within(few_rounds(cpu_like, 50), all), Names());
  Target vectors = few_rounds(true, 50);
  vectors.max_texels = 1;  // vectors are read well
  EXPECT_EQ(within(vectors, all), Names());
}

/// More elements than a group's rounds reach, where loops end after 65535.
TEST(Limits, ArgmaxReachesEveryElement) {
  for (int64_t n : {int64_t{65535} * 256 + 1})
    for (int64_t at : {int64_t{7}, n - 1}) {
      Case c{"argmax of " + std::to_string(n)};
      c.inputs = {{DType::u8, std::vector<double>(static_cast<size_t>(n))}};
      c.inputs[0].at[static_cast<size_t>(at)] = 1;
      c.expected = {{DType::i32, {static_cast<double>(at)}}};
      c.make = [n](const Target& t) { return argmax(t, {DType::u8, {n}}, {0}); };
      EXPECT_EQ(within(few_rounds(true, 65535), {c}), Names());
    }
}

TEST(Limits, IndexKernelsAreCutToFewRounds) {
  for (bool cpu_like : {true, false}) EXPECT_EQ(within(few_rounds(cpu_like, 300), index_cases()), Names());
}

TEST(Limits, SumsOfProductsAreCutToFewRounds) {
  EXPECT_EQ(within(few_rounds(true, 2500), matmul_cases()), Names());
  EXPECT_EQ(within(few_rounds(false, 2500), matmul_cases()), Names());
}

TEST(Limits, RowsInSegmentsAreDividedAmongEnoughWorkItems) {
  const Target t = few_rounds(false, 65535);
  std::vector<Case> cases = row_cases();
  std::erase_if(cases, [](const Case& c) { return c.name.ends_with("15000]") || c.name.ends_with("7001]"); });
  EXPECT_EQ(within(t, cases), Names());
  EXPECT_TRUE(runs_rows(t, {.rows = 64, .length = 1 << 15, .segment = 1024, .folds = true}));
  EXPECT_FALSE(runs_rows(t, {.rows = 64, .length = 1 << 22, .segment = 1024, .folds = true}));
}

TEST(Limits, WhatIsNotCutIsDeclined) {
  within(few_rounds(false, 3000), conv_cases());
  EXPECT_EQ(within(few_rounds(true, 30), pool_cases()), Names());
}

/// Vulkan on a Raspberry Pi 5 binds 8 buffers; one launch per turn needs groups of 256, a separate product does not.
TEST(Limits, RecurrencesFitEightBuffers) {
  for (uint32_t items : {256u, 128u}) {
    Target t = few_rounds(false, ~0u);
    t.max_local = items;
    t.max_arguments = 8;
    std::vector<Case> all = recurrence_cases();
    EXPECT_EQ(within(t, all), Names());
    size_t folded = 0;
    for (const Case& c : all) {
      size_t most = 0;
      for (const Launch& l : c.make(t).launches) {
        most = std::max(most, l.buffers.size());
        folded += l.name == "recurrence_count";
      }
      EXPECT_LE(most, 8u) << c.name << ", groups of " << items;
    }
    EXPECT_GT(folded, 0u);
  }
}

TEST(Limits, EveryLoopIsCounted) {
  for (const std::string& name : portable_names()) {
    Kernel k = portable(name, {{"T", Element::f32}, {"Y", Element::f32}, {"A", Element::f32}, {"S", Element::f32}});
    if (name == "math") continue;
    EXPECT_EQ(k.rounds.empty(), k.body.find("for (") == std::string::npos) << k.file;
  }
  auto reading = [](const std::string& rounds, const std::string& body) {
    parse("kernel a\nout y f32\n" + rounds + "---\n  " + body, "some.k", {});
  };
  const char* loop = "for (int i = 0; i < 3; ++i) y_set(i, 0.0f);\n";
  EXPECT_THROW(reading("", loop), Error);
  EXPECT_THROW(reading("rounds 4\n", "y_set(0, 0.0f);\n"), Error);
  EXPECT_NO_THROW(reading("rounds 4\n", loop));
}

Kernel looping(const std::string& rounds) {
  Kernel k = parse("kernel a\nout y f32\nvalue N\nnumber M\nlocal 8\nrounds " + rounds +
                       "\n---\n  for (int i = 0; i < N * M; ++i) y_set(i, 0.0f);\n",
                   "some.k", {});
  k.set("N", 10);
  k.set("M", 7);
  return k;
}

TEST(Limits, RoundsAreNumbersOfTheKernel) {
  EXPECT_EQ(rounds_of(looping("N * (M + 1) - 3")), 77);
  EXPECT_EQ(rounds_of(looping("N / M + M / LOCALS")), 3);  // both round up
  EXPECT_EQ(rounds_of(looping("2")), 2);
  for (const char* wrong : {"N +", "N M", "(N", "K", "N ? 1"}) EXPECT_THROW(rounds_of(looping(wrong)), Error) << wrong;
}

TEST(Limits, ALaunchThatExceedsThemIsDeclined) {
  Target t;
  t.max_rounds = 70;
  EXPECT_NO_THROW(dispatch(t, looping("N * M"), 1, {0}));
  Error e = test::error_from([&] { dispatch(t, looping("N * M + 1"), 1, {0}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_STREQ(e.what(), "kernel a: 71 loop iterations in a work-item; this device supports at most 70");
  t.max_local = 7;
  e = test::error_from([&] { dispatch(t, looping("N"), 1, {0}); });
  EXPECT_STREQ(e.what(), "kernel a: 8 work-items in a group; this device supports at most 7");
  EXPECT_EQ(render(t, *dispatch_items(t, looping("N"), 20, {0}).kernel).local[0], 7u);
}

TEST(Limits, GroupsShrinkToTheDevice) {
  for (bool cpu_like : {true, false}) {
    Target t = few_rounds(cpu_like, 65535);
    t.max_local = 16;
    for (const auto& all : {index_cases(), pool_cases()}) EXPECT_EQ(within(t, all), Names());
  }
}

}  // namespace
}  // namespace tutti::codegen::cases

#include "core/runtime/session.h"

#include <cstring>

#include "core/runtime/selector.h"
#include "tests/runtime/plugin_folder.h"

namespace tutti::test {
namespace {

/// s += x over f32[3], with one more node of any op; structs as large as an engine of tomorrow might have.
struct Step {
  struct GrownNode {
    TuttiNode base = {};
    uint64_t more[2] = {~0ull, ~0ull};
  };
  struct GrownValue {
    TuttiValue base = {};
    uint64_t more = ~0ull;
  };
  struct GrownProgram {
    TuttiProgram base = {};
    uint64_t more[4] = {~0ull, ~0ull, ~0ull, ~0ull};
  };
  int64_t dims[1] = {3};
  GrownValue values[3];
  GrownNode nodes[2];
  uint32_t add_inputs[2] = {1, 0}, add_results[1] = {2};
  TuttiState state = {"s", 1, 2};
  GrownProgram program;

  explicit Step(const char* extra = "fine") {
    const uint32_t roles[] = {TUTTI_FEED, TUTTI_STATE, TUTTI_TEMP};
    const char* names[] = {"x", "s", nullptr};
    for (int i = 0; i < 3; ++i) values[i].base = {roles[i], TUTTI_F32, 1, 0, dims, names[i], nullptr};
    nodes[0].base = {"add", "sum", 1, 0, add_inputs, add_results, 2, 1, {}, {}};
    nodes[1].base = {extra, "layer.2", 1, 0, nullptr, nullptr, 0, 0, {}, {}};
    program.base.size = sizeof program;
    program.base.values = {values, 3, sizeof(GrownValue)};
    program.base.nodes = {nodes, 2, sizeof(GrownNode)};
    program.base.states = {&state, 1, sizeof(TuttiState)};
  }
  const TuttiProgram& get() const { return program.base; }
};

class SessionTest : public Clean {
 protected:
  Session& session(const std::string& settings = "", const std::map<std::string, std::string>& options = {}) {
    folder.plugin("toy", settings + "device=cpu\ndevice=cpu|broken fan\n");
    registry_ = std::make_unique<Registry>(std::vector<fs::path>{folder.path()});
    session_ = std::make_unique<Session>(*registry_, registry_->devices().at(0), options);
    return *session_;
  }
  std::string compile_error(const char* op, Code code) {
    Step step(op);
    Session& s = session_ ? *session_ : session();
    return error_of([&] { s.compile(step.get()); }, code);
  }
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, APluginThatTellsNoTimesIsNotAskedToProfile) {
  Session& s = session();
  Step step;
  EXPECT_FALSE(s.profiles());
  std::string why = error_of([&] { s.compile(step.get(), 0, true); }, Code::declined);
  EXPECT_TRUE(has(why, "toy:0: its plugin does not measure kernel times"));
  EXPECT_TRUE(has(error_of([&] { s.compile(step.get()).times(); }, Code::declined), "does not measure kernel times"));
}

TEST_F(SessionTest, AProgramRunsOnStateThatStays) {
  Session& s = session();
  Step step;
  Executable e = s.compile(step.get());
  EXPECT_EQ(e.memory().state, 12u);
  EXPECT_EQ(e.memory().arena, 12u);
  EXPECT_EQ(e.planned_bytes(), 24u);
  EXPECT_EQ(s.used_bytes(), 0u);
  e.prepare();
  EXPECT_EQ(s.used_bytes(), 24u);
  std::vector<float> values = {1, 2, 3};
  s.write("s", values.data(), 12);
  uint64_t ticket = 0;
  for (int i = 0; i < 4; ++i) {
    auto feeds = e.stage();
    ASSERT_EQ(feeds.size(), 1u);
    std::vector<float> x = {0.5f, 0, -1};
    std::memcpy(feeds[0], x.data(), 12);
    ticket = e.run();
  }
  EXPECT_EQ(ticket, 4u);
  s.wait(ticket);
  s.read("s", values.data(), 12);
  EXPECT_EQ(values, (std::vector<float>{3, 2, -1}));

  Executable again = s.compile(step.get());
  EXPECT_EQ(again.memory().state, 0u);  // already there
  { Executable gone = std::move(e); }   // releases its arena, once
  EXPECT_EQ(s.used_bytes(), 12u);
  EXPECT_EQ(s.peak_bytes(), 24u);
}

TEST_F(SessionTest, StateErrorsNameTheState) {
  Session& s = session();
  Step step;
  s.compile(step.get()).prepare();
  float values[4] = {};
  EXPECT_EQ(error_of([&] { s.read("t", values, 12); }), "toy:0: read state 't': there is no such state");
  EXPECT_EQ(error_of([&] { s.write("s", values, 16); }), "toy:0: write state 's': holds 12 bytes");
}

TEST_F(SessionTest, CheckCollectsReasonsPerNode) {
  Session& s = session();
  auto verdicts = s.check(Step("nope").get());
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_TRUE(verdicts[0].accepted);
  EXPECT_EQ(verdicts[0].reason, "");
  EXPECT_FALSE(verdicts[1].accepted);
  EXPECT_EQ(verdicts[1].reason, "no kernel for nope");
  verdicts = s.check(Step("silent").get());
  EXPECT_FALSE(verdicts[1].accepted);
  EXPECT_EQ(verdicts[1].reason, "no reason given");
}

TEST_F(SessionTest, CompileErrorsNameOpAndLabel) {
  EXPECT_EQ(compile_error("broken", Code::compile),
            "toy:0: compile: node 1 (broken layer.2): the compiler refused a kernel");
  EXPECT_EQ(compile_error("stray node", Code::compile), "toy:0: compile: about another node");
  EXPECT_TRUE(has(compile_error("huge", Code::no_memory), "no room for 1000 GB | use a smaller batch"));
  EXPECT_TRUE(has(compile_error("odd code", Code::internal), "a code of tomorrow"));
  EXPECT_TRUE(has(compile_error("cut text", Code::compile), "half a letter: \xef\xbf\xbd"));
  EXPECT_TRUE(has(compile_error("throw", Code::internal), "across the C boundary: compiling went wrong"));
  EXPECT_TRUE(has(compile_error("hollow", Code::internal), "compile: the plugin succeeded without an executable"));
}

TEST_F(SessionTest, ADeclinedProgramListsNodesAndReasons) {
  std::string error = compile_error("nope", Code::declined);
  EXPECT_TRUE(has(error, "toy:0: compile: node 1 (nope layer.2): cannot run nope"));
  EXPECT_TRUE(has(error, "\n  node 1 (nope layer.2): no kernel for nope"));
}

TEST_F(SessionTest, TuningMemoryIsPassedOn) {
  Session& s = session();
  Step step("tuned");
  EXPECT_TRUE(has(error_of([&] { s.compile(step.get()); }, Code::internal), "no tuning memory"));
  s.compile(step.get(), 1000);
}

TEST_F(SessionTest, LateErrorsArriveInWait) {
  Session& s = session();
  Step step("late");
  Executable e = s.compile(step.get());
  e.prepare();
  uint64_t ticket = e.run();
  EXPECT_TRUE(has(error_of([&] { s.wait(ticket); }, Code::device_lost),
                  "toy:0: wait: the device went away in run 1 | open a new session"));
  EXPECT_TRUE(has(error_of([&] { s.wait(9); }), "no run has ticket 9"));
}

TEST_F(SessionTest, OptionsReachThePlugin) {
  session("", {{"threads", "2"}});
  EXPECT_EQ(
      error_of([&] {
        Session(*registry_, registry_->devices()[0], {{"colour", "red"}});
      }),
      "toy:0: open: unknown option 'colour'; known: threads | the session was opened with the option colour: leave "
      "out options that this device does not have (docs/SETTINGS.md lists the options of each plugin)");
}

TEST_F(SessionTest, AnUnusableOrForeignDeviceIsRefused) {
  session();
  EXPECT_EQ(error_of([&] { Session(*registry_, registry_->devices()[1]); }), "toy:1: cannot be used: broken fan");
  Device other;
  other.id = "other:0";
  other.plugin = "other";
  EXPECT_EQ(error_of([&] { Session(*registry_, other); }), "device 'other:0': no plugin 'other' is loaded");
}

TEST_F(SessionTest, SuccessWithoutASessionIsAnError) {
  EXPECT_TRUE(has(error_of([&] { session("fault=open hollow\n"); }, Code::internal), "succeeded without a session"));
}

TEST_F(SessionTest, SuccessWithoutFeedMemoryIsAnError) {
  Session& s = session("fault=stage null\n");
  Step step;
  Executable e = s.compile(step.get());
  e.prepare();
  EXPECT_TRUE(has(error_of([&] { e.stage(); }, Code::internal), "gave no memory for feed 0"));
}

}  // namespace
}  // namespace tutti::test

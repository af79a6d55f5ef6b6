// The C table over a plugin of the test's own: negotiation, fences, arguments, handles.
#include "sdk/plugin.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "core/abi/growth.h"
#include "tests/sdk/raw_program.h"

namespace tutti::sdk {
namespace {

std::function<void()> fault;  // what the fake's next calls do first
int sessions = 0, executables = 0;
std::vector<std::string> told;

void strike() {
  if (fault) fault();
}

class FakeExecutable : public Executable {
 public:
  FakeExecutable() { ++executables; }
  ~FakeExecutable() override { --executables; }
  TuttiMemory memory() const override { return {sizeof(TuttiMemory), 0, 1, 2, 3, 4, 5}; }
  void prepare() override { strike(); }
  void stage(std::span<void*> feeds) override {
    for (void*& f : feeds) f = at_;
  }
  uint64_t run() override {
    strike();
    return ++ticket_;
  }
  std::vector<KernelTime> times() override {
    strike();
    if (ticket_ == 0) return {{0, 0, 0, "first kernel", "another declined"}};
    return {{0, 1000, 30, "first kernel", "another declined"}, {TUTTI_NONE, 1040, 5, "a copy"}};
  }

 private:
  char at_[64] = {};
  uint64_t ticket_ = 0;
};

class FakeSession : public Session {
 public:
  FakeSession() { ++sessions; }
  ~FakeSession() override {
    EXPECT_EQ(executables, 0) << "executables must go before their session";
    --sessions;
  }
  void check(const Program& p, std::span<uint8_t> accepted, const Why& why) override {
    strike();
    for (uint32_t k = 0; k < p.nodes.size(); ++k) {
      accepted[k] = p.nodes[k].op == "mul" ? 7 : 0;
      if (p.nodes[k].op == "add") why(k, "no adder");
    }
  }
  std::unique_ptr<Executable> compile(Program, const TuttiOptions& o) override {
    strike();
    tuning = o.tuning_bytes;
    return std::make_unique<FakeExecutable>();
  }
  void wait(uint64_t, uint64_t) override { strike(); }
  void usage(uint64_t& now, uint64_t& peak) override { now = peak = 15; }
  void read(const std::string&, void*, size_t) override { strike(); }
  void write(const std::string&, const void*, size_t) override { strike(); }
  static inline uint64_t tuning = 0;
};

class FakePlugin : public Plugin {
 public:
  const char* name() const override { return "fake"; }
  const char* version() const override { return "1"; }
  bool profiles() const override { return true; }
  bool reports_ready() const override { return true; }
  bool exchanges() const override { return true; }
  bool joins() const override { return true; }
  std::vector<Device> devices() override {
    host_.log(2, "fake", "asked for devices");
    strike();
    Device d;
    d.name = "first";
    d.uuid[15] = 9;
    d.memory_total = 5;
    Device e;
    e.name = "second";
    e.unusable = "broken";
    return {d, e};
  }
  std::unique_ptr<Session> open(uint32_t, const Options& options) override {
    strike();
    for (const auto& [key, value] : options) told.push_back(key + "=" + value);
    return std::make_unique<FakeSession>();
  }
};

int made = 0;
Plugin* make() {
  ++made;
  return new FakePlugin;
}

TuttiError fresh() {
  TuttiError e;
  std::memset(&e, 0x55, sizeof e);
  e.size = sizeof e;
  return e;
}

const TuttiHost host = {sizeof(TuttiHost),
                        0,
                        nullptr,
                        nullptr,
                        [](void*, int32_t, const char*, const char* text) { told.push_back(text); },
                        nullptr,
                        nullptr};

class Table : public testing::Test {
 protected:
  void SetUp() override {
    uint32_t mine[2] = {};
    t = table(1, 1, mine, make);
    ASSERT_NE(t, nullptr);
    fault = nullptr;
    told.clear();
    ASSERT_EQ(t->init(&host, &e), TUTTI_OK);
    ASSERT_EQ(t->open(0, {}, &session, &e), TUTTI_OK);
  }
  void TearDown() override {
    fault = nullptr;
    t->close(session);
    t->shutdown();
    EXPECT_EQ(sessions, 0);
    EXPECT_EQ(executables, 0);
  }
  TuttiExecutable* compiled() {
    TuttiExecutable* x = nullptr;
    TuttiMemory m = {sizeof m};
    TuttiProgram raw = program.raw();
    EXPECT_EQ(t->compile(session, &raw, nullptr, &x, &m, &e), TUTTI_OK) << e.message;
    return x;
  }
  void expect(int32_t code, int32_t wanted, const std::string& text) {
    EXPECT_EQ(code, wanted);
    EXPECT_EQ(e.code, wanted);
    EXPECT_NE(std::string(e.message).find(text), std::string::npos)
        << "expected \"" << text << "\", got \"" << e.message << "\"";
    e = fresh();
  }
  const TuttiPlugin* t = nullptr;
  TuttiSession* session = nullptr;
  TuttiError e = fresh();
  test::MultiplyAdd program;
};

TEST(Negotiation, RangesBeforeAnything) {
  uint32_t mine[2] = {};
  EXPECT_EQ(table(2, 9, mine, make), nullptr);
  EXPECT_EQ(mine[0], 1u);
  EXPECT_EQ(mine[1], 1u);
  EXPECT_EQ(table(0, 0, nullptr, make), nullptr);
  EXPECT_EQ(made, 0) << "nothing of the plugin may run before the versions agree";
  const TuttiPlugin* t = table(1, 7, mine, make);
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->abi, 1u);
  EXPECT_EQ(t->size, sizeof(TuttiPlugin));
  EXPECT_STREQ(t->name, "fake");
  EXPECT_EQ(table(0, 1, mine, make), t);
  EXPECT_EQ(made, 1);
  TuttiError e = fresh();
  TuttiArray list = {};
  EXPECT_EQ(t->devices(&list, &e), TUTTI_INVALID);
  EXPECT_NE(std::string(e.message).find("call init first"), std::string::npos);
}

TEST_F(Table, StatesAreWatchedByNameOnce) {
  auto ready = find_extension<TuttiReady>(t->extensions, TUTTI_EXT_READY);
  ASSERT_NE(ready.watch, nullptr);
  ASSERT_NE(find_extension<TuttiProfile>(t->extensions, TUTTI_EXT_PROFILE).times, nullptr) << "beside the others";
  ASSERT_NE(find_extension<TuttiNative>(t->extensions, TUTTI_EXT_NATIVE).state, nullptr);
  TuttiExecutable* x = compiled();
  TuttiReadySink sink = [](void*, uint32_t, const void*) {};
  const std::string state = program.raw().states.count ? element_of<TuttiState>(program.raw().states, 0).name : "";
  const char *one[] = {state.c_str()}, *twice[] = {state.c_str(), state.c_str()}, *other[] = {"other"},
             *null[] = {nullptr};
  expect(ready.watch(x, one, 1, nullptr, sink, &e), TUTTI_INVALID, "call prepare first");
  ASSERT_EQ(t->prepare(x, &e), TUTTI_OK);
  expect(ready.watch(x, nullptr, 1, nullptr, sink, &e), TUTTI_INVALID, "the array of states is NULL");
  expect(ready.watch(x, null, 1, nullptr, sink, &e), TUTTI_INVALID, "a state's name is NULL");
  expect(ready.watch(x, one, 1, nullptr, nullptr, &e), TUTTI_INVALID, "the function is NULL");
  expect(ready.watch(x, other, 1, nullptr, sink, &e), TUTTI_INVALID, "no state 'other'");
  expect(ready.watch(x, twice, 2, nullptr, sink, &e), TUTTI_INVALID, "given twice");
  expect(ready.watch(x, one, 1, nullptr, sink, &e), TUTTI_DECLINED, "does not report states during a run");
}

TEST_F(Table, ExecutablesAreConnectedAfterPrepare) {
  auto exchange = find_extension<TuttiExchange>(t->extensions, TUTTI_EXT_EXCHANGE);
  ASSERT_NE(exchange.connect, nullptr);
  TuttiExecutable* x = compiled();
  TuttiExchangeSink sink = [](void*, uint64_t, void*, uint64_t) {};
  expect(exchange.connect(x, nullptr, sink, &e), TUTTI_INVALID, "call prepare first");
  ASSERT_EQ(t->prepare(x, &e), TUTTI_OK);
  expect(exchange.connect(x, nullptr, nullptr, &e), TUTTI_INVALID, "the function is NULL");
  expect(exchange.connect(x, nullptr, sink, &e), TUTTI_DECLINED, "does not exchange values with other processes");
}

TEST_F(Table, GroupsOfRanksAreCheckedAndOtherwiseDeclined) {
  auto c = find_extension<TuttiCollective>(t->extensions, TUTTI_EXT_COLLECTIVE);
  auto s = find_extension<TuttiSums>(t->extensions, TUTTI_EXT_SUMS);
  TuttiExecutable* x = compiled();
  uint8_t id[128] = {};
  const char *twice[] = {"a", "a"}, *other[] = {"other"}, *text = "";
  const uint32_t one = 1;
  uint64_t ticket = 0;
  expect(c.join(session, id, 2, 2, &e), TUTTI_INVALID, "rank 2 of 2 ranks");
  expect(c.all_reduce(session, twice, 2, &e), TUTTI_INVALID, "given twice");
  expect(s.prepare_sums(x, other, &one, 1, &e), TUTTI_INVALID, "call prepare first");
  ASSERT_EQ(t->prepare(x, &e), TUTTI_OK);
  expect(s.prepare_sums(x, other, &one, 1, &e), TUTTI_INVALID, "no state 'other'");
  expect(s.run_and_sum(x, &ticket, &e), TUTTI_INVALID, "call prepare_sums first");
  for (int32_t code : {c.unique_id(id, &e), c.join(session, id, 0, 1, &e), c.leave(session, &e),
                       s.library(session, &text, &e), s.abandon(session, &e), s.mark(session, &ticket, &e)})
    EXPECT_EQ(code, TUTTI_DECLINED);
}

TEST_F(Table, TimesAreOfTheLastRunWhereCompileWasAskedForThem) {
  auto profile = find_extension<TuttiProfile>(t->extensions, TUTTI_EXT_PROFILE);
  ASSERT_NE(profile.times, nullptr);
  TuttiArray times = {};
  TuttiExecutable* plain = compiled();
  ASSERT_EQ(t->prepare(plain, &e), TUTTI_OK);
  expect(profile.times(plain, &times, &e), TUTTI_INVALID, "compile was not given TUTTI_OPT_PROFILE");
  expect(profile.times(nullptr, &times, &e), TUTTI_INVALID, "the executable is NULL");
  TuttiOptions options = {.size = sizeof(TuttiOptions), .flags = TUTTI_OPT_PROFILE};
  TuttiExecutable* x = nullptr;
  TuttiMemory m = {sizeof m};
  TuttiProgram raw = program.raw();
  ASSERT_EQ(t->compile(session, &raw, &options, &x, &m, &e), TUTTI_OK) << e.message;
  ASSERT_EQ(t->prepare(x, &e), TUTTI_OK);
  ASSERT_EQ(profile.times(x, &times, &e), TUTTI_OK) << e.message;
  ASSERT_EQ(times.count, 1u) << "what a run will start";
  EXPECT_STREQ(element_of<TuttiNodeTime>(times, 0).kernel, "first kernel");
  EXPECT_EQ(element_of<TuttiNodeTime>(times, 0).nanoseconds, 0u);
  std::vector<void*> feeds(16);
  ASSERT_EQ(t->stage(x, feeds.data(), &e), TUTTI_OK);
  uint64_t ticket = 0;
  ASSERT_EQ(t->run(x, &ticket, &e), TUTTI_OK) << e.message;
  expect(profile.times(x, nullptr, &e), TUTTI_INVALID, "the array is NULL");
  ASSERT_EQ(profile.times(x, &times, &e), TUTTI_OK) << e.message;
  ASSERT_EQ(times.count, 2u);
  auto first = element_of<TuttiNodeTime>(times, 0), second = element_of<TuttiNodeTime>(times, 1);
  EXPECT_EQ(first.node, 0u);
  EXPECT_EQ(first.start, 0u) << "the first kernel of a run";
  EXPECT_EQ(first.nanoseconds, 30u);
  EXPECT_STREQ(first.kernel, "first kernel");
  EXPECT_STREQ(first.reason, "another declined");
  EXPECT_EQ(second.node, TUTTI_NONE);
  EXPECT_EQ(second.start, 40u);
  EXPECT_STREQ(second.reason, "");
  fault = [] { throw Error(Code::device_lost, "gone"); };
  expect(profile.times(x, &times, &e), TUTTI_DEVICE_LOST, "gone");
  EXPECT_EQ(times.count, 0u);
}

TEST_F(Table, ThePluginsOwnMethodsAreCalledOneAtATime) {
  std::atomic<int> inside = 0, most = 0;
  fault = [&] {
    int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --inside;
  };
  std::vector<std::thread> threads;
  TuttiSession* opened[3] = {};
  for (TuttiSession*& own : opened)
    threads.emplace_back([&] {
      TuttiError error = fresh();
      EXPECT_EQ(t->open(0, {}, &own, &error), TUTTI_OK);
    });
  TuttiArray list = {};
  EXPECT_EQ(t->devices(&list, &e), TUTTI_OK);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  for (TuttiSession* own : opened) t->close(own);
}

TEST_F(Table, EveryExceptionBecomesACode) {
  const auto wait = [&] { return t->wait(session, 0, 0, &e); };
  fault = [] { throw Error(Code::device_lost, "gone", "restart"); };
  expect(wait(), TUTTI_DEVICE_LOST, "gone; restart");
  fault = [] { throw Error(Code::timeout, "late"); };
  expect(wait(), TUTTI_TIMEOUT, "late");
  fault = [] { throw Error(Code::ok, "odd"); };
  expect(wait(), TUTTI_INTERNAL, "odd");
  fault = [] { throw std::bad_alloc(); };
  expect(wait(), TUTTI_NO_MEMORY, "out of host memory");
  fault = [] { throw std::runtime_error("plain"); };
  expect(wait(), TUTTI_INTERNAL, "plain");
  fault = [] { throw 7; };
  expect(wait(), TUTTI_INTERNAL, "unknown type");
  fault = [] { throw NodeError(3, Code::declined, "node 3"); };
  EXPECT_EQ(wait(), TUTTI_DECLINED);
  EXPECT_EQ(e.node, 3u);
  EXPECT_EQ(t->wait(session, 0, 0, nullptr), TUTTI_DECLINED) << "without a buffer the code alone";
  TuttiArray list;
  fault = [] { throw std::runtime_error("no driver"); };
  e = fresh();
  expect(t->devices(&list, &e), TUTTI_INTERNAL, "no driver");
  TuttiSession* s = session;
  expect(t->open(0, {}, &s, &e), TUTTI_INTERNAL, "no driver");
  EXPECT_EQ(s, nullptr);
}

TEST_F(Table, MessagesFitTheCallersBuffer) {
  std::string text;
  fault = [&] { throw invalid(text); };
  for (size_t length : {0u, 1u, 1006u, 1007u, 1008u, 5000u}) {
    text.assign(length, 'x');
    e = fresh();
    t->wait(session, 0, 0, &e);
    EXPECT_EQ(std::strlen(e.message), std::min<size_t>(length, 1007));
  }
  for (size_t start = 1000; start < 1008; ++start) {  // a three-byte character across the end
    text = std::string(start, 'x') + "€€€";
    e = fresh();
    t->wait(session, 0, 0, &e);
    size_t length = std::strlen(e.message);
    EXPECT_EQ((length - start) % 3, 0u) << "cut inside a character at " << start;
    EXPECT_GT(length, 1007u - 3);
  }
  text = "a long message about something";
  for (uint32_t size : {0u, 4u, 8u, 12u, 16u, 17u, 20u}) {  // an older or careless host's buffer
    e = fresh();
    TuttiError before = e;
    e.size = before.size = size;
    EXPECT_EQ(t->wait(session, 0, 0, &e), TUTTI_INVALID);
    EXPECT_EQ(std::memcmp(reinterpret_cast<char*>(&e) + std::max(size, 4u),
                          reinterpret_cast<char*>(&before) + std::max(size, 4u), sizeof e - std::max(size, 4u)),
              0)
        << "wrote past " << size << " bytes";
    if (size == 20) {
      EXPECT_STREQ(e.message, "a l");
    }
  }
}

TEST_F(Table, NullArguments) {
  TuttiProgram raw = program.raw();
  TuttiExecutable* x = nullptr;
  TuttiMemory m = {sizeof m};
  uint8_t accepted[2];
  uint64_t n = 0;
  float f = 0;
  expect(t->devices(nullptr, &e), TUTTI_INVALID, "devices: the array is NULL");
  expect(t->open(0, {}, nullptr, &e), TUTTI_INVALID, "open: the session pointer is NULL");
  expect(t->check(nullptr, &raw, accepted, {}, &e), TUTTI_INVALID, "check: the session is NULL");
  expect(t->check(session, nullptr, accepted, {}, &e), TUTTI_INVALID, "check: the program is NULL");
  expect(t->check(session, &raw, nullptr, {}, &e), TUTTI_INVALID, "check: the array of verdicts is NULL");
  expect(t->compile(nullptr, &raw, nullptr, &x, &m, &e), TUTTI_INVALID, "compile: the session is NULL");
  expect(t->compile(session, nullptr, nullptr, &x, &m, &e), TUTTI_INVALID, "compile: the program is NULL");
  expect(t->compile(session, &raw, nullptr, nullptr, &m, &e), TUTTI_INVALID, "compile: the executable pointer is NULL");
  expect(t->compile(session, &raw, nullptr, &x, nullptr, &e), TUTTI_INVALID, "compile: the memory struct is NULL");
  m.size = 0;
  expect(t->compile(session, &raw, nullptr, &x, &m, &e), TUTTI_INVALID, "size of the memory struct is 0");
  expect(t->prepare(nullptr, &e), TUTTI_INVALID, "prepare: the executable is NULL");
  expect(t->stage(nullptr, nullptr, &e), TUTTI_INVALID, "stage: the executable is NULL");
  expect(t->run(nullptr, &n, &e), TUTTI_INVALID, "run: the executable is NULL");
  expect(t->wait(nullptr, 0, 0, &e), TUTTI_INVALID, "wait: the session is NULL");
  expect(t->usage(nullptr, &n, &n, &e), TUTTI_INVALID, "usage: the session is NULL");
  expect(t->usage(session, nullptr, &n, &e), TUTTI_INVALID, "usage: the current count is NULL");
  expect(t->usage(session, &n, nullptr, &e), TUTTI_INVALID, "usage: the peak is NULL");
  expect(t->read(session, nullptr, &f, 4, &e), TUTTI_INVALID, "read: the state's name is NULL");
  expect(t->read(session, "s", nullptr, 4, &e), TUTTI_INVALID, "read: the destination is NULL");
  expect(t->write(session, "s", nullptr, 4, &e), TUTTI_INVALID, "write: the source is NULL");
  expect(t->write(nullptr, "s", &f, 4, &e), TUTTI_INVALID, "write: the session is NULL");
  t->close(nullptr);
  t->release(nullptr);
}

TEST_F(Table, DevicesOptionsAndLog) {
  TuttiArray list = {};
  ASSERT_EQ(t->devices(&list, &e), TUTTI_OK);
  EXPECT_EQ(told, std::vector<std::string>{"asked for devices"});
  ASSERT_EQ(list.count, 2u);
  auto* d = static_cast<const TuttiDevice*>(list.at);
  EXPECT_STREQ(d[0].name, "first");
  EXPECT_EQ(d[0].unusable, nullptr);
  EXPECT_EQ(d[0].pci, nullptr);
  EXPECT_EQ(d[0].uuid[15], 9);
  EXPECT_STREQ(d[1].unusable, "broken");
  struct GrownPair {
    TuttiPair pair;
    uint64_t more;
  };
  std::vector<GrownPair> pairs = {{{"threads", "2"}, 1}, {{"depth", "3"}, 1}};
  TuttiSession* s = nullptr;
  told.clear();
  ASSERT_EQ(t->open(0, test::RawProgram::array(pairs), &s, &e), TUTTI_OK);
  EXPECT_EQ(told, (std::vector<std::string>{"depth=3", "threads=2"}));
  t->close(s);
  pairs[1].pair.key = "threads";
  expect(t->open(0, test::RawProgram::array(pairs), &s, &e), TUTTI_INVALID, "option 'threads' is given twice");
  pairs[1].pair.value = nullptr;
  expect(t->open(0, test::RawProgram::array(pairs), &s, &e), TUTTI_INVALID, "option 1 has no key or no value");
  expect(t->init(&host, &e), TUTTI_INVALID, "init: called twice");
}

struct Reasons {
  std::map<uint32_t, std::string> texts;
  TuttiSink sink() {
    return {this, [](void* to, uint32_t node, const char* text) { static_cast<Reasons*>(to)->texts[node] += text; }};
  }
};

TEST_F(Table, CheckAnswersEveryNode) {
  uint32_t y = program.value(TUTTI_TEMP, TUTTI_F32, {3}), z = program.value(TUTTI_TEMP, TUTTI_F32, {3});
  program.node("silent", {0}, {y});
  program.node("mul", {0, 1}, {z}).flags = 16;
  TuttiProgram raw = program.raw();
  uint8_t accepted[4] = {9, 9, 9, 9};
  Reasons why;
  ASSERT_EQ(t->check(session, &raw, accepted, why.sink(), &e), TUTTI_OK) << e.message;
  EXPECT_EQ(accepted[0], 1);
  EXPECT_EQ(accepted[1], 0);
  EXPECT_EQ(accepted[2], 0);
  EXPECT_EQ(accepted[3], 0) << "a flag that the SDK does not know declines, whatever the plugin says";
  EXPECT_EQ(why.texts, (std::map<uint32_t, std::string>{
                           {1, "no adder"}, {2, "the plugin gave no reason"}, {3, "unknown node flags 0x10"}}));
  EXPECT_EQ(t->check(session, &raw, accepted, {}, &e), TUTTI_OK) << "a host need not listen";
  TuttiExecutable* x = nullptr;
  TuttiMemory m = {sizeof m};
  EXPECT_EQ(t->compile(session, &raw, nullptr, &x, &m, &e), TUTTI_DECLINED);
  EXPECT_EQ(e.node, 3u);
  EXPECT_EQ(x, nullptr);
  program.nodes[1].version = 0;
  raw = program.raw();
  EXPECT_EQ(t->check(session, &raw, accepted, {}, &e), TUTTI_INVALID);
  EXPECT_EQ(e.node, 1u) << "errors of one node carry its number";
}

TEST_F(Table, OrderOfCalls) {
  TuttiExecutable* x = compiled();
  void* feeds[2] = {};
  uint64_t ticket = 0;
  expect(t->stage(x, feeds, &e), TUTTI_INVALID, "call prepare first");
  expect(t->run(x, &ticket, &e), TUTTI_INVALID, "call prepare first");
  fault = [] { throw Error(Code::no_memory, "full"); };
  expect(t->prepare(x, &e), TUTTI_NO_MEMORY, "full");
  expect(t->run(x, &ticket, &e), TUTTI_INVALID, "call prepare first");
  fault = nullptr;
  EXPECT_EQ(t->prepare(x, &e), TUTTI_OK);
  expect(t->prepare(x, &e), TUTTI_INVALID, "called twice");
  expect(t->run(x, &ticket, &e), TUTTI_INVALID, "2 feeds were not staged");
  expect(t->stage(x, nullptr, &e), TUTTI_INVALID, "the array of feeds is NULL");
  EXPECT_EQ(t->stage(x, feeds, &e), TUTTI_OK);
  EXPECT_NE(feeds[1], nullptr);
  expect(t->run(x, nullptr, &e), TUTTI_INVALID, "the ticket is NULL");
  EXPECT_EQ(t->run(x, &ticket, &e), TUTTI_OK);
  EXPECT_EQ(ticket, 1u);
  expect(t->run(x, &ticket, &e), TUTTI_INVALID, "not staged since the last run");
}

TEST_F(Table, GrownStructsAndHandles) {
  struct GrownMemory {
    TuttiMemory m;
    uint64_t more;
  } grown = {{sizeof grown, 0, 9, 9, 9, 9, 9}, 77};
  struct GrownOptions {
    TuttiOptions o;
    uint64_t more;
  } options = {{sizeof options, 0, 4096}, 3};
  TuttiProgram raw = program.raw();
  TuttiExecutable* x = nullptr;
  ASSERT_EQ(t->compile(session, &raw, &options.o, &x, &grown.m, &e), TUTTI_OK);
  EXPECT_EQ(FakeSession::tuning, 4096u);
  EXPECT_EQ(grown.m.size, sizeof grown);
  EXPECT_EQ(grown.m.staging, 5u);
  EXPECT_EQ(grown.more, 0u) << "fields that the plugin does not know count nothing";
  TuttiOptions small = {8, 0, 4096};
  ASSERT_NE(compiled(), nullptr);
  EXPECT_EQ(FakeSession::tuning, 0u);
  TuttiExecutable* y = nullptr;
  ASSERT_EQ(t->compile(session, &raw, &small, &y, &grown.m, &e), TUTTI_OK);
  EXPECT_EQ(FakeSession::tuning, 0u) << "beyond the host's size nothing is read";
  EXPECT_EQ(executables, 3);
  t->release(x);
  EXPECT_EQ(executables, 2);  // the others go with the session
}

}  // namespace
}  // namespace tutti::sdk

#include "tests/verify/conformance/session.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "backends/reference/reference.h"
#include "tests/verify/conformance/faults.h"

namespace tutti::mock {
namespace {

bool on(const char* fault) { return Faults::get().on(fault); }

/// Whether the fault bad_product hits the node.
bool bad_product(const sdk::Program& p, const sdk::Node& n) {
  if (!on("bad_product") || n.op != "matmul") return false;
  const Shape &a = p.type(n.inputs[0]).shape, &b = p.type(n.inputs[1]).shape, &y = p.type(n.results[0]).shape;
  bool ta = n.attrs.i("ta"), tb = n.attrs.i("tb");
  int64_t m = y[y.size() - 2], k = a[a.size() - (ta ? 2 : 1)];
  std::string where = Faults::get().argument("bad_product");
  Shape batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  return where == "row"     ? m == 1
         : where == "large" ? m * y.back() >= 200000
         : where == "ta"    ? ta && k > 8
         : where == "long"  ? k >= 700
         : where == "both"  ? ta && tb
                            : where == "batch" && batch_a != batch_b;
}

/// After the fault "sticky", like a GPU's context after an illegal access.
std::atomic<bool> poisoned = false;

void refuse_if_poisoned() {
  if (poisoned) throw Error(Code::internal, "an illegal memory access was encountered");
}

std::atomic<uint64_t> made = 0;  // sessions

/// What a session and its executables know of each other.
struct Shared {
  std::unique_ptr<sdk::Session> inner;
  uint64_t number = made++;  // of the session
  uint64_t prepares = 0, runs = 0, waited = 0, leaked = 0;
  bool lost = false, wrong = false;
  std::vector<std::vector<std::byte>> kept;                    // of late_free
  std::map<std::string, std::vector<std::byte>> last, before;  // of stale_read: states as read now and one run ago
  std::map<std::string, size_t> sizes;
};

class MockExecutable : public sdk::Executable {
 public:
  MockExecutable(Shared& shared, const sdk::Program& program, std::unique_ptr<sdk::Executable> inner)
      : shared_(shared), inner_(std::move(inner)) {
    for (const sdk::Node& n : program.nodes)
      for (const char* fault : {"corrupt", "crash_op", "hang_op", "exit_op", "sticky"})
        if (std::string named = Faults::get().argument(fault); on(fault) && (n.op == named || n.label == named))
          op_faults_.insert(fault);
    bool hit = shared_.wrong;
    for (const sdk::Node& n : program.nodes) hit = hit || bad_product(program, n);
    if (hit) op_faults_.insert("corrupt");
    for (const sdk::State& s : program.states) {
      states_.push_back(s.name);
      sizes_.push_back(num_bytes(program.type(s.after)));
      shared_.sizes[s.name] = sizes_.back();
      floats_.push_back(program.type(s.after).dtype == DType::f32 && s.after != s.before);
    }
    for (uint32_t v : program.feeds()) feed_bytes_.push_back(num_bytes(program.type(v)));
  }

  TuttiMemory memory() const override {
    TuttiMemory m = inner_->memory();
    if (on("wrong_size") && m.arena >= 64) m.arena -= 64;
    if (on("large_size")) m.arena += uint64_t{1} << 50;
    return m;
  }

  ~MockExecutable() override {
    static std::vector<std::vector<std::byte>> for_ever;
    if (on("leak_memory") && prepared_) keep_memory(for_ever);
    if (on("late_free") && prepared_) keep_memory(shared_.kept);
    if (!on("leak") || !prepared_) return;
    TuttiMemory m = inner_->memory();
    shared_.leaked += m.constants + m.arena + m.workspace + m.staging;
  }

  void prepare() override {
    if (on("fail_alloc") && ++shared_.prepares == Faults::get().number("fail_alloc"))
      throw Error(Code::no_memory, "no memory for the arena: 4096 bytes");
    for (size_t bytes : sizes_) {
      void* memory = on("abort_oom") ? std::malloc(bytes) : nullptr;
      if (on("abort_oom") && !memory) std::abort();
      std::free(memory);
    }
    inner_->prepare();
    prepared_ = true;
    if (!on("dirty_state")) return;
    for (size_t k = 0; k < states_.size(); ++k)
      shared_.inner->write(states_[k], std::vector<std::byte>(sizes_[k], std::byte{1}).data(), sizes_[k]);
  }

  void stage(std::span<void*> feeds) override {
    inner_->stage(feeds);
    if (on("null_feed"))
      for (void*& f : feeds) f = nullptr;
    if (!on("stale_feed")) return;
    // Like a device that reads the feeds of another run: all but the first see those of the run before.
    if (delayed_.empty())
      for (size_t bytes : feed_bytes_) delayed_.emplace_back(bytes);
    real_.assign(feeds.begin(), feeds.end());
    for (size_t i = 0; i < feeds.size(); ++i) feeds[i] = delayed_[i].data();
  }

  uint64_t run() override {
    const Faults& faults = Faults::get();
    ++shared_.runs;
    if (on("fail_run") && shared_.runs == faults.number("fail_run"))
      throw Error(Code::internal, fmt::format("the driver refused run {}", shared_.runs));
    if (shared_.lost) throw Error(Code::device_lost, "the device is gone");
    if (on("sleep")) std::this_thread::sleep_for(std::chrono::milliseconds(faults.number("sleep")));
    if (op_faults_.contains("crash_op")) std::raise(SIGSEGV);
    if (op_faults_.contains("exit_op")) std::_Exit(0);
    if (op_faults_.contains("sticky")) poisoned = true;
    refuse_if_poisoned();
    while (on("hang") || op_faults_.contains("hang_op")) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (on("stale_feed")) {
      const auto& seen = pending_.empty() ? delayed_ : pending_;
      for (size_t i = 0; i < real_.size(); ++i) std::memcpy(real_[i], seen[i].data(), feed_bytes_[i]);
      pending_ = delayed_;
    }
    if (on("stale_read"))
      for (size_t k = 0; k < states_.size(); ++k) shared_.before[states_[k]] = read(k);
    static std::atomic<int> running = 0;
    bool disturbed = ++running > 1;
    if (on("shared_scratch")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    uint64_t ticket = inner_->run();
    disturbed = running-- > 1 || disturbed;
    if (on("lost")) shared_.lost = true;
    if (op_faults_.contains("corrupt") || (on("shared_scratch") && disturbed))
      change([](float x) { return x * 1.01f + 0.0137f; });
    if (on("finite")) change([](float x) { return std::isfinite(x) ? x : 0.0f; }, true);
    if (on("flush")) change([](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0.0f : x; }, true);
    if (on("nondeterministic") && shared_.number % 2)
      change([](float x) {
        uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        bits ^= 1;
        std::memcpy(&x, &bits, sizeof bits);
        return x;
      });
    return ticket;
  }

 private:
  void keep_memory(std::vector<std::vector<std::byte>>& kept) const {
    TuttiMemory m = inner_->memory();
    kept.emplace_back(m.constants + m.arena + m.workspace + m.staging, std::byte{1});
  }
  std::vector<std::byte> read(size_t k) const {
    std::vector<std::byte> bytes(sizes_[k]);
    shared_.inner->read(states_[k], bytes.data(), bytes.size());
    return bytes;
  }
  /// Changes the first element of the first float state that the step wrote, or all elements of all.
  void change(float (*f)(float), bool all = false) {
    for (size_t k = 0; k < states_.size(); ++k) {
      if (!floats_[k] || sizes_[k] < sizeof(float)) continue;
      std::vector<std::byte> bytes = read(k);
      for (size_t at = 0; at < (all ? bytes.size() : sizeof(float)); at += sizeof(float)) {
        float x;
        std::memcpy(&x, &bytes[at], sizeof x);
        x = f(x);
        std::memcpy(&bytes[at], &x, sizeof x);
      }
      shared_.inner->write(states_[k], bytes.data(), bytes.size());
      if (!all) return;
    }
  }

  Shared& shared_;
  std::unique_ptr<sdk::Executable> inner_;
  std::set<std::string> op_faults_;  // that one of its ops brings
  bool prepared_ = false;
  std::vector<std::string> states_;
  std::vector<size_t> sizes_, feed_bytes_;
  std::vector<bool> floats_;
  std::vector<std::vector<std::byte>> delayed_, pending_;  // of stale_feed
  std::vector<void*> real_;
};

class MockSession : public sdk::Session {
 public:
  MockSession(std::unique_ptr<sdk::Session> inner, bool wrong) : own_(std::make_unique<Shared>()) {
    static Shared* common = nullptr;
    own_->inner = std::move(inner);
    own_->wrong = wrong;
    shared_ = own_.get();
    if (!on("shared")) return;
    if (!common) common = own_.release();  // lives as long as the process
    shared_ = common;
  }

  void check(const sdk::Program& program, std::span<uint8_t> accepted, const sdk::Why& why) override {
    shared_->inner->check(program, accepted, why);
    for (uint32_t k = 0; k < program.nodes.size(); ++k) {
      if (!declines(program.nodes[k])) continue;
      accepted[k] = 0;
      why(k, fmt::format("no kernel for {}", program.nodes[k].op));
    }
  }

  std::unique_ptr<sdk::Executable> compile(sdk::Program program, const TuttiOptions& options) override {
    refuse_if_poisoned();
    for (uint32_t k = 0; k < program.nodes.size(); ++k)
      if (declines(program.nodes[k]))
        throw sdk::NodeError(k, Code::declined, fmt::format("no kernel for {}", program.nodes[k].op));
    sdk::Program copy = program;
    return std::make_unique<MockExecutable>(*shared_, copy, shared_->inner->compile(std::move(program), options));
  }

  void wait(uint64_t ticket, uint64_t timeout_ns) override {
    refuse_if_poisoned();
    if (on("late_error") && shared_->runs) throw Error(Code::internal, "a kernel of run 1 failed");
    if (shared_->lost) throw Error(Code::device_lost, "the device is gone");
    if (on("patient")) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    shared_->waited = shared_->runs;
    if (!on("any_ticket")) shared_->inner->wait(ticket, timeout_ns);
  }

  void forget(const std::string& state) override {
    refuse_if_poisoned();
    if (!on("keep_states")) shared_->inner->forget(state);
  }

  void usage(uint64_t& now, uint64_t& peak) override {
    shared_->inner->usage(now, peak);
    now += shared_->leaked;
    peak = std::max(peak, now);
  }

  void read(const std::string& state, void* to, size_t bytes) override {
    refuse_if_poisoned();
    auto it = shared_->before.find(state);
    if (it != shared_->before.end() && it->second.size() == bytes) {
      std::memcpy(to, it->second.data(), bytes);
      return;
    }
    if (std::vector<std::byte> all; resized(state, bytes, all)) {
      shared_->inner->read(state, all.data(), all.size());
      std::memcpy(to, all.data(), std::min(bytes, all.size()));
      return;
    }
    shared_->inner->read(state, to, bytes);
  }

  void write(const std::string& state, const void* from, size_t bytes) override {
    refuse_if_poisoned();
    if (on("lost_write") && shared_->runs > shared_->waited) return;
    shared_->before.erase(state);
    if (std::vector<std::byte> all; resized(state, bytes, all)) {
      shared_->inner->read(state, all.data(), all.size());
      std::memcpy(all.data(), from, std::min(bytes, all.size()));
      return shared_->inner->write(state, all.data(), all.size());
    }
    shared_->inner->write(state, from, bytes);
  }

 private:
  static bool declines(const sdk::Node& n) { return on("decline") && n.op == Faults::get().argument("decline"); }
  /// Whether any_size is to make a wrong size right.
  bool resized(const std::string& state, size_t bytes, std::vector<std::byte>& all) const {
    auto it = shared_->sizes.find(state);
    if (!on("any_size") || it == shared_->sizes.end() || it->second == bytes) return false;
    all.resize(it->second);
    return true;
  }
  std::unique_ptr<Shared> own_;
  Shared* shared_;
};

class MockPlugin : public sdk::Plugin {
 public:
  const char* name() const override { return "mock"; }
  const char* version() const override { return TUTTI_VERSION; }

  void init(sdk::Host host) override {
    sdk::Plugin::init(host);
    if (const std::string& unknown = Faults::get().unknown(); !unknown.empty())
      throw invalid(fmt::format("TUTTI_MOCK: unknown fault '{}'", unknown),
                    "tests/verify/conformance/faults.h lists them");
    if (on("init_error")) throw Error(Code::internal, "no driver of version 7 found");
  }

  std::vector<sdk::Device> devices() override {
    std::vector<sdk::Device> all = inner_->devices();
    all[0].name = "Mock device";
    if (on("no_device")) all[0].unusable = "the mock's cable is not plugged in";
    if (on("bad_device")) {
      all[0].name = "";
      all[0].kind = 99;
    }
    if (on("no_driver")) all[0].driver = "";
    if (on("bad_memory")) all[0].memory_total = all[0].memory_free = Faults::get().number("bad_memory");
    if (on("abort_oom")) all[0].kind = TUTTI_CPU;
    if (on("devices")) all.resize(Faults::get().number("devices"), all[0]);
    return all;
  }

  std::unique_ptr<sdk::Session> open(uint32_t device, const sdk::Options& options) override {
    if (on("no_device")) throw invalid("mock: device 0 cannot be used: the cable is not plugged in");
    refuse_if_poisoned();
    bool another = on("devices") && device < Faults::get().number("devices");
    return std::make_unique<MockSession>(
        inner_->open(on("any_device") || another ? 0 : device, on("any_option") ? sdk::Options{} : options),
        on("second") && device == 1);
  }

 private:
  std::unique_ptr<sdk::Plugin> inner_{reference::make_plugin()};
};

}  // namespace

sdk::Plugin* make_plugin() { return new MockPlugin; }

}  // namespace tutti::mock

// The reference, which declines some ops: those named in the file LIBRARY.txt, separated by white space. Where that
// says "tuning", programs compiled with memory for measuring need more. For the tests of strictness,
// fallback and plans.
#define TUTTI_BUILDING_PLUGIN
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "backends/reference/reference.h"
#include "sdk/plugin.h"

namespace {

using namespace tutti;

std::set<std::string> read_declined() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&read_declined), &self);
  std::ifstream in(std::string(self.dli_fname) + ".txt");
  return {std::istream_iterator<std::string>(in), {}};
}

/// What measured kernels of the prepared programs take beside the rest.
struct Measured {
  uint64_t now = 0, peak = 0;  ///< peak: of everything
};

class TunedExecutable : public sdk::Executable {
 public:
  TunedExecutable(std::unique_ptr<sdk::Executable> inner, sdk::Session& session, Measured& measured)
      : inner_(std::move(inner)), session_(session), measured_(measured) {}
  ~TunedExecutable() override { measured_.now -= mine_; }
  TuttiMemory memory() const override {
    TuttiMemory m = inner_->memory();
    m.workspace += 4096;
    return m;
  }
  void prepare() override {
    inner_->prepare();
    mine_ = 4096;
    measured_.now += mine_;
    uint64_t now = 0, peak = 0;
    session_.usage(now, peak);
    measured_.peak = std::max(measured_.peak, now + measured_.now);
  }
  void stage(std::span<void*> feeds) override { inner_->stage(feeds); }
  uint64_t run() override { return inner_->run(); }

 private:
  std::unique_ptr<sdk::Executable> inner_;
  sdk::Session& session_;
  Measured& measured_;
  uint64_t mine_ = 0;
};

class PickySession : public sdk::Session {
 public:
  explicit PickySession(std::unique_ptr<sdk::Session> inner) : inner_(std::move(inner)), declined_(read_declined()) {}

  void check(const sdk::Program& p, std::span<uint8_t> accepted, const sdk::Why& why) override {
    inner_->check(p, accepted, why);
    for (uint32_t k = 0; k < p.nodes.size(); ++k) {
      if (!declined_.contains(p.nodes[k].op)) continue;
      accepted[k] = 0;
      why(k, fmt::format("no taste for {}", p.nodes[k].op));
    }
  }
  std::unique_ptr<sdk::Executable> compile(sdk::Program p, const TuttiOptions& options) override {
    for (uint32_t k = 0; k < p.nodes.size(); ++k)
      if (declined_.contains(p.nodes[k].op))
        throw sdk::NodeError(k, Code::declined, fmt::format("no taste for {}", p.nodes[k].op));
    auto made = inner_->compile(std::move(p), options);
    if (options.tuning_bytes && declined_.contains("tuning"))
      made = std::make_unique<TunedExecutable>(std::move(made), *inner_, measured_);
    return made;
  }
  void wait(uint64_t ticket, uint64_t timeout_ns) override { inner_->wait(ticket, timeout_ns); }
  void usage(uint64_t& now, uint64_t& peak) override {
    inner_->usage(now, peak);
    now += measured_.now;
    peak = std::max(peak, measured_.peak);
  }
  void read(const std::string& s, void* to, size_t bytes) override { inner_->read(s, to, bytes); }
  void write(const std::string& s, const void* from, size_t bytes) override { inner_->write(s, from, bytes); }

 private:
  std::unique_ptr<sdk::Session> inner_;
  std::set<std::string> declined_;
  Measured measured_;
};

class PickyPlugin : public sdk::Plugin {
 public:
  const char* name() const override { return "picky"; }
  const char* version() const override { return "1.0"; }
  std::vector<sdk::Device> devices() override {
    auto all = inner_->devices();
    all[0].name = "Picky device";
    all[0].kind = TUTTI_DISCRETE;
    return all;
  }
  std::unique_ptr<sdk::Session> open(uint32_t device, const sdk::Options& options) override {
    return std::make_unique<PickySession>(inner_->open(device, options));
  }

 private:
  std::unique_ptr<sdk::Plugin> inner_{reference::make_plugin()};
};

}  // namespace

extern "C" const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return sdk::table(host_min, host_max, mine, []() -> sdk::Plugin* { return new PickyPlugin; });
}

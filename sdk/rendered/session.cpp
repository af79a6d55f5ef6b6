#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "sdk/rendered/cache.h"
#include "sdk/rendered/executable.h"
#include "sdk/rendered/group.h"
#include "sdk/rendered/guard.h"
#include "sdk/rendered/plan.h"
#include "sdk/rendered/rendered.h"
#include "sdk/rendered/self_check.h"
#include "sdk/rendered/texts.h"

namespace tutti::sdk {
namespace {

class RenderedSession : public Session {
 public:
  RenderedSession(std::unique_ptr<Driver> driver, const Host& host)
      : shared_(std::move(driver), host),
        exact_traits_(exact(shared_.driver->traits())),
        cache_(shared_.driver->traits()),
        exact_cache_(exact_traits_) {}

  void check(const Program& program, std::span<uint8_t> accepted, const Why& why) override {
    for (uint32_t k = 0; k < program.nodes.size(); ++k) {
      const RenderChoice& choice = cache(program).choice(program, k);
      accepted[k] = choice.entry != nullptr;
      if (!choice.entry) why(k, choice.reasons());
    }
  }

  std::unique_ptr<Executable> compile(Program program, const TuttiOptions& options) override {
    const Traits& traits = program.numerics == TUTTI_EXACT ? exact_traits_ : shared_.driver->traits();
    RenderedPlan plan = plan_rendered(program, traits, cache(program), dispatch_trace(shared_.host),
                                      options.flags & TUTTI_OPT_TUNE ? options.tuning_bytes : 0);
    trace_texts(shared_.host, traits, plan);
    bool timed = (options.flags & TUTTI_OPT_PROFILE) != 0;
    return make_rendered_executable(shared_, std::move(program), std::move(plan), timed);
  }

  void wait(uint64_t ticket, uint64_t timeout_ns) override {
    if (ticket) shared_.driver->wait(ticket, timeout_ns);
  }

  void usage(uint64_t& now, uint64_t& peak) override {
    now = shared_.memory.meter.now();
    peak = shared_.memory.meter.peak();
  }

  void read(const std::string& state, void* to, size_t bytes) override { shared_.states.read(state, to, bytes); }
  void write(const std::string& state, const void* from, size_t bytes) override {
    shared_.states.write(state, from, bytes);
  }
  void forget(const std::string& state) override {
    group_.drop();
    shared_.states.forget(state);
  }

  std::string group_library() override { return shared_.driver->group_library(); }
  void join(const GroupId& id, uint32_t rank, uint32_t ranks) override { shared_.driver->join(id, rank, ranks); }
  void leave() override {
    group_.drop();
    shared_.driver->leave();
  }
  void abandon() override { shared_.driver->abandon(); }
  void all_reduce(const std::vector<std::string>& states) override { group_.run(states, {}); }
  void broadcast(const std::vector<std::string>& states, uint32_t root) override { group_.run(states, root); }
  uint64_t mark() override { return shared_.driver->mark(); }

 private:
  /// The traits for programs with exact numerics.
  static Traits exact(Traits traits) {
    traits.exact = true;
    traits.library = nullptr;
    return traits;
  }
  RenderCache& cache(const Program& program) { return program.numerics == TUTTI_EXACT ? exact_cache_ : cache_; }

  RenderedShared shared_;
  RankGroup group_{*shared_.driver, shared_.states};
  Traits exact_traits_;
  RenderCache cache_, exact_cache_;
};

}  // namespace

std::unique_ptr<Session> make_rendered_session(std::unique_ptr<Driver> driver, const Host& host) {
  check_traits(driver->traits());
  const char* guarded = std::getenv("TUTTI_SENTINELS");
  if (guarded && *guarded && *guarded != '0') driver = make_guarded_driver(std::move(driver));
  return std::make_unique<RenderedSession>(std::move(driver), host);
}

std::unique_ptr<Session> RenderedPlugin::open(uint32_t device, const Options& options) {
  std::vector<Device> all = devices();
  if (device >= all.size())
    throw invalid(fmt::format("{}: no device {}", name(), device),
                  all.empty() ? "this plugin has no devices on this machine"
                              : fmt::format("its devices are 0 to {}", all.size() - 1));
  if (!all[device].unusable.empty())
    throw invalid(fmt::format("{}: device {} cannot be used: {}", name(), device, all[device].unusable));
  Options others = options;
  auto asked = others.extract("self_check");
  std::unique_ptr<Driver> driver = make_driver_for(device, others);
  if (!asked.empty()) self_check(*driver, asked.mapped(), all[device]);
  return make_rendered_session(std::move(driver), host_);
}

std::unique_ptr<Driver> RenderedPlugin::make_driver_for(uint32_t device, const Options& options) {
  if (!options.empty())
    throw invalid(fmt::format("{}: unknown option '{}'", name(), options.begin()->first), "this device has no options");
  return make_driver(device);
}

}  // namespace tutti::sdk

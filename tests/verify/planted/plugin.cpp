// A device that computes by the op records, node after node, but for one planted fault: the one named in the file
// LIBRARY.txt (none: "none"). For the tests of bisect.
#define TUTTI_BUILDING_PLUGIN
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "backends/reference/convert.h"
#include "backends/reference/exact.h"
#include "backends/reference/executable.h"
#include "graph/eval.h"
#include "sdk/plugin.h"
#include "tests/verify/planted/faults.h"

namespace tutti::planted {
namespace {

std::string read_fault() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&read_fault), &self);
  std::ifstream in(std::string(self.dli_fname) + ".txt");
  std::string name;
  in >> name;
  return name;
}

class PlantedExecutable : public sdk::Executable {
 public:
  PlantedExecutable(reference::Shared& shared, const std::string& fault, sdk::Program program)
      : shared_(shared), fault_(fault), p_(std::move(program)), values_(p_.values.size()), old_(p_.nodes.size()) {
    for (uint32_t k = 0; k < p_.nodes.size(); ++k) bound_.push_back(reference::bind(p_, k));
    for (const sdk::State& s : p_.states) state_bytes_ += shared_.states.declare(s.name, p_.type(s.after));
    for (uint32_t v : p_.feeds()) feeds_.emplace_back(num_bytes(p_.type(v)));
    for (uint32_t v = 0; v < values_.size(); ++v)
      if (p_.values[v].role == TUTTI_CONST) values_[v] = reference::load(p_.type(v), p_.values[v].data.data());
  }

  TuttiMemory memory() const override {
    TuttiMemory m = {};
    m.size = sizeof m;
    m.state = state_bytes_;
    return m;
  }

  void prepare() override {
    for (const sdk::State& s : p_.states) shared_.states.allocate({s.name}, shared_.meter);
  }

  void stage(std::span<void*> feeds) override {
    for (size_t i = 0; i < feeds.size(); ++i) feeds[i] = feeds_[i].data();
  }

  uint64_t run() override {
    size_t i = 0;
    for (uint32_t v : p_.feeds()) values_[v] = reference::load(p_.type(v), feeds_[i++].data());
    for (const sdk::State& s : p_.states)
      if (s.before != TUTTI_NONE) values_[s.before] = reference::load(p_.type(s.before), shared_.states.data(s.name));
    for (uint32_t k = 0; k < p_.nodes.size(); ++k) run_node(k);
    for (const sdk::State& s : p_.states) reference::store(values_[s.after], shared_.states.data(s.name));
    return ++shared_.tickets;
  }

 private:
  bool kept(uint32_t v) const {
    return std::ranges::any_of(p_.states, [&](const sdk::State& s) { return s.after == v; });
  }

  /// Whether the program has that node and does not keep its (first) result: it could be computed along with the next
  /// one.
  bool hidden(const std::string& op, const std::string& label) const {
    return std::ranges::any_of(
        p_.nodes, [&](const sdk::Node& n) { return n.op == op && n.label == label && !kept(n.results[0]); });
  }

  void run_node(uint32_t k) {
    const sdk::Node& n = p_.nodes[k];
    Work w{n.op, n.label, {}, {}, bound_[k].attrs};
    for (uint32_t v : n.inputs) w.in.push_back(values_[v]);
    before(fault_, w);
    bool exact = p_.numerics == TUTTI_EXACT;
    w.out = exact ? reference::evaluate_exact(*bound_[k].op, w.in, w.attrs) : evaluate(*bound_[k].op, w.in, w.attrs);
    exact ? after_exact(fault_, w) : after(fault_, w);
    if (fault_ == "stale" && n.op == "matmul" && n.label == "4") {
      std::swap(w.out, old_[k]);
      if (w.out.empty()) w.out = old_[k];
    }
    if (fault_ == "fused" && n.op == "relu" && n.label == "1" && hidden("conv2d", "0") && hidden("add", "0"))
      for (double& x : w.out[0].at) x = -x;
    if (fault_ == "together" && n.op == "reshape" && n.label == "3" && hidden("max_pool2d", "2"))
      std::ranges::reverse(w.out[0].at);
    bool plain = std::ranges::none_of(p_.states, [](const sdk::State& s) { return s.name.starts_with('%'); });
    if (fault_ == "crowded" && n.op == "sgd" && plain)
      for (size_t i = 0; i < w.out[0].at.size(); ++i) w.out[0].at[i] += 0.2 * (w.out[0].at[i] - w.in[0].at[i]);
    for (size_t r = 0; r < w.out.size(); ++r) {
      uint32_t v = n.results[r];
      if (v == TUTTI_NONE) continue;
      if (fault_ == "damaged" && n.op == "relu" && n.label == "1" && !kept(v))
        std::fill_n(w.out[r].at.begin(), w.out[r].at.size() / 2, 0.5);
      values_[v] = std::move(w.out[r]);
    }
  }

  reference::Shared& shared_;
  std::string fault_;
  sdk::Program p_;
  std::vector<reference::Bound> bound_;
  std::vector<Tensor> values_;
  std::vector<std::vector<Tensor>> old_;  // per node: what its last run gave
  std::vector<std::vector<std::byte>> feeds_;
  size_t state_bytes_ = 0;
};

class PlantedSession : public sdk::HostSession<reference::Shared> {
 public:
  void check(const sdk::Program& p, std::span<uint8_t> accepted, const sdk::Why& why) override {
    for (uint32_t k = 0; k < p.nodes.size(); ++k) {
      try {
        reference::bind(p, k);
        accepted[k] = fault_ != "decline" || p.nodes[k].op != "gather";
        if (!accepted[k]) why(k, "no taste for gather");
      } catch (const Error& e) {
        why(k, e.what());
      }
    }
  }
  std::unique_ptr<sdk::Executable> compile(sdk::Program p, const TuttiOptions&) override {
    return std::make_unique<PlantedExecutable>(shared_, fault_, std::move(p));
  }

 private:
  std::string fault_ = read_fault();
};

class PlantedPlugin : public sdk::Plugin {
 public:
  const char* name() const override { return "planted"; }
  const char* version() const override { return "1.0"; }
  std::vector<sdk::Device> devices() override {
    sdk::Device d;
    d.name = "a device with a planted fault";
    d.driver = "none";
    d.kind = TUTTI_SOFTWARE;
    return {d};
  }
  std::unique_ptr<sdk::Session> open(uint32_t, const sdk::Options&) override {
    return std::make_unique<PlantedSession>();
  }
};

}  // namespace
}  // namespace tutti::planted

extern "C" const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return tutti::sdk::table(host_min, host_max, mine,
                           []() -> tutti::sdk::Plugin* { return new tutti::planted::PlantedPlugin; });
}

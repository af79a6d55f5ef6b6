#include "train/run/profile.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/abi/growth.h"

namespace tutti {
namespace {

/// Attributes nodes to the nodes that kernels are named for (heads).
class Attribution {
 public:
  Attribution(const TuttiProgram& program, const std::set<uint32_t>& heads)
      : heads_(heads),
        head_(program.nodes.count, TUTTI_NONE),
        producer_(program.values.count, TUTTI_NONE),
        readers_(program.values.count) {
    for (uint32_t k = 0; k < program.nodes.count; ++k) nodes_.push_back(element_of<TuttiNode>(program.nodes, k));
    group_begin_.resize(nodes_.size(), TUTTI_NONE);
    for (uint32_t i = 0; i < program.groups.count; ++i) {
      auto g = element_of<TuttiGroup>(program.groups, i);
      for (uint32_t k = g.first; k < g.first + g.count && k < nodes_.size(); ++k) group_begin_[k] = g.first;
    }
    for (uint32_t k = 0; k < nodes_.size(); ++k) {
      head_[k] = heads.contains(k) ? k : head_of(k);
      for (uint32_t i = 0; i < nodes_[k].input_count; ++i) readers_[nodes_[k].inputs[i]].push_back(k);
      for (uint32_t r = 0; r < nodes_[k].result_count; ++r)
        if (uint32_t v = nodes_[k].results[r]; v != TUTTI_NONE) producer_[v] = k;
    }
    for (auto k = static_cast<uint32_t>(nodes_.size()); k-- > 0;)
      if (uint32_t h = head_[k]; h != TUTTI_NONE && h != k && only_copies(h)) head_[k] = head_of_reader(k);
    for (auto k = static_cast<uint32_t>(nodes_.size()); k-- > 0;) {
      if (std::string_view(nodes_[k].op) != "reshape" || heads.contains(k)) continue;
      // A reshape between two nodes of a kernel: else the value would count as written and read.
      uint32_t p = made_by(nodes_[k].inputs[0]);
      if (p != TUTTI_NONE && head_[p] == head_of_reader(k)) head_[k] = head_[p];
    }
  }

  uint32_t head(uint32_t node) const { return head_[node]; }

 private:
  uint32_t head_of(uint32_t k) const {
    const TuttiNode& n = nodes_[k];
    std::string_view op = n.op;
    bool read = std::any_of(n.results, n.results + n.result_count, [](uint32_t v) { return v != TUTTI_NONE; });
    if (moves(k) || !read) return TUTTI_NONE;
    if (op == "sum")
      for (uint32_t h : heads_)
        if (is_product(h) && reads(h, n.inputs[0])) return h;
    if (group_begin_[k] != TUTTI_NONE)
      for (uint32_t j = k; j-- > group_begin_[k];)
        if (heads_.contains(j)) return j;
    uint32_t last = TUTTI_NONE;  // producer of its last input, if possible by a kernel that can compute the node too
    auto rank = [&](uint32_t p) { return std::pair(head_[p] == TUTTI_NONE || !only_copies(head_[p]), p); };
    for (uint32_t i = 0; i < n.input_count; ++i)
      if (uint32_t p = made_by(n.inputs[i]); p != TUTTI_NONE && (last == TUTTI_NONE || rank(p) > rank(last))) last = p;
    return last == TUTTI_NONE ? alike(k) : head_[last];
  }

  /// Whether the node's kernel computes no other nodes.
  bool only_copies(uint32_t h) const {
    std::string_view op = nodes_[h].op;
    return op == "gather" || op == "transpose" || op == "concat" || op == "random_bits" || op == "scatter_add";
  }

  uint32_t head_of_reader(uint32_t k) const {
    const TuttiNode& n = nodes_[k];
    for (uint32_t r = 0; r < n.result_count; ++r) {
      if (n.results[r] == TUTTI_NONE) continue;
      for (uint32_t reader : readers_[n.results[r]])
        if (head_[reader] != TUTTI_NONE) return head_[reader];
    }
    return head_[k];
  }

  /// The last kernel before k for the same op: casts of parameters share one.
  uint32_t alike(uint32_t k) const {
    for (auto h = heads_.lower_bound(k); h != heads_.begin();)
      if (std::string_view(nodes_[*--h].op) == nodes_[k].op) return *h;
    return TUTTI_NONE;
  }

  /// Whether a node without a kernel is but another order of its input.
  bool moves(uint32_t k) const {
    std::string_view op = nodes_[k].op;
    return op == "reshape" || ((op == "slice" || op == "transpose") && !heads_.contains(k));
  }

  /// The producer of a value, looking through these.
  uint32_t made_by(uint32_t value) const {
    uint32_t p = producer_[value];
    while (p != TUTTI_NONE && moves(p)) p = producer_[nodes_[p].inputs[0]];
    return p;
  }

  bool is_product(uint32_t k) const {
    std::string_view op = nodes_[k].op;
    return op == "matmul" || op == "conv2d_dw";
  }
  bool reads(uint32_t k, uint32_t value) const {
    const TuttiNode& n = nodes_[k];
    return std::find(n.inputs, n.inputs + n.input_count, value) != n.inputs + n.input_count;
  }

  const std::set<uint32_t>& heads_;
  std::vector<TuttiNode> nodes_;
  std::vector<uint32_t> head_, producer_, group_begin_;
  std::vector<std::vector<uint32_t>> readers_;
};

double sum_seconds(const std::vector<KernelTime>& kernels) {
  double sum = 0;
  for (const KernelTime& k : kernels) sum += 1e-9 * static_cast<double>(k.nanoseconds);
  return sum;
}

}  // namespace

std::map<uint32_t, ProfiledWork> work_of(const TuttiProgram& program, const std::vector<KernelTime>& kernels) {
  std::set<uint32_t> heads;
  std::map<uint32_t, uint32_t> shares;  // per node without a launch of its own: that of the launch that it shares
  for (const KernelTime& k : kernels)
    if (k.node < program.nodes.count) heads.insert(k.node);
  for (const KernelTime& k : kernels)
    for (uint32_t other : k.others)
      if (k.node < program.nodes.count && other < program.nodes.count && !heads.contains(other))
        shares.emplace(other, k.node);
  std::set<uint32_t> all = heads;
  for (const auto& [other, head] : shares) all.insert(other);
  std::map<uint32_t, ProfiledWork> work;
  for (uint32_t h : heads) work[h].nodes.push_back(h);
  Attribution attribution(program, all);
  for (uint32_t k = 0; k < program.nodes.count; ++k) {
    uint32_t h = attribution.head(k);
    if (auto at = shares.find(h); at != shares.end()) h = at->second;
    if (h != TUTTI_NONE && h != k) work[h].nodes.push_back(k);
  }
  for (auto& [head, w] : work) {
    std::vector<uint32_t> in_order = w.nodes;
    std::ranges::sort(in_order);
    w.cost = estimate_cost(program, in_order);
  }
  return work;
}

double ProfiledRun::kernel_seconds() const { return sum_seconds(kernels); }

double ProfiledRun::kernels_begin() const {
  if (kernels.empty()) return launched;
  auto last = static_cast<double>(kernels.back().start + kernels.back().nanoseconds);
  return std::max(launched, end - 1e-9 * last);
}

double ProfiledStep::kernel_seconds() const {
  double sum = 0;
  for (const ProfiledRun& r : runs) sum += r.kernel_seconds();
  return sum;
}

double ProfiledStep::host_seconds() const {
  double sum = 0, at = begin;
  for (const ProfiledRun& r : runs) {
    sum += r.launched - at;
    at = r.end;
  }
  return sum;
}

void Profiler::expect(int64_t first, int64_t count) {
  first_ = first;
  count_ = count;
  seen_ = 0;
}

void Profiler::begin(int64_t number, const std::function<void()>& idle) {
  ++seen_;
  active_ = seen_ >= first_ && seen_ < first_ + count_;
  if (!active_) return;
  idle();
  double at = now();
  steps_.push_back({number, at, at, {}});
}

void Profiler::end() {
  if (active_) steps_.back().end = now();
  active_ = false;
}

size_t Profiler::add(const std::string& device, std::shared_ptr<const Lowered> lowered) {
  programs_.push_back({device, std::move(lowered), {}});
  return programs_.size() - 1;
}

double Profiler::now() const { return std::chrono::duration<double>(Clock::now() - start_).count() - collecting_; }

void Profiler::add(ProfiledRun run, const std::function<std::vector<KernelTime>()>& times) {
  run.end = now();
  run.kernels = times();
  ProfiledProgram& program = programs_.at(run.program);
  if (program.work.empty()) program.work = work_of(program.lowered->program(), run.kernels);
  double end = run.end;
  steps_.back().runs.push_back(std::move(run));
  collecting_ += now() - end;
}

}  // namespace tutti

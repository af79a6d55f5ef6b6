#include "backends/cpu/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/elementwise.h"
#include "sdk/plan/schedule.h"

namespace tutti::cpu {
namespace {

constexpr size_t alignment = 64;

/// Plans one program. A value may exist in several layouts.
class Compiler : sdk::Schedule {
 public:
  Compiler(const Library& library, const sdk::Program& program, int threads, ChoiceCache& choices,
           const sdk::Trace& trace)
      : Schedule(program, trace), library_(library), threads_(threads), choices_(choices), layouts_(p_.values.size()) {}

  Plan run() {
    walk();
    plan_.memories = std::move(memories_);
    sdk::place_memories(plan_, alignment);
    return std::move(plan_);
  }

 private:
  // ---- layouts

  void hold(uint32_t v, uint32_t memory) override { hold(v, Layout{}, memory); }
  void hold(uint32_t v, const Layout& layout, uint32_t memory) {
    layouts_[v].push_back(layout);
    Schedule::hold(v, memory);
  }

  /// The region with the value in that layout, or NONE.
  uint32_t memory_in(uint32_t v, const Layout& layout) const {
    auto at = std::find(layouts_[v].begin(), layouts_[v].end(), layout);
    return at == layouts_[v].end() ? TUTTI_NONE : held_[v][static_cast<size_t>(at - layouts_[v].begin())];
  }

  /// The region with the value in that layout; adds a conversion if necessary.
  uint32_t obtain(uint32_t v, const Layout& want) {
    if (uint32_t memory = memory_in(v, want); memory != TUTTI_NONE) return memory;
    const TensorType& t = p_.type(v);
    Layout from;
    uint32_t source = memory_in(v, from);
    if (source == TUTTI_NONE) from = layouts_[v].front(), source = held_[v].front();
    if (!from.plain && !want.plain && from.form->dims() != want.form->dims()) {
      obtain(v, Layout{});
      return obtain(v, want);
    }
    std::string name = fmt::format("reorder: value {}", v);
    uint32_t to = temporary(layout_bytes(want, t), "scratch of " + name);
    add_step(make_reorder(t, from, want, threads_), std::move(name), TUTTI_NONE, {source}, {to});
    hold(v, want, to);
    return to;
  }
  uint32_t row_major(uint32_t v) override { return obtain(v, Layout{}); }

  // ---- steps

  void add_step(KernelPtr kernel, std::string name, uint32_t node, std::vector<uint32_t> in,
                std::vector<uint32_t> out) {
    step(in, out);
    plan_.workspace = std::max(plan_.workspace, kernel->scratch);
    std::string reason = node == TUTTI_NONE ? "" : reasons_[node];
    plan_.steps.push_back({std::move(kernel), std::move(name), node, std::move(reason), std::move(in), std::move(out)});
  }

  void copy(const TensorType& type, const std::string& name, uint32_t from, uint32_t to) override {
    add_step(make_plain_copy(type, threads_), name, TUTTI_NONE, {from}, {to});
  }

  std::vector<uint32_t> obtain_all(const std::vector<uint32_t>& inputs, const Kernel& kernel) {
    std::vector<uint32_t> in;
    for (size_t k = 0; k < inputs.size(); ++k) in.push_back(obtain(inputs[k], kernel.in[k]));
    return in;
  }

  /// Whether this step is the last reader of its first input.
  bool may_overwrite_first(const std::vector<uint32_t>& in) {
    return memories_[in[0]].place == sdk::Place::arena && std::count(in.begin(), in.end(), in[0]) == 1 &&
           is_dead(in[0]);
  }

  /// Adds a kernel of the node(s): first conversions of its inputs, then memory for its results.
  void place_kernel(KernelPtr kernel, const std::string& name, uint32_t node, const std::vector<uint32_t>& inputs,
                    const std::vector<uint32_t>& results) {
    std::vector<uint32_t> in = obtain_all(inputs, *kernel), out;
    for (size_t k = 0; k < results.size(); ++k) {
      uint32_t v = results[k];
      if (v == TUTTI_NONE) {  // unused, but the primitive may have to write it
        size_t written = k < kernel->out.size() && kernel->out[k].form ? kernel->out[k].form->bytes() : 0;
        out.push_back(written ? temporary(written, "scratch of " + name) : TUTTI_NONE);
        continue;
      }
      const Layout& layout = kernel->out[k];
      // States are row-major, and only elementwise passes may overwrite a state that they read.
      if (!layout.plain || std::find(in.begin(), in.end(), home_[v]) != in.end()) home_[v] = TUTTI_NONE;
      bool over = k == 0 && kernel->overwrites && home_[v] == TUTTI_NONE && may_overwrite_first(in);
      out.push_back(over ? in[0] : result_memory(v, layout_bytes(layout, p_.type(v)), name));
      hold(v, layout, out.back());
    }
    add_step(std::move(kernel), name, node, std::move(in), std::move(out));
  }

  // ---- nodes

  void node(uint32_t k) override {
    if (with_operand_sum(k)) return;
    const sdk::Node& n = p_.nodes[k];
    const Choice& choice = choices_.of({p_, k, threads_});
    if (!begin(k, choice.name(), choice.reasons())) return;
    if (choice.entry->can.elementwise) return elementwise(k, choice.name());
    if (choice.entry->can.alias) return hold(n.results[0], row_major(n.inputs[0]));
    structured(k, choice);
  }

  bool fuses(uint32_t k) const override {
    const Choice& choice = choices_.of({p_, k, threads_});
    return choice.entry && choice.entry->can.elementwise;
  }

  void elementwise(uint32_t k, const char* entry) {
    std::vector<uint32_t> nodes = chain(k, p_.values.size(), true);
    sdk::Fusion f = sdk::fuse(p_, nodes, sdk::ExactRounding::by_code, [&](uint32_t v) { return remaining_[v] > 0; });
    std::set<uint32_t> taken;
    PassSite site;
    site.layout = [&](uint32_t v) { return layouts_[v].front(); };
    site.row_major = [&](uint32_t v) { return home_[v] != TUTTI_NONE; };
    site.memory = [&](uint32_t v, const Layout& layout) { return memory_in(v, layout); };
    site.overwritten = [&](uint32_t v, std::span<const sdk::PassOperand> in) { return overwritten(v, in, taken); };
    Pass pass = make_pass(p_, f, site, threads_);
    std::string name = describe(entry, k, nodes.size() - 1);
    std::vector<uint32_t> in = obtain_all(f.inputs, *pass.kernel), out;
    for (size_t o = 0; o < f.outputs.size(); ++o) {
      uint32_t v = f.outputs[o], over = pass.over[o];
      const Layout& layout = pass.kernel->out[o];
      out.push_back(over != TUTTI_NONE ? over : result_memory(v, layout_bytes(layout, p_.type(v)), name));
      hold(v, layout, out.back());
    }
    add_step(std::move(pass.kernel), name, k, std::move(in), std::move(out));
  }

  NodeView view_of(uint32_t k) const {
    NodeView c{p_, k, threads_};
    for (uint32_t v : p_.nodes[k].inputs) c.layouts.push_back(layouts_[v].front());
    return c;
  }

  void structured(uint32_t k, const Choice& choice) {
    std::vector<uint32_t> inputs = p_.nodes[k].inputs, results = p_.nodes[k].results;
    NodeView c = view_of(k);
    sdk::PostOps post_ops = post_ops_of(k, choice.entry->can);
    c.epilogue.bias = post_ops.bias;
    if (post_ops.relu != TUTTI_NONE) c.epilogue.limits = sdk::bounds_of(p_.nodes[post_ops.relu]);
    KernelPtr kernel = post_ops.size() ? try_make(library_, *choice.entry, c) : nullptr;
    size_t more = kernel ? post_ops.size() : 0;
    if (kernel) {
      take(post_ops, inputs, results);
      leave_home(results[0]);
      if (trace_) trace_(fmt::format("node {} {} takes {} nodes along", k, p_.nodes[k].op, more));
    } else {
      c.epilogue = {};
      kernel = library_.make(*choice.entry, c);
    }
    place_kernel(std::move(kernel), describe(choice.name(), k, more), k, inputs, results);
  }

  bool sums_operands(const sdk::Node& product) const override { return product.op == "conv2d_dw"; }

  /// Computes the bias gradient of a convolution together with its weight gradient.
  const char* product_with_sum(uint32_t product, uint32_t sum, sdk::OperandSum) override {
    const Choice& choice = choices_.of({p_, product, threads_});
    if (!choice.entry || !choice.entry->can.operand_sum || !choices_.of({p_, sum, threads_}).entry) return nullptr;
    const std::vector<uint32_t>& inputs = p_.nodes[product].inputs;
    for (uint32_t v : inputs) ensure(v);
    NodeView c = view_of(product);
    c.sums_gradient = true;
    KernelPtr kernel = try_make(library_, *choice.entry, c);
    if (!kernel) return nullptr;
    std::vector<uint32_t> results = {p_.nodes[product].results[0], p_.nodes[sum].results[0]};
    finish(product);
    finish(sum);
    reasons_[product] = choice.reasons();
    for (uint32_t v : results) leave_home(v);
    place_kernel(std::move(kernel), describe(choice.name(), product, 1), product, inputs, results);
    return choice.name();
  }

  const Library& library_;
  int threads_;
  ChoiceCache& choices_;
  std::vector<std::vector<Layout>> layouts_;  // per value: layouts of the regions in held_
  Plan plan_;
};

}  // namespace

Plan compile(const Library& library, const sdk::Program& program, int threads, ChoiceCache& choices,
             const sdk::Trace& trace) {
  return Compiler(library, program, threads, choices, trace).run();
}

}  // namespace tutti::cpu

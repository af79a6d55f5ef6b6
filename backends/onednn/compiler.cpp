#include "backends/onednn/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/onednn/elementwise.h"
#include "backends/onednn/epilogue.h"
#include "core/base/rounding.h"
#include "sdk/arena.h"
#include "sdk/plan/liveness.h"

namespace tutti::onednn {
namespace {

constexpr size_t alignment = 64;

class Compiler {
 public:
  Compiler(const sdk::Program& program, int threads, const std::function<void(const std::string&)>& trace)
      : p_(program),
        threads_(threads),
        trace_(trace),
        held_(p_.values.size()),
        home_(p_.values.size(), TUTTI_NONE),
        takes_(p_.values.size(), TUTTI_NONE),
        done_(p_.nodes.size()),
        chain_end_(sdk::group_ends(p_, TUTTI_CHAIN)),
        reshape_of_(sdk::reshapes(p_)),
        readers_(p_),
        remaining_(p_.values.size()) {}

  Plan run() {
    place_values();
    find_homes();
    for (uint32_t k = 0; k < p_.nodes.size(); ++k)
      if (!done_[k]) node(k);
    copy_states();
    plan_memory();
    return std::move(plan_);
  }

 private:
  /// One form in which a value exists, and where.
  struct Held {
    Form form;
    uint32_t memory;
  };

  uint32_t add_memory(Memory m) {
    plan_.memories.push_back(std::move(m));
    return static_cast<uint32_t>(plan_.memories.size() - 1);
  }
  uint32_t now() const { return static_cast<uint32_t>(plan_.steps.size()); }
  uint32_t temporary(size_t bytes) { return add_memory({.bytes = bytes, .first = now(), .last = now()}); }

  void place_values() {
    for (uint32_t v = 0; v < p_.values.size(); ++v)
      remaining_[v] = static_cast<uint32_t>(readers_.nodes[v].size()) + readers_.states[v];
    for (const sdk::State& s : p_.states)
      states_[s.name] = add_memory({.place = Place::state, .bytes = num_bytes(p_.type(s.after)), .state = s.name});
    for (uint32_t v = 0; v < p_.values.size(); ++v) {
      const sdk::Value& value = p_.values[v];
      uint32_t memory = TUTTI_NONE;
      if (value.role == TUTTI_FEED)
        memory = add_memory({.place = Place::feed, .bytes = num_bytes(value.type), .value = v});
      if (value.role == TUTTI_CONST)
        memory = add_memory({.place = Place::constant, .bytes = num_bytes(value.type), .value = v});
      if (value.role == TUTTI_STATE) memory = states_.at(value.name);
      if (memory != TUTTI_NONE) hold(v, plain_form(value.type), memory);
    }
  }

  /// Results that are computed right in their state's memory. A reshape of the old value is the same memory: it must
  /// not be read after the update either.
  void find_homes() {
    std::vector<bool> home = sdk::home_states(p_);
    for (size_t i = 0; i < p_.states.size(); ++i)
      if (home[i]) home_[p_.states[i].after] = states_.at(p_.states[i].name);
  }

  // ---- forms

  Form present_form(uint32_t v) const { return held_[v].front().form; }

  /// The memory of a value in that form; converts where it is not there yet.
  uint32_t obtain(uint32_t v, const Form& want) {
    const TensorType& t = p_.type(v);
    for (const Held& h : held_[v])
      if (h.form == want) return h.memory;
    const Held* from = &held_[v].front();
    for (const Held& h : held_[v])
      if (h.form.plain) from = &h;
    if (!from->form.plain && !want.plain && from->form.desc.get_dims() != want.desc.get_dims()) {
      obtain(v, plain_form(t));
      return obtain(v, want);
    }
    Held source = *from;
    uint32_t to = temporary(form_bytes(want, t));
    add_step(make_reorder(t, source.form, want, threads_), fmt::format("reorder: value {}", v), TUTTI_NONE,
             {source.memory}, {to});
    hold(v, want, to);
    return to;
  }

  void add_step(KernelPtr kernel, std::string name, uint32_t node, std::vector<uint32_t> in,
                std::vector<uint32_t> out) {
    for (const auto& list : {in, out})
      for (uint32_t m : list)
        if (m != TUTTI_NONE) plan_.memories[m].last = std::max(plan_.memories[m].last, now());
    plan_.workspace = std::max(plan_.workspace, kernel->scratch);
    plan_.steps.push_back({std::move(kernel), std::move(name), node, std::move(in), std::move(out)});
  }

  /// Adds a kernel of the node(s): conversions of its inputs first, then memory for its results.
  void place_kernel(KernelPtr kernel, const std::string& name, uint32_t node, const std::vector<uint32_t>& inputs,
                    const std::vector<uint32_t>& results, bool fused) {
    std::vector<uint32_t> in, out;
    for (size_t k = 0; k < inputs.size(); ++k) in.push_back(obtain(inputs[k], kernel->in[k]));
    for (size_t k = 0; k < results.size(); ++k) {
      uint32_t v = results[k];
      if (v == TUTTI_NONE) {  // nobody reads it, but a primitive may have to write it
        bool written = k < kernel->out.size() && kernel->out[k].desc.get_size() > 0;
        out.push_back(written ? temporary(kernel->out[k].desc.get_size()) : TUTTI_NONE);
        continue;
      }
      const Form& form = kernel->out[k];
      uint32_t home = home_[v];
      // A state is row-major, and only an elementwise pass may overwrite what it reads.
      if (home != TUTTI_NONE && (!form.plain || (!fused && std::find(in.begin(), in.end(), home) != in.end())))
        home = TUTTI_NONE;
      if (home == TUTTI_NONE && takes_[v] != TUTTI_NONE) {
        home = takes_[v];
      } else if (home == TUTTI_NONE) {
        home_[v] = TUTTI_NONE;
        home = temporary(form_bytes(form, p_.type(v)));
        plan_.memories[home].value = v;
      }
      hold(v, form, home);
      out.push_back(home);
    }
    add_step(std::move(kernel), name, node, std::move(in), std::move(out));
  }

  // ---- nodes

  std::string describe(const char* entry, uint32_t k, uint32_t more) const {
    const sdk::Node& n = p_.nodes[k];
    std::string text = fmt::format("{}: {}", entry, n.op);
    if (more) text += fmt::format(" + {}", more);
    return n.label.empty() ? text : text + " in " + n.label;
  }

  /// From here on the node counts as run.
  void finish(uint32_t k) {
    done_[k] = true;
    for (uint32_t v : p_.nodes[k].inputs) --remaining_[v];
  }

  void node(uint32_t k) {
    const sdk::Node& n = p_.nodes[k];
    if (n.op == "sum") {  // the bias gradient of a convolution comes with its weight gradient
      for (uint32_t j : readers_.nodes[n.inputs[0]]) {
        const sdk::Node& dw = p_.nodes[j];
        if (j < k || dw.op != "conv2d_dw" || done_[j] || dw.inputs.size() != 2 || dw.inputs[1] != n.inputs[0] ||
            held_[dw.inputs[0]].empty())
          continue;
        if (match_gradient_sum(p_, j, readers_) == k) node(j);
        if (done_[k]) return;
        break;
      }
    }
    Choice choice = choose_kernel({p_, k, threads_});
    if (!choice.entry)
      throw sdk::NodeError(k, Code::declined, fmt::format("node {} ({}): {}", k, n.op, choice.reasons()));
    bool wanted = std::any_of(n.results.begin(), n.results.end(), [](uint32_t v) { return v != TUTTI_NONE; });
    if (trace_)
      trace_(fmt::format("node {} {} → {}{}", k, n.op, wanted ? choice.entry->name : "nothing, no result is read",
                         choice.declined.empty() ? "" : " (" + choice.reasons() + ")"));
    finish(k);
    if (!wanted) return;
    if (std::string_view(choice.entry->name) == elementwise_entry) return elementwise(k);
    if (n.op == "reshape") return reshape(n);
    structured(k, choice);
  }

  void reshape(const sdk::Node& n) {
    uint32_t memory = obtain(n.inputs[0], plain_form(p_.type(n.inputs[0])));
    hold(n.results[0], plain_form(p_.type(n.results[0])), memory);
  }

  Shape result_shape(const sdk::Node& n) const {
    for (uint32_t v : n.results)
      if (v != TUTTI_NONE) return p_.type(v).shape;
    return {-1};
  }

  void elementwise(uint32_t k) {
    std::vector<uint32_t> nodes = {k};
    uint32_t end = chain_end_[k];
    Shape shape = result_shape(p_.nodes[k]);
    for (uint32_t j = k + 1; j < end && !done_[j] && p_.nodes[j].elementwise() && result_shape(p_.nodes[j]) == shape;
         ++j) {
      Choice choice = choose_kernel({p_, j, threads_});
      if (!choice.entry || std::string_view(choice.entry->name) != elementwise_entry) break;
      nodes.push_back(j);
      finish(j);
    }
    FusionSite site;
    site.form = [&](uint32_t v) { return present_form(v); };
    site.stored = [&](uint32_t v) { return remaining_[v] > 0; };
    site.row_major = [&](uint32_t v) { return home_[v] != TUTTI_NONE; };
    site.target = [&](uint32_t v) { return home_[v]; };
    site.memory = [&](uint32_t v, const Form& form) {
      for (const Held& h : held_[v])
        if (h.form == form) return h.memory;
      return TUTTI_NONE;
    };
    site.dead = [&](uint32_t v, uint32_t memory) {
      return plan_.memories[memory].place == Place::arena && is_dead(memory) && remaining_[v] == 0;
    };
    Fusion f = make_fusion(p_, nodes, site, threads_);
    if (trace_ && nodes.size() > 1) trace_(fmt::format("nodes {}..{} → one pass", k, nodes.back()));
    for (size_t o = 0; o < f.outputs.size(); ++o)
      if (f.in_memory[o] != TUTTI_NONE && home_[f.outputs[o]] == TUTTI_NONE) takes_[f.outputs[o]] = f.in_memory[o];
    place_kernel(std::move(f.kernel), describe(elementwise_entry, k, static_cast<uint32_t>(nodes.size()) - 1), k,
                 f.inputs, f.outputs, true);
  }

  /// Whether nothing that has not run yet reads this memory, under whatever name.
  bool is_dead(uint32_t memory) {
    if (memory >= holders_.size()) return true;
    std::erase_if(holders_[memory], [&](uint32_t v) { return remaining_[v] == 0; });
    return holders_[memory].empty();
  }

  /// From here on the value is in that memory, too.
  void hold(uint32_t v, const Form& form, uint32_t memory) {
    held_[v].push_back({form, memory});
    holders_.resize(plan_.memories.size());
    holders_[memory].push_back(v);
  }

  /// Whether a value is there, or is another shape of one that is.
  bool exists(uint32_t v) const {
    if (!held_[v].empty()) return true;
    uint32_t k = reshape_of_[v];
    return k != TUTTI_NONE && exists(p_.nodes[k].inputs[0]);
  }
  /// Runs the reshapes that a value of exists() still needs.
  void ensure(uint32_t v) {
    if (!held_[v].empty()) return;
    uint32_t k = reshape_of_[v];
    ensure(p_.nodes[k].inputs[0]);
    node(k);
  }

  void structured(uint32_t k, const Choice& choice) {
    const sdk::Node& n = p_.nodes[k];
    std::string_view entry = choice.entry->name;
    std::vector<uint32_t> inputs = n.inputs, results = n.results;
    Case c{p_, k, threads_};
    std::vector<Form> forms;
    for (uint32_t v : n.inputs) forms.push_back(present_form(v));
    c.forms = &forms;
    bool nothing =
        std::any_of(n.inputs.begin(), n.inputs.end(), [&](uint32_t v) { return num_elements(p_.type(v).shape) == 0; });
    std::vector<uint32_t> taken;  // nodes that this kernel computes along with its own
    KernelPtr kernel;
    if (!nothing && (entry == "onednn matmul" || entry == "onednn conv2d")) {
      Tail tail = match_tail(p_, k, readers_, [&](uint32_t v) { return exists(v); });
      c.epilogue = tail.epilogue;
      if (!tail.nodes.empty() && (kernel = try_make(*choice.entry, c))) {
        taken = tail.nodes;
        for (uint32_t j : taken) finish(j);
        ensure(tail.epilogue.bias);
        inputs.push_back(tail.epilogue.bias);
        results = {tail.epilogue.result};
      }
    }
    if (!nothing && entry.starts_with("onednn conv2d_dw") && results[0] != TUTTI_NONE) {
      uint32_t sum = match_gradient_sum(p_, k, readers_);
      c.sums_gradient = sum != TUTTI_NONE && !done_[sum];
      if (c.sums_gradient && (kernel = try_make(*choice.entry, c))) {
        taken = {sum};
        finish(sum);
        results.push_back(p_.nodes[sum].results[0]);
      }
    }
    if (!kernel) {
      c.epilogue = {};
      c.sums_gradient = false;
      kernel = make_kernel(*choice.entry, c);
    }
    if (!taken.empty())
      for (uint32_t v : results) home_[v] = TUTTI_NONE;  // computed at another place than its node's
    if (trace_ && !taken.empty()) trace_(fmt::format("node {} {} takes node {} along", k, n.op, taken[0]));
    place_kernel(std::move(kernel), describe(choice.entry->name, k, static_cast<uint32_t>(taken.size())), k, inputs,
                 results, false);
  }

  // ---- the end of the step

  /// States that were not computed in place are copied; what another copy overwrites is saved first.
  void copy_states() {
    struct Move {
      uint32_t value, from, to;
    };
    std::vector<Move> moves;
    std::set<uint32_t> overwritten;
    for (const sdk::State& s : p_.states) {
      uint32_t to = states_.at(s.name);
      if (s.after == s.before || home_[s.after] == to) continue;
      uint32_t from = obtain(s.after, plain_form(p_.type(s.after)));
      if (from == to) continue;
      moves.push_back({s.after, from, to});
      overwritten.insert(to);
    }
    for (Move& m : moves) {
      if (!overwritten.contains(m.from)) continue;
      uint32_t saved = temporary(num_bytes(p_.type(m.value)));
      add_step(make_plain_copy(p_.type(m.value), threads_), "save a state", TUTTI_NONE, {m.from}, {saved});
      m.from = saved;
    }
    for (const Move& m : moves)
      add_step(make_plain_copy(p_.type(m.value), threads_), "copy to a state", TUTTI_NONE, {m.from}, {m.to});
  }

  void plan_memory() {
    std::vector<sdk::Slot> slots;
    std::vector<uint32_t> ids;
    auto behind = [](size_t& end, size_t bytes) {
      size_t at = align_up(end, alignment);
      if (bytes) end = at + bytes;
      return bytes ? at : 0;
    };
    for (uint32_t m = 0; m < plan_.memories.size(); ++m) {
      Memory& memory = plan_.memories[m];
      if (memory.place == Place::feed) memory.offset = behind(plan_.staging, memory.bytes);
      if (memory.place == Place::constant) memory.offset = behind(plan_.constants, memory.bytes);
      if (memory.place != Place::arena) continue;
      ids.push_back(m);
      slots.push_back({memory.bytes, memory.first, memory.last});
    }
    sdk::ArenaPlan arena = sdk::plan_arena(slots, alignment);
    for (size_t k = 0; k < ids.size(); ++k) plan_.memories[ids[k]].offset = arena.offsets[k];
    plan_.arena = arena.bytes;
  }

  const sdk::Program& p_;
  int threads_;
  const std::function<void(const std::string&)>& trace_;
  std::vector<std::vector<Held>> held_;         // per value
  std::vector<uint32_t> home_;                  // per value: the state memory it is computed in, or NONE
  std::vector<uint32_t> takes_;                 // per value: the memory of an operand that it is written over, or NONE
  std::vector<std::vector<uint32_t>> holders_;  // per memory: the values in it that are still to be read
  std::vector<bool> done_;                      // per node
  std::vector<uint32_t> chain_end_;             // per node: the end of its chain group
  std::vector<uint32_t> reshape_of_;            // per value: the reshape that makes it, or NONE
  Readers readers_;
  std::vector<uint32_t> remaining_;  // per value: how many of its readers have not run yet
  std::map<std::string, uint32_t> states_;
  Plan plan_;
};

}  // namespace

Plan compile(const sdk::Program& program, int threads, const std::function<void(const std::string&)>& trace) {
  return Compiler(program, threads, trace).run();
}

}  // namespace tutti::onednn

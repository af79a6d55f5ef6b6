// tutti bisect: finds the first node of a training step at which two devices diverge, and the wrong device.
#include <fmt/format.h>

#include <filesystem>
#include <new>

#include "cli/device_list.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/replay_text.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "core/os/signals.h"
#include "verify/bisect/bisect_exact.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

std::string what_of(const bisect::Finding& f) {
  switch (f.kind) {
    case bisect::Finding::node: return "this node";
    case bisect::Finding::fused:
      return "these nodes, but only when fused: each is correct if the values between them are kept";
    case bisect::Finding::memory:
      return f.reader.empty() ? "a value that this node reads, or its result: correct if all values are kept"
                              : "the result of this node, damaged before " + f.reader + " reads it; correct if kept";
    default: return "its states, but only if no other value is kept";
  }
}

const char* name_of(bisect::Finding::Kind kind) {
  switch (kind) {
    case bisect::Finding::node: return "node";
    case bisect::Finding::fused: return "fused";
    case bisect::Finding::memory: return "memory";
    default: return "states";
  }
}

/// `--data` for a file that is shared: the kind of data without the folder.
std::string data_without_path(const std::string& spec) { return spec.starts_with("idx:") ? "idx:DIR" : spec; }

/// select_device for an option other than --device, with that option in messages.
Device device_of(const char* option, const std::string& wanted) try {
  return select_device(wanted);
} catch (const Error& e) {
  std::string text = e.what(), said = fmt::format("(--device {})", wanted);
  for (size_t at = 0; (at = text.find(said, at)) != std::string::npos;)
    text.replace(at, said.size(), fmt::format("({} {})", option, wanted));
  throw Error(e.code, text, e.remedy);
}

/// Result of writing a finding's replay file.
struct Saved {
  std::string path, problem, remedy;  ///< problem: why it was not written
};

struct BisectCommand {
  RunOptions run;
  std::string a, b, file;
  bool json = false;

  std::string command() const {
    std::string text = "tutti bisect " + run.model;
    for (const auto& [key, value] : run.remembered())
      if (key != "model" && run.named(key))
        text += run.is_flag(key)
                    ? fmt::format(" --{}={}", key, value)
                    : fmt::format(" --{} {}", key, shell_word(key == "data" ? data_without_path(value) : value));
    return text + fmt::format(" --a {} --b {}", a, b);
  }

  /// The file for the replay of a finding: the requested one, or one named after the op.
  std::string file_of(const bisect::Finding& f, bool several) const {
    std::string name = file.empty() ? fmt::format("bisect-{}.safetensors", f.blamed[0].op->name) : file;
    if (!several || f.side == 0) return name;
    std::filesystem::path path(name);
    return (path.parent_path() / fmt::format("{}-b{}", path.stem().string(), path.extension().string())).string();
  }

  /// Reports failures on stderr, so that the finding is printed anyway.
  Saved save(bisect::Finding& f, bool several) const {
    if (f.kind == bisect::Finding::states) return {};
    f.replay.about = {{"command", command()},
                      {"version", TUTTI_VERSION},
                      {"step", std::to_string(f.step + 1)},
                      {"node", std::to_string(f.span.first)},
                      {"wrong", f.replay.answers[0].id},
                      {"kind", name_of(f.kind)}};
    Saved saved{file_of(f, several), "", ""};
    try {
      write_replay(saved.path, f.replay);
    } catch (const Error& e) {
      saved.problem = fmt::format("the finding is not saved: {}", e.what());
      saved.remedy = e.remedy;
    } catch (const std::bad_alloc&) {
      saved.problem = fmt::format("the finding is not saved: {}: out of host memory", saved.path);
      saved.remedy = "use a smaller batch";
    }
    if (!saved.problem.empty()) print_err("tutti: {}\n", saved.problem);
    if (!saved.remedy.empty()) print_err("  try: {}\n", saved.remedy);
    return saved;
  }

  static void print(const bisect::Finding& f, const bisect::BisectResult& r) {
    const std::string &wrong = r.sides[f.side].device.id, &other = r.sides[1 - f.side].device.id;
    print_out("{} is wrong in step {}", wrong, f.step + 1);
    if (f.kind == bisect::Finding::states) {
      print_out(": {}\n", what_of(f));
      return;
    }
    print_out(", node {} of {}, {}: {}\n", f.span.first, f.nodes, name(f.blamed[0].phase), what_of(f));
    for (size_t k = 0; k < f.blamed.size(); ++k) print_out("  {}\n", in_words(f.blamed[k], f.inputs[k], f.results[k]));
    const Graph& g = f.replay.graph;
    print_out("  worst element {}\n", place_in_words(g, f.own));
    print_out("    {:<14} {:>16.9g}\n", "float64", f.own.want);
    print_out("    {:<14} {:>16.9g}  {}\n", wrong, f.own.got, share_in_words(f.own));
    if (f.other) {
      const Tensor& t = f.replay.answers.back().results.at(f.own.result);
      print_out("    {:<14} {:>16.9g}  {}\n", other, t.at[f.own.at],
                f.other->ok ? share_in_words(*f.other) : "also wrong: " + share_in_words(*f.other));
    }
    if (f.alone)
      print_out("  alone and with the same inputs {} is {}\n", wrong,
                f.alone->ok ? "correct: the fault needs the whole step" : "also wrong");
    if (!f.problem.empty()) print_out("  not run alone: {}\n", f.problem);
    if (f.more) print_out("  {} later values of the step also exceed their bounds\n", f.more);
  }

  static ordered_json document(const bisect::Finding& f, const bisect::BisectResult& r, const Saved& saved) {
    ordered_json out = {
        {"kind", name_of(f.kind)}, {"wrong", r.sides[f.side].device.id}, {"step", f.step + 1}, {"what", what_of(f)}};
    if (f.kind == bisect::Finding::states) return out;
    out["node"] = f.span.first;
    out["of"] = f.nodes;
    out["phase"] = name(f.blamed[0].phase);
    out["nodes"] = ordered_json::array();
    for (size_t k = 0; k < f.blamed.size(); ++k) {
      ordered_json node = {{"op", f.blamed[k].op->name},
                           {"label", f.blamed[k].label},
                           {"attributes", f.blamed[k].attrs.to_string()},
                           {"inputs", ordered_json::array()},
                           {"results", ordered_json::array()}};
      for (const TensorType& t : f.inputs[k]) node["inputs"].push_back(to_string(t));
      for (const TensorType& t : f.results[k]) node["results"].push_back(to_string(t));
      out["nodes"].push_back(node);
    }
    const Graph& g = f.replay.graph;
    out["worst"] = cli::document(g, f.own);
    if (f.other) {
      out["other"] = cli::document(g, *f.other);
      out["other"]["value_there"] = f.replay.answers.back().results.at(f.own.result).at[f.own.at];
    }
    if (f.alone) out["alone"] = cli::document(g, *f.alone);
    if (!f.problem.empty()) out["problem"] = f.problem;
    out["more"] = f.more;
    if (saved.problem.empty())
      out["replay"] = "tutti replay " + file_word(saved.path);
    else
      out["not_saved"] = {{"error", saved.problem}, {"remedy", saved.remedy}};
    return out;
  }

  void print(bisect::BisectResult& r) const {
    bool several = r.findings.size() > 1;
    for (bisect::Finding& f : r.findings) {
      print(f, r);
      std::fflush(stdout);  // before messages of save() on stderr
      if (Saved saved = save(f, several); saved.problem.empty() && !saved.path.empty())
        print_out("  tutti replay {}\n", file_word(saved.path));
    }
    if (r.findings.empty())
      print_out("{} and {} agree: {} step{} of {} with batch {}, every node within its bound of float64\n",
                r.sides[0].device.id, r.sides[1].device.id, r.steps, r.steps == 1 ? "" : "s", run.model,
                run.trainer.batch);
    for (const bisect::BisectSide& s : r.sides)
      print_out("  {:<14} worst node {:.2g} of its bound, worst change of a state {:.2g} from float64's (2-norm)\n",
                s.device.id, s.share, s.error);
  }

  ordered_json document(bisect::BisectResult& r) const {
    ordered_json out = {{"ok", r.findings.empty()},           {"model", run.model},       {"data", run.data},
                        {"batch", run.trainer.batch},         {"steps", r.steps},         {"seed", run.trainer.seed},
                        {"precision", run.text("precision")}, {"nodes_per_step", r.nodes}};
    for (const bisect::BisectSide& s : r.sides)
      out["devices"].push_back({{"id", s.device.id},
                                {"name", s.device.name},
                                {"driver", s.device.driver},
                                {"worst_share_of_bound", s.share},
                                {"worst_state_error", s.error},
                                {"changed_by_keeping", s.apart}});
    out["findings"] = ordered_json::array();
    bool several = r.findings.size() > 1;
    for (bisect::Finding& f : r.findings) {
      Saved saved = save(f, several);
      out["findings"].push_back(document(f, r, saved));
    }
    return out;
  }

  /// Checks in advance what would fail after the run.
  void validate() {
    run.validate();
    if (run.settings.steps < 1) throw invalid_option("steps", run.settings.steps, "must be at least 1");
    if (std::string weights = run.weights_file(); !weights.empty() && !weights.ends_with(".gguf"))
      throw invalid_option("init", weights, "has no effect on `tutti bisect`, which uses random weights", "omit it");
    if (parse_precision(run.text("precision")) == Precision::tf32)
      throw invalid_option("precision", "tf32", "its matmuls are less precise than the error bounds of bisect",
                           "compare in f32 instead");
    if (run.text("numerics") == "exact" && run.text("precision") != "f32")
      throw invalid_option("precision", run.text("precision"), "exact numerics are those of f32", "omit it");
    if (run.text("numerics") == "exact" && !file.empty())
      throw invalid_option("save", file, "has no effect with exact numerics, which are compared bit by bit", "omit it");
    if (file == "-") throw invalid_option("save", "-", "a replay file cannot be written to stdout", "name a file");
    check_target("--save", file);
  }

  /// The first node whose bits differ.
  int run_exact(const Device& first, const Device& second, const bisect::BisectOptions& options) const {
    bisect::ExactResult r = bisect::bisect_exact(first, second, options);
    const std::optional<bisect::ExactFinding>& f = r.finding;
    const bool partial = os::interrupted() && !f;
    os::release_signals();
    if (partial) print_err("partial: stopped by a signal after {} of {} steps\n", r.steps, run.settings.steps);
    std::string wrong = f && f->wrong ? (*f->wrong ? second : first).id : "";
    if (json) {
      ordered_json out = {{"ok", !f},
                          {"model", run.model},
                          {"data", run.data},
                          {"numerics", "exact"},
                          {"batch", run.trainer.batch},
                          {"steps", r.steps},
                          {"seed", run.trainer.seed},
                          {"nodes_per_step", r.nodes},
                          {"finding", nullptr}};
      if (f)
        out["finding"] = {{"step", f->step + 1},      {"node", f->node}, {"op", f->blamed.op->name},
                          {"label", f->blamed.label}, {"wrong", wrong},  {"difference", f->difference.text}};
      print_json(out);
    } else if (f) {
      print_out("{} and {} have other bits in step {}, node {} of {}, {}\n  {}\n  {}\n", first.id, second.id,
                f->step + 1, f->node, r.nodes, name(f->blamed.phase), in_words(f->blamed, f->inputs, f->results),
                f->difference.text);
      print_out("  {}\n", wrong.empty() ? "both differ from the reference" : wrong + " differs from the reference");
    } else {
      print_out("{} and {} have the same bits: {} step{} of {} with batch {}, {} nodes each\n", first.id, second.id,
                r.steps, r.steps == 1 ? "" : "s", run.model, run.trainer.batch, r.nodes);
    }
    return partial ? cut_off : f ? stopped : done;
  }

  int operator()() {
    validate();
    Device first = device_of("--a", a), second = device_of("--b", b);
    print_lost_plugins();
    data::Sources data = run.read_data();
    bisect::BisectOptions options{.task = run.make_task(*data.train),
                                  .optimizer = run.trainer_options().optimizer,
                                  .set = data.train,
                                  .batch = run.trainer.batch,
                                  .steps = run.settings.steps,
                                  .seed = run.trainer.seed,
                                  .precision = parse_precision(run.text("precision"))};
    options.watch = [](const std::string& what) {
      print_err("{}\n", what);
      os::catch_signals();
    };
    os::catch_signals();
    options.stop = os::interrupted;
    if (run.text("numerics") == "exact") return run_exact(first, second, options);
    bisect::BisectResult r = bisect::bisect(first, second, options);
    const bool partial = os::interrupted() && r.findings.empty();
    os::release_signals();
    if (partial) print_err("partial: stopped by a signal after {} of {} steps\n", r.steps, run.settings.steps);
    if (json)
      print_json(document(r));
    else
      print(r);
    return partial ? cut_off : r.findings.empty() ? done : stopped;
  }
};

}  // namespace

void add_bisect(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "bisect", "Find the first node of a training step where two devices differ, and which of them is wrong");
  static BisectCommand c;
  c.run.trainer.batch = 16;
  c.run.settings.steps = 3;
  c.run.add_to(*sub);
  c.run.leave_out(*sub,
                  {"workers",    "prefetch",      "device",       "fallback", "threads",  "epochs",    "accumulate",
                   "recompute",  "memory-budget", "augment",      "mixup",    "balance",  "normalise", "keep-last",
                   "schedule",   "clip-norm",     "clip-value",   "ema",      "no-decay", "freeze",    "lora",
                   "lora-alpha", "lora-dropout",  "lora-targets", "quantize"});
  sub->get_option("--steps")->description("Steps to compare; stops at the first difference");
  sub->add_option("--a", c.a, "One device, as train --device takes it")->required();
  sub->add_option("--b", c.b, "The other device")->required();
  sub->add_option("--save", c.file,
                  "File for the node and its inputs if the devices differ (default: bisect-OP.safetensors)");
  add_json_flag(*sub, c.json);
  sub->footer("Both devices start every step from the state of the float64 reference. Exit code 1 if they differ.");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli

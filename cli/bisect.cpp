// tutti bisect: the first node of a training step where two devices part, and which of them is wrong.
#include <fmt/format.h>

#include <filesystem>

#include "cli/device_list.h"
#include "cli/replay_text.h"
#include "cli/run_options.h"
#include "train/parity/bisect.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;
using parity::Finding;

std::string what_of(const Finding& f) {
  switch (f.kind) {
    case Finding::node: return "this node";
    case Finding::fused: return "these nodes, only when fused: each is right while the values between them are kept";
    case Finding::memory:
      return f.reader.empty() ? "a value that this node reads, or its result: right while all values are kept"
                              : "the result of this node, damaged before " + f.reader + " reads it; right when kept";
    default: return "its states, only while no other value is kept";
  }
}

const char* name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::node: return "node";
    case Finding::fused: return "fused";
    case Finding::memory: return "memory";
    default: return "states";
  }
}

struct BisectCommand {
  RunOptions run;
  std::string a, b, file;
  bool json = false;

  /// What `--steps` and `--batch` are when nobody names them.
  void set_defaults() {
    if (!run.named("steps") || run.steps == 0) run.steps = 3;
    if (!run.named("batch")) run.batch = 16;
  }

  std::string command() const {
    std::string text = "tutti bisect " + run.model;
    for (const auto& [key, value] : run.remembered())
      if (key != "model" && key != "epochs" && run.named(key))
        text += key == "nesterov" ? " --nesterov" : fmt::format(" --{} {}", key, value);
    return text + fmt::format(" --a {} --b {}", a, b);
  }

  /// Where the replay of a finding goes: the file that was asked for, or one named after the op.
  std::string file_of(const Finding& f, bool several) const {
    std::string name = file.empty() ? fmt::format("bisect-{}.safetensors", f.blamed[0].op->name) : file;
    if (!several || f.side == 0) return name;
    std::filesystem::path path(name);
    return (path.parent_path() / fmt::format("{}-b{}", path.stem().string(), path.extension().string())).string();
  }

  std::string save(Finding& f, bool several) const {
    if (f.kind == Finding::states) return "";
    f.replay.about = {{"command", command()},
                      {"version", TUTTI_VERSION},
                      {"step", std::to_string(f.step)},
                      {"node", std::to_string(f.span.first)},
                      {"wrong", f.replay.answers[0].id},
                      {"kind", name_of(f.kind)}};
    std::string path = file_of(f, several);
    write_replay(path, f.replay);
    return path;
  }

  static void print(const Finding& f, const parity::BisectResult& r, const std::string& path) {
    const std::string &wrong = r.sides[f.side].device.id, &other = r.sides[1 - f.side].device.id;
    fmt::print("{} is wrong in step {}", wrong, f.step + 1);
    if (f.kind == Finding::states) {
      fmt::print(": {}\n", what_of(f));
      return;
    }
    fmt::print(", node {} of {}, {}: {}\n", f.span.first, f.nodes, phase_of(f.blamed[0]), what_of(f));
    for (size_t k = 0; k < f.blamed.size(); ++k) fmt::print("  {}\n", in_words(f.blamed[k], f.inputs[k], f.results[k]));
    const Graph& g = f.replay.graph;
    fmt::print("  worst element {}\n", place_in_words(g, f.own));
    fmt::print("    {:<14} {:>16.9g}\n", "float64", f.own.want);
    fmt::print("    {:<14} {:>16.9g}  {}\n", wrong, f.own.got, share_in_words(f.own));
    if (f.other) {
      const Tensor& t = f.replay.answers.back().results.at(f.own.result);
      fmt::print("    {:<14} {:>16.9g}  {}\n", other, t.at[f.own.at],
                 f.other->ok ? share_in_words(*f.other) : "wrong too: " + share_in_words(*f.other));
    }
    if (f.alone)
      fmt::print("  alone and with the same inputs {} is {}\n", wrong,
                 f.alone->ok ? "right: it needs the whole step" : "wrong as well");
    if (!f.problem.empty()) fmt::print("  not run alone: {}\n", f.problem);
    if (f.more) fmt::print("  {} later places of the step are beyond their bounds, too\n", f.more);
    fmt::print("  tutti replay {}\n", path);
  }

  ordered_json document(const Finding& f, const parity::BisectResult& r, const std::string& path) const {
    ordered_json out = {
        {"kind", name_of(f.kind)}, {"wrong", r.sides[f.side].device.id}, {"step", f.step}, {"what", what_of(f)}};
    if (f.kind == Finding::states) return out;
    out["node"] = f.span.first;
    out["of"] = f.nodes;
    out["phase"] = phase_of(f.blamed[0]);
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
    out["replay"] = "tutti replay " + path;
    return out;
  }

  int operator()() {
    run.validate();
    set_defaults();
    Precision precision = parse_precision(run.precision);
    if (precision == Precision::tf32)
      throw invalid("--precision tf32: its products are coarser than any bound that bisect knows",
                    "compare in f32: what is right there is right in tf32");
    tell_lost_plugins();
    Device first = select_device(a), second = select_device(b);
    data::Split split = data::parse_data(run.data);
    parity::BisectOptions options{.model = run.make_model(split.train.sample_type(), split.train.classes),
                                  .optimizer = run.make_optimizer(),
                                  .set = std::move(split.train),
                                  .batch = run.batch,
                                  .steps = run.steps,
                                  .seed = run.seed,
                                  .precision = precision};
    options.watch = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
    parity::BisectResult r = parity::bisect(first, second, options);
    std::vector<std::string> paths;
    for (Finding& f : r.findings) paths.push_back(save(f, r.findings.size() > 1));
    bool ok = r.findings.empty();
    if (json) {
      ordered_json out = {
          {"ok", ok},         {"model", run.model}, {"data", run.data},           {"batch", run.batch},
          {"steps", r.steps}, {"seed", run.seed},   {"precision", run.precision}, {"nodes_per_step", r.nodes}};
      for (const parity::BisectSide& s : r.sides)
        out["devices"].push_back({{"id", s.device.id},
                                  {"name", s.device.name},
                                  {"driver", s.device.driver},
                                  {"worst_share_of_bound", s.share},
                                  {"worst_state_error", s.error},
                                  {"changed_by_keeping", s.apart}});
      out["findings"] = ordered_json::array();
      for (size_t k = 0; k < r.findings.size(); ++k) out["findings"].push_back(document(r.findings[k], r, paths[k]));
      print_json(out);
      return ok ? done : stopped;
    }
    for (size_t k = 0; k < r.findings.size(); ++k) print(r.findings[k], r, paths[k]);
    if (ok)
      fmt::print("{} and {} agree: {} step{} of {} with batch {}, every node within its bound of float64\n", first.id,
                 second.id, r.steps, r.steps == 1 ? "" : "s", run.model, run.batch);
    for (const parity::BisectSide& s : r.sides)
      fmt::print("  {:<14} worst node {:.2g} of its bound, worst change of a state {:.2g} from float64's (2-norm)\n",
                 s.device.id, s.share, s.error);
    return ok ? done : stopped;
  }
};

}  // namespace

void add_bisect(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "bisect", "Find the first node of a training step where two devices part, and which of them is wrong");
  static BisectCommand c;
  c.run.add_to(*sub);
  for (const char* option : {"--device", "--fallback", "--threads"}) sub->remove_option(sub->get_option(option));
  sub->add_option("--a", c.a, "One device, as train --device takes it")->required();
  sub->add_option("--b", c.b, "The other device")->required();
  sub->add_option("--save", c.file,
                  "Where the node and its inputs go when they part (bisect-OP.safetensors unless given)");
  add_json_flag(*sub, c.json);
  sub->footer(
      "Both devices run every step from the float64 reference's state. Without --steps 3 steps, without --batch "
      "16 samples.\nExit code 1 when they part.");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli

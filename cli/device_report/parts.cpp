// Each part runs commands of this executable, so that a fault of a driver ends only its part.
#include <fmt/format.h>

#include "cli/device_report/report.h"
#include "cli/doctor/child.h"
#include "core/base/option_text.h"
#include "train/task/model.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

/// The document that a command prints, or an object with "error".
ordered_json ask(const PartOptions& o, const std::vector<std::string>& arguments) {
  Child child = run_self(arguments, {}, o.seconds);
  ordered_json document = ordered_json::parse(child.out, nullptr, false);
  if (!document.is_object()) return {{"error", fmt::format("tutti {}: {}", arguments[0], child.ending())}};
  if (document.contains("error")) return {{"error", document["error"]}};
  return document;
}

ordered_json parity(const PartOptions& o, const char* numerics) {
  std::vector<std::string> arguments = {"parity", "--device", o.device, "--json", "--numerics", numerics};
  if (o.quick) arguments.emplace_back("--quick");
  ordered_json all = ask(o, arguments);
  if (all.contains("error")) return all;
  ordered_json out = {{"ok", all["ok"]}, {"extent", all["extent"]}, {"seed", all["seed"]}};
  for (const char* key : {"pass", "fail", "unsupported", "expected_failure", "no_room", "seconds"})
    out[key] = all["devices"][0][key];
  out["ops"] = ordered_json::array();
  for (const ordered_json& op : all["ops"])
    out["ops"].push_back({{"op", op["op"]}, {"cells", op["devices"][o.device]["cells"]}});
  for (const char* key : {"failures", "unsupported", "expected_failures"}) {
    ordered_json& list = out[fmt::format("{}_list", key)] = ordered_json::array();
    for (ordered_json entry : all[key]) {
      entry.erase("device");
      list.push_back(entry);
    }
  }
  return out;
}

ordered_json fast_parity(const PartOptions& o) { return parity(o, "fast"); }
ordered_json exact_parity(const PartOptions& o) { return parity(o, "exact"); }

ordered_json conformance(const PartOptions& o) {
  std::vector<std::string> arguments = {"conformance", o.library, "--json=-", "--device-index",
                                        o.device.substr(o.device.find(':') + 1)};
  if (o.quick) arguments.insert(arguments.end(), {"--only", "open.*,memory.*,run.*"});
  ordered_json all = ask(o, arguments);
  if (all.contains("error")) return all;
  ordered_json out = {{"ok", all["ok"]}};
  for (const char* key : {"pass", "fail", "unsupported", "expected_failure"}) out[key] = all[key];
  out["checks"] = ordered_json::array();
  for (const ordered_json& check : all["checks"]) {
    ordered_json kept = {{"id", check["id"]}, {"must", check["must"]}, {"outcome", check["outcome"]}};
    if (check["outcome"] != "pass") kept["why"] = check["why"];
    out["checks"].push_back(kept);
  }
  return out;
}

ordered_json lockstep(const PartOptions& o) {
  ordered_json out = {{"steps", o.quick ? 3 : 20}, {"models", ordered_json::array()}};
  for (const ModelDef* model : all_models()) {
    const std::string name = model->name;
    if (o.quick && name != "mlp" && name != "cnn" && name != "gpt") continue;
    ordered_json all = ask(o, {"parity", "--model", name, "--size", "tiny", "--steps", out["steps"].dump(), "--device",
                               o.device, "--json"});
    ordered_json entry = {{"model", name}, {"ok", false}};
    if (all.contains("error")) {
      entry["error"] = all["error"];
    } else {
      const ordered_json& one = all["lockstep"][0];
      for (const char* key : {"ok", "worst_loss", "worst_gradient", "worst_state"}) entry[key] = one[key];
      if (!one["failures"].empty()) entry["failures"] = one["failures"];
    }
    out["models"].push_back(entry);
  }
  return out;
}

ordered_json bench(const PartOptions& o) {
  std::vector<std::string> arguments = {"bench", "--ops", "none", "--device", o.device, "--json=-"};
  arguments.insert(arguments.end(), {"--models", o.quick ? "mlp,cnn" : "mlp,cnn,resnet18,gpt,bert,lstm"});
  if (o.quick) arguments.emplace_back("--quick");
  ordered_json all = ask(o, arguments);
  if (all.contains("error")) return all;
  ordered_json out = {{"models", ordered_json::array()}};
  for (const ordered_json& m : all["results"]) {
    ordered_json entry = {{"model", m["case"]}, {"detail", m["detail"]}, {"precision", m["precision"]}};
    if (m["status"] == "measured") {
      entry["ms"] = m["ms"]["median"];
      entry["samples_per_s"] = m["samples_per_s"];
    } else {
      entry["error"] = m["reason"];
    }
    out["models"].push_back(entry);
  }
  out["notes"] = all["notes"];
  return out;
}

ordered_json states(const PartOptions& o) {
  ordered_json out = {{"runs", ordered_json::array()}};
  for (const ReferenceRun& run : reference_runs()) {
    if (o.quick && run.model != reference_runs().back().model) continue;
    ordered_json all = ask(o, {"train", run.model, "--size", "tiny", "--steps", std::to_string(run.steps), "--numerics",
                               "exact", "--no-eval", "--quiet", "--device", o.device, "--json"});
    ordered_json entry = {{"model", run.model}, {"steps", run.steps}, {"expected", run.state}, {"equal", false}};
    if (all.contains("error")) {
      entry["error"] = all["error"];
    } else {
      entry["state"] = all["state_hash"];
      entry["equal"] = all["state_hash"] == run.state;
      entry["step_ms"] = all["step_ms_median"];
    }
    out["runs"].push_back(entry);
  }
  return out;
}

}  // namespace

const std::vector<Part>& report_parts() {
  static const std::vector<Part> parts = {
      {"conformance", "the plugin against the ABI", conformance},
      {"parity", "every op and its gradients beside float64", fast_parity},
      {"lockstep", "training steps of the models beside float64", lockstep},
      {"exact", "the bits of every op with exact numerics", exact_parity},
      {"states", "the states of the reference runs (docs/EXACT.md)", states},
      {"bench", "times of training steps", bench},
  };
  return parts;
}

const std::vector<ReferenceRun>& reference_runs() {
  static const std::vector<ReferenceRun> runs = {
      {"cnn", 1000, "984a1127b5c66cb1"}, {"gpt", 200, "3d5474dfc01108f1"},      {"lstm", 200, "666632c94f6a77a3"},
      {"vit", 200, "c6ccb3762e6c8a0d"},  {"resnet18", 200, "304165e232ed4888"}, {"dlrm", 200, "99e79f8ff3df432c"},
  };
  return runs;
}

}  // namespace tutti::cli

#include "cli/compare/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

const ordered_json& at(const ordered_json& document, const char* key) {
  static const ordered_json none;
  auto it = document.find(key);
  return it == document.end() ? none : *it;
}

/// Whether a smaller number is the better one.
bool smaller_is_better(const std::string& key) {
  static const std::set<std::string> larger = {"samples_per_s", "r2"};
  static const std::set<std::string> smaller = {"loss",       "test_loss",  "step_ms_median", "compile_ms",
                                                "peak_bytes", "perplexity", "rmse",           "mae"};
  return smaller.contains(key) && !larger.contains(key);
}

/// What is shown of every run: key of the document, heading, format.
struct Column {
  const char* key;
  const char* heading;
  std::string (*text)(double);
};

std::string four(double x) { return fmt::format("{:.4f}", x); }
std::string whole(double x) { return fmt::format("{:.0f}", x); }

constexpr Column columns[] = {
    {"test_loss", "test loss", four},
    {"loss", "loss", four},
    {"steps", "steps", whole},
    {"step_ms_median", "ms/step", [](double x) { return fmt::format("{:.3f}", x); }},
    {"samples_per_s", "samples/s", whole},
    {"peak_bytes", "memory", [](double x) { return bytes_text(static_cast<uint64_t>(x)); }},
};

std::vector<std::string> metrics_of(const std::vector<RunRecord>& runs) {
  std::set<std::string> names;
  for (const RunRecord& r : runs)
    for (const auto& [name, value] : at(r.result, "metrics").items())
      if (value.is_number()) names.insert(name);
  return {names.begin(), names.end()};
}

}  // namespace

std::optional<double> RunRecord::number(const std::string& key) const {
  for (const ordered_json* part : {&result, &at(result, "metrics")})
    if (part->is_object())
      if (auto it = part->find(key); it != part->end() && it->is_number()) return it->get<double>();
  return {};
}

std::string RunRecord::option(const std::string& key) const {
  const ordered_json& options = at(result, "options");
  auto it = options.find(key);
  return it != options.end() && it->is_string() ? it->get<std::string>() : "";
}

RunRecord read_record(const std::string& path) {
  std::error_code ec;
  const bool folder = std::filesystem::is_directory(path, ec);
  const std::string file = folder ? path + "/run.json" : path;
  const char* remedy = "give folders of `tutti train --log-dir`, or files with the output of `tutti train --json`";
  std::filesystem::path shown(path);
  if (shown.filename().empty()) shown = shown.parent_path();  // "runs/a/"
  RunRecord r{(folder ? shown.filename() : shown.stem()).string(),
              ordered_json::parse(data::read_file(file, remedy), nullptr, false)};
  if (!r.result.is_object() || !r.result.contains("state_hash") || !at(r.result, "options").is_object())
    throw invalid(fmt::format("{}: not the document of a training run", file), remedy);
  return r;
}

std::vector<std::string> differing_options(const std::vector<RunRecord>& runs) {
  static const std::set<std::string> outputs = {"checkpoint", "log-dir", "report", "keep", "keep-best", "save-every"};
  std::set<std::string> names, differing;
  for (const RunRecord& r : runs)
    for (const auto& [name, value] : at(r.result, "options").items()) names.insert(name);
  for (const std::string& name : names)
    for (const RunRecord& r : runs)
      if (!outputs.contains(name) && r.option(name) != runs.front().option(name)) differing.insert(name);
  return {differing.begin(), differing.end()};
}

void sort_by(std::vector<RunRecord>& runs, const std::string& key) {
  if (std::ranges::none_of(runs, [&](const RunRecord& r) { return r.number(key).has_value(); })) {
    std::vector<std::string> known = metrics_of(runs);
    for (const Column& c : columns) known.emplace_back(c.key);
    throw invalid_option("sort", key, "no run has this number", did_you_mean(key, known));
  }
  const double sign = smaller_is_better(key) ? 1 : -1;
  auto rank = [&](const RunRecord& r) {
    auto x = r.number(key);
    return std::pair(!x || *x != *x, x.value_or(0) * sign);  // runs without the number, and NaN, come last
  };
  std::ranges::stable_sort(runs, {}, rank);
}

std::vector<std::vector<std::string>> rows_of(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> options = differing_options(runs), metrics = metrics_of(runs);
  auto& head = rows.emplace_back(std::vector<std::string>{"run", "device"});
  head.insert(head.end(), options.begin(), options.end());
  head.insert(head.end(), metrics.begin(), metrics.end());
  for (const Column& c : columns) head.emplace_back(c.heading);
  head.emplace_back("state");
  for (const RunRecord& r : runs) {
    auto& row = rows.emplace_back(std::vector<std::string>{r.name, r.result.value("device", "")});
    for (const std::string& o : options) row.push_back(r.option(o));
    for (const std::string& m : metrics) row.push_back(r.number(m) ? four(*r.number(m)) : "-");
    for (const Column& c : columns) row.push_back(r.number(c.key) ? c.text(*r.number(c.key)) : "-");
    row.push_back(r.result.value("state_hash", ""));
  }
  return rows;
}

std::string table_of(const std::vector<RunRecord>& runs) {
  const auto rows = rows_of(runs);
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  std::string text;
  for (const auto& row : rows) {
    for (size_t k = 0; k < row.size(); ++k) text += fmt::format("{}{:<{}}", k ? "  " : "", row[k], widths[k]);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

nlohmann::ordered_json document_of(const std::vector<RunRecord>& runs) {
  ordered_json out{{"differing_options", differing_options(runs)}, {"runs", ordered_json::array()}};
  for (const RunRecord& r : runs) {
    ordered_json run{{"name", r.name}};
    for (const auto& [key, value] : r.result.items())
      if (key != "losses") run[key] = value;
    out["runs"].push_back(std::move(run));
  }
  return out;
}

}  // namespace tutti::cli

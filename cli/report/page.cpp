#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/page_style.h"
#include "cli/metrics.h"
#include "cli/report/line_chart.h"
#include "core/base/printable.h"
#include "core/base/text.h"

namespace tutti::cli {
namespace {

constexpr size_t matrix_classes = 32;  // larger matrices are not drawn
constexpr size_t worst_pairs = 20, costliest = 25;

constexpr std::string_view style = R"(
.verdict { font-size: 1.1em; color: var(--ink); white-space: pre-line; overflow-wrap: anywhere; }
.numbers { display: flex; flex-wrap: wrap; gap: .6em; margin: 1em 0; }
.numbers div { background: var(--panel); border: 1px solid var(--line); border-radius: .5em; padding: .5em 1em; }
.numbers b { display: block; font-size: 1.35em; font-variant-numeric: tabular-nums; } .numbers span { color: var(--soft); }
table.matrix { font-size: .85em; } table.matrix td, table.matrix th { padding: .25em .45em; text-align: right; font-weight: 400; }
table.matrix th { color: var(--soft); white-space: nowrap; } table.matrix td { border: 1px solid var(--panel); }
table.matrix td.zero { color: var(--soft); }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(5.5em, 1fr)); gap: .6em; }
.gallery div { font-size: .8em; color: var(--soft); overflow-wrap: anywhere; }
img { width: 100%; height: auto; image-rendering: pixelated; border-radius: .2em; display: block; }
img.drawn { max-width: 30em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); border: 1px solid var(--line);
  border-radius: .5em; padding: .8em 1em; font-size: .9em; } pre b { color: var(--c0); font-weight: 400; }
)";

/// Escapes text from users and files for use in an element or an attribute.
std::string clean(std::string_view text) { return escape_xml(printable(text)); }

/// Base64 (RFC 4648) with padding.
std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? digits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string image(const std::string& png, const std::string& words, const char* kind) {
  return fmt::format("<img class=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\"/>", kind, clean(words),
                     base64(png));
}

std::string section(const std::string& title, const std::string& words, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<section><h2>{}</h2>\n{}{}</section>\n", title,
                     words.empty() ? "" : fmt::format("<p>{}</p>\n", words), body);
}

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_null() ? "" : value.dump();
}

std::string duration_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  auto s = static_cast<int64_t>(seconds);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string header(const RunPage& run) {
  const nlohmann::ordered_json& r = run.result;
  std::string text = fmt::format("<h1>{}, {}</h1>\n<p class=\"verdict\">{}</p>\n<dl class=\"machine\">",
                                 clean(text_of(r.at("model"))), clean(text_of(r.at("size"))), clean(run.verdict));
  auto row = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", what, clean(value));
  };
  row("device", fmt::format("{}, {}; chosen: {}", text_of(r.at("device")), text_of(r.at("device_name")),
                            text_of(r.at("device_reason"))));
  row("data", text_of(r.at("data")));
  row("parameters", text_of(r.at("parameters")));
  row("precision",
      text_of(r.at("precision")) + (r.at("loss_scale").is_null()
                                        ? ""
                                        : fmt::format(", loss scale {}, {} steps skipped", text_of(r.at("loss_scale")),
                                                      text_of(r.at("skipped_steps")))));
  int64_t parts = r.at("accumulate");
  row("batch", text_of(r.at("batch")) + (parts > 1 ? fmt::format(" in {} parts", parts) : ""));
  row("optimizer", text_of(r.at("optimizer")));
  row("seed", text_of(r.at("seed")));
  row("when", run.date + " (UTC)");
  row("version", "tutti " + run.version);
  row("checkpoint", text_of(r.at("checkpoint")));
  row("state", text_of(r.at("state_hash")));
  return text + "</dl>\n";
}

std::string numbers(const RunPage& run) {
  const nlohmann::ordered_json& r = run.result;
  std::string text;
  auto number = [&](const std::string& value, const std::string& what) {
    text += fmt::format("<div><b>{}</b><span>{}</span></div>\n", clean(value), clean(what));
  };
  if (r.at("metrics").is_object())
    for (const auto& [name, value] : r.at("metrics").items())
      number(metric_text(name, value.get<double>()), name + " on the test set");
  if (!r.at("test_loss").is_null()) number(text_of(r.at("test_loss")), "test loss");
  if (!r.at("loss").is_null()) number(text_of(r.at("loss")), "training loss, last epoch");
  number(text_of(r.at("steps")), "steps");
  number(duration_text(run.seconds), "training");
  number(fmt::format("{:.3g} ms", r.at("step_ms_median").get<double>()), "a step (median)");
  number(fmt::format("{:.4g}", r.at("samples_per_s").get<double>()), "samples/s");
  number(fmt::format("{:.1f} %", 100 * r.at("data_wait").get<double>()), "waited for data");
  number(bytes_text(r.at("peak_bytes").get<uint64_t>()), "peak memory");
  return "<div class=\"numbers\">\n" + text + "</div>\n";
}

std::string curves(const RunPage& run) {
  static const Curve none;
  auto find = [](const std::map<std::string, Curve>& all, const std::string& name) {
    auto it = all.find(name);
    return it == all.end() ? &none : &it->second;
  };
  std::string grid = line_chart("Loss", "of a training batch, and of the test set; the band spans lowest to highest",
                                {{"training", find(run.steps, "loss")}, {"test", find(run.evaluations, "loss"), true}});
  for (const auto& [name, curve] : run.evaluations)
    if (name != "loss" && name != "train_loss")
      grid += line_chart(name, "of the test set", {{name, &curve, true}},
                         is_share(name) ? ValueScale::percent : ValueScale::numbers);
  const std::pair<const char*, std::pair<const char*, const char*>> known[] = {
      {"learning_rate", {"Learning rate", "of the optimizer's step"}},
      {"gradient_norm", {"Gradient norm", "of all weights' gradients, before clipping"}},
      {"samples_per_s", {"Speed", "samples/s"}},
      {"memory_bytes", {"Device memory", "bytes in use so far, at most"}}};
  for (const auto& [name, words] : known) {
    const Curve& c = *find(run.steps, name);
    bool moves = std::ranges::any_of(c.points(), [&](const CurvePoint& p) {
      return p.low != c.points().front().low || p.high != c.points().front().high;
    });
    const bool linear = std::string_view(name) == "learning_rate";  // the shape of a schedule shows on such an axis
    if (moves)
      grid +=
          line_chart(words.first, words.second, {{words.first, &c}}, linear ? ValueScale::linear : ValueScale::numbers);
  }
  return grid.empty() ? "" : "<div class=\"grid\">\n" + grid + "</div>\n";
}

std::string matrix(const Confusion& c) {
  size_t n = c.classes.size();
  if (n > matrix_classes) {
    struct Pair {
      size_t label, given;
      int64_t count;
    };
    std::vector<Pair> pairs;
    for (size_t i = 0; i < n; ++i)
      for (size_t k = 0; k < n; ++k)
        if (i != k && c.count(i, k) > 0) pairs.push_back({i, k, c.count(i, k)});
    std::ranges::stable_sort(pairs, std::greater(), &Pair::count);
    pairs.resize(std::min(pairs.size(), worst_pairs));
    std::string text =
        "<div class=\"scroll\"><table "
        "class=\"all\"><thead><tr><th class=\"why\">label</th><th class=\"why\">given</th><th>samples</th></tr></thead>"
        "<tbody>\n";
    for (const Pair& p : pairs)
      text += fmt::format("<tr><th scope=\"row\">{}</th><th>{}</th><td>{}</td></tr>\n", clean(c.classes[p.label]),
                          clean(c.classes[p.given]), p.count);
    return pairs.empty() ? "" : text + "</tbody></table></div>\n";
  }
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\"><table "
      "class=\"matrix\"><thead><tr><th>label</th>";
  for (const std::string& name : c.classes) text += fmt::format("<th scope=\"col\">{}</th>", clean(name));
  text += "<th>right</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < n; ++i) {
    int64_t all = 0;
    for (size_t k = 0; k < n; ++k) all += c.count(i, k);
    text += fmt::format("<tr><th scope=\"row\">{}</th>", clean(c.classes[i]));
    for (size_t k = 0; k < n; ++k) {
      double share = all > 0 ? static_cast<double>(c.count(i, k)) / static_cast<double>(all) : 0;
      if (c.count(i, k) == 0)
        text += "<td class=\"zero\">0</td>";
      else
        text += fmt::format(
            "<td style=\"background:color-mix(in srgb, var(--c{}) {:.0f}%, transparent)\" title=\"{} of {} given "
            "{}\">{}</td>",
            i == k ? 2 : 1, std::max(4.0, i == k ? 45 * share : 90 * share), c.count(i, k), all, clean(c.classes[k]),
            c.count(i, k));
    }
    text += fmt::format(
        "<td>{}</td></tr>\n",
        all > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(c.count(i, i)) / static_cast<double>(all)) : "");
  }
  return text + "</tbody></table></div>\n";
}

std::string mistakes(const RunPage& run) {
  if (run.mistakes.empty()) return "";
  const Confusion& c = *run.confusion;
  std::string text = "<div class=\"gallery\">\n";
  for (size_t i = 0; i < run.mistakes.size(); ++i) {
    const Confusion::Mistake& m = c.mistakes[i];
    std::string words = fmt::format("{}, predicted as {}", c.classes[static_cast<size_t>(m.label)],
                                    c.classes[static_cast<size_t>(m.given)]);
    text += fmt::format("<div>{}{} ({:.0f} %)</div>\n",
                        image(run.mistakes[i], fmt::format("sample {}: {}", m.sample, words), "sample"), clean(words),
                        100 * m.probability);
  }
  return text + "</div>\n";
}

std::string memory(const RunPage& run) {
  if (!run.memory) return "";
  const MemoryPlan& p = *run.memory;
  std::vector<std::pair<const char*, uint64_t>> rows{{"parameters", p.parameters},
                                                     {"optimizer state", p.optimizer},
                                                     {"data set", p.data_set},
                                                     {"accumulated gradients", p.accumulated},
                                                     {"other state", p.other_state},
                                                     {"training step", transient(p.training)},
                                                     {"update", transient(p.update)},
                                                     {"last batch", transient(p.last)},
                                                     {"evaluation", transient(p.evaluation)},
                                                     {"initialization", p.early}};
  uint64_t most = 1;
  for (const auto& [what, bytes] : rows) most = std::max(most, bytes);
  std::string text = "<table class=\"bars\" aria-label=\"Memory by kind\">\n";
  for (const auto& [what, bytes] : rows)
    if (bytes > 0)
      text += fmt::format(
          "<tr><th scope=\"row\">{}</th><td class=\"track l0\"><div><b class=\"bar\" style=\"width:{:.2f}%\"></b></div>"
          "</td><td class=\"value\">{}</td></tr>\n",
          what, 100 * static_cast<double>(bytes) / static_cast<double>(most), bytes_text(bytes));
  text += "</table>\n<details><summary>the largest tensors of the training step</summary><ul>\n";
  for (const auto& t : p.largest) text += fmt::format("<li>{} {}</li>\n", bytes_text(t.bytes), clean(t.what));
  return "<figure>" + text + "</ul></details></figure>\n";
}

std::string times(const RunPage& run) {
  if (run.profile.empty()) return "";
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Time by node\"><table "
      "class=\"all\"><thead><tr><th>node</th><th>time</th><th>of the step</th><th>of the roofline</th>"
      "<th class=\"why\">kernel</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < std::min(run.profile.size(), costliest); ++i) {
    const ProfileRow& r = run.profile[i];
    text += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{:.3f} ms</td><td><meter min=\"0\" max=\"1\" "
        "value=\"{:.3f}\"></meter>{:.1f} %</td><td>{}</td><td class=\"why\">{}</td></tr>\n",
        clean(r.node), 1e3 * r.seconds, r.of_step, 100 * r.of_step,
        r.of_peak ? fmt::format("{:.0f} %", 100 * *r.of_peak) : "", clean(r.kernel));
  }
  return text + "</tbody></table></div>\n";
}

std::string places(const RunPage& run) {
  std::string device = text_of(run.result.at("device"));
  if (run.fallback.nodes.empty()) return fmt::format("<p>Every node of every program ran on {}.</p>\n", clean(device));
  std::string text = fmt::format("<p>{} declined these, which ran elsewhere; {} are copied per step.</p>\n<ul>\n",
                                 clean(device), bytes_text(run.fallback.bytes_per_step));
  for (const std::string& node : run.fallback.nodes) text += fmt::format("<li>{}</li>\n", clean(node));
  return text + "</ul>\n";
}

}  // namespace

std::string page(const RunPage& run) {
  std::string title = fmt::format("Tutti: {} on {}", text_of(run.result.at("model")), text_of(run.result.at("device")));
  std::string text = bench::page_head(title, std::string(chart_style) + std::string(style));
  text += "<header>" + header(run) + "</header>\n<main>\n" + numbers(run);
  text += section("Curves", "", curves(run));
  if (run.confusion) {
    text += section("Confusion",
                    run.confusion->classes.size() > matrix_classes
                        ? "The pairs of classes of the test set that are confused most often."
                        : "The test set: one row per label, one column per predicted class. Green is correct.",
                    matrix(*run.confusion));
    text +=
        section("Most confident mistakes", "Samples of the test set, with the predicted probability.", mistakes(run));
  }
  if (!run.drawn.empty())
    text += section("Generated images", "",
                    "<figure>" + image(run.drawn, "Images generated by the model", "drawn") + "</figure>\n");
  if (run.written)
    text += section("Generated text", "Continuation of the beginning of the test set (coloured), at temperature 0.8.",
                    fmt::format("<pre><b>{}</b>{}</pre>\n", clean(run.written->prompt), clean(run.written->text)));
  text += section("Memory", "Device memory of the run, as planned before it started.", memory(run));
  text += section("Where the time goes",
                  "The most expensive nodes of a training step, with the nodes fused into their kernels.", times(run));
  text += section("What ran where", "", places(run));
  text += section("Run it again", "Save this as run.toml, then: tutti train --config run.toml",
                  run.run_file.empty()
                      ? ""
                      : "<details><summary>options</summary><pre>" + clean(run.run_file) + "</pre></details>\n");
  return text + "</main></body></html>\n";
}

}  // namespace tutti::cli

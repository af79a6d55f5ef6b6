// Replay files: checkpoints with the graph in their metadata.
#include <fmt/format.h>

#include "core/base/status.h"
#include "data/files/strict_json.h"
#include "verify/bisect/replay_graph.h"
#include "verify/parity/tensor_file.h"

namespace tutti::bisect {
namespace {

using parity::metadata;
using parity::put;

using nlohmann::json;
using nlohmann::ordered_json;

constexpr parity::FileKind kind = {"tutti replay 1", "replay file", "`tutti bisect`"};

void put_all(Checkpoint& c, const std::string& prefix, const Tensors& tensors) {
  for (const auto& [name, t] : tensors) put(c, prefix + name, t);
}

/// The tensors of a checkpoint whose names start with `prefix`, with the prefix removed.
Tensors take(const Checkpoint& c, const std::string& prefix) {
  Tensors out;
  for (const auto& [name, t] : c.tensors)
    if (name.starts_with(prefix)) out.emplace(name.substr(prefix.size()), tensor_from(t.type, t.bytes.data()));
  return out;
}

json parsed(const Checkpoint& c, const char* key) {
  const std::string& text = metadata(c, key);
  return parse_strict(text, {}, [&](size_t, const std::string& what) {
    throw invalid(fmt::format("the metadata '{}' {}", key, what));
  });
}

void expect(const Tensors& tensors, const std::string& what, const std::string& name, const TensorType& type) {
  auto it = tensors.find(name);
  if (it == tensors.end()) throw invalid(fmt::format("no tensor '{}{}'", what, name));
  if (it->second.type != type)
    throw invalid(fmt::format("tensor '{}{}' is {}, but the graph has {}", what, name, to_string(it->second.type),
                              to_string(type)));
}

std::string text_at(const json& j, const char* key) {
  if (!j.is_object() || !j.contains(key) || !j[key].is_string())
    throw invalid(fmt::format("the metadata 'answers' has no string '{}'", key));
  return j[key].get<std::string>();
}

Replay read(const Checkpoint& c) {
  Replay r;
  Tensors constants;
  for (auto& [name, t] : take(c, "constant/")) constants.emplace("constant/" + name, t);
  r.graph = graph_from(parsed(c, "graph"), constants);
  r.inputs = take(c, "input/");
  r.truth = take(c, "truth/");
  for (const ValueInfo& v : r.graph.values())
    if (v.role == Role::feed || v.role == Role::state) expect(r.inputs, "input/", v.name, v.type);
  json answers = parsed(c, "answers");
  if (!answers.is_array() || answers.size() > 16) throw invalid("the metadata 'answers' must be a short list");
  for (size_t k = 0; k < answers.size(); ++k)
    r.answers.push_back({text_at(answers[k], "id"), text_at(answers[k], "name"), text_at(answers[k], "driver"),
                         text_at(answers[k], "how"), take(c, fmt::format("answer/{}/", k))});
  for (const State& s : r.graph.states()) {
    if (s.after == s.before) continue;
    const TensorType& type = r.graph.info(s.after).type;
    expect(r.truth, "truth/", s.name, type);
    for (size_t k = 0; k < r.answers.size(); ++k)
      expect(r.answers[k].results, fmt::format("answer/{}/", k), s.name, type);
  }
  for (const auto& [key, text] : c.metadata)
    if (key.starts_with("about.")) r.about.emplace(key.substr(6), text);
  return r;
}

}  // namespace

void write_replay(const std::string& path, const Replay& r) {
  Checkpoint c;
  Tensors constants;
  c.metadata["graph"] = to_json(r.graph, constants).dump();
  put_all(c, "", constants);
  put_all(c, "input/", r.inputs);
  put_all(c, "truth/", r.truth);
  ordered_json answers = ordered_json::array();
  for (size_t k = 0; k < r.answers.size(); ++k) {
    const Answer& a = r.answers[k];
    answers.push_back({{"id", a.id}, {"name", a.name}, {"driver", a.driver}, {"how", a.how}});
    put_all(c, fmt::format("answer/{}/", k), a.results);
  }
  c.metadata["answers"] = answers.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  for (const auto& [key, text] : r.about) c.metadata["about." + key] = text;
  parity::write_tensor_file(path, kind, std::move(c));
}

Replay read_replay(const std::string& path) {
  Replay r;
  parity::read_tensor_file(path, kind, [&](const Checkpoint& c) { r = read(c); });
  return r;
}

}  // namespace tutti::bisect

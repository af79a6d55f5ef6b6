#include "train/hf/rename.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti::hf {
namespace {

/// Renames by a function of the name; the first of two equal names is kept.
template <class F>
void rename(HostTensors& all, F f) {
  HostTensors ours;
  while (!all.empty()) {
    auto node = all.extract(all.begin());
    node.key() = f(node.key());
    ours.insert(std::move(node));
  }
  all = std::move(ours);
}

}  // namespace

void add_prefix(HostTensors& all, const std::string& prefix, const std::string& witness,
                const std::vector<std::string>& others) {
  if (all.contains(prefix + witness) || !all.contains(witness)) return;
  rename(all, [&](const std::string& name) {
    bool other = std::ranges::any_of(others, [&](const std::string& o) { return name.starts_with(o); });
    return other ? name : prefix + name;
  });
}

void drop(HostTensors& all, const std::vector<std::string>& patterns) {
  std::erase_if(all, [&](const auto& item) {
    return std::ranges::any_of(patterns,
                               [&](const std::string& p) { return fnmatch(p.c_str(), item.first.c_str(), 0) == 0; });
  });
}

void drop_tied(HostTensors& all, const std::string& copy, const std::string& original, const std::string& file) {
  auto it = all.find(copy), of = all.find(original);
  if (it == all.end() || of == all.end()) return;
  if (it->second != of->second)
    throw invalid(
        fmt::format("{}: '{}' differs from '{}', but config.json says that they are tied", file, copy, original),
        "set \"tie_word_embeddings\": false in config.json if the model has a head of its own");
  all.erase(it);
}

void rename_ending(HostTensors& all, const std::string& from, const std::string& to) {
  rename(all, [&](const std::string& name) {
    return name.ends_with(from) ? name.substr(0, name.size() - from.size()) + to : name;
  });
}

void drop_counters(HostTensors& all) { drop(all, {"*.num_batches_tracked"}); }

void expect_vocabulary(const ModelOptions& o, const data::Source& train, int64_t vocabulary,
                       const std::string& column) {
  int64_t classes = train.column(column).classes;
  if (classes > vocabulary)
    throw invalid(fmt::format("{} has {} tokens, but the model's vocabulary has {}", o.data, classes, vocabulary),
                  "use the model's own tokenizer");
}

}  // namespace tutti::hf

#include "train/io/weight_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "core/base/wildcard.h"

namespace tutti {
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
    return std::ranges::any_of(patterns, [&](const std::string& p) { return matches_wildcard(p, item.first); });
  });
}

void drop_tied(HostTensors& all, const std::string& copy, const std::string& original, const std::string& file) {
  auto it = all.find(copy), of = all.find(original);
  if (it == all.end() || of == all.end()) return;
  if (it->second != of->second)
    throw invalid(fmt::format("{}: '{}' differs from '{}': the file has an untied output head, but the model ties the "
                              "head to the embedding",
                              file, copy, original),
                  "use weights whose head is tied; for a Hugging Face folder, or set \"tie_word_embeddings\": false in "
                  "its config.json");
  all.erase(it);
}

void rename_ending(HostTensors& all, const std::string& from, const std::string& to) {
  rename(all, [&](const std::string& name) {
    return name.ends_with(from) ? name.substr(0, name.size() - from.size()) + to : name;
  });
}

void drop_counters(HostTensors& all) {
  constexpr std::string_view counter = "num_batches_tracked";
  std::erase_if(all, [&](const auto& item) {
    const std::string& name = item.first;
    return name.ends_with(counter) && all.contains(name.substr(0, name.size() - counter.size()) + "running_mean");
  });
}

void take_gpt2_names(HostTensors& all, bool tied, const std::string& file) {
  add_prefix(all, "transformer.", "wte.weight", {"lm_head."});
  drop(all, {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"});
  if (tied) drop_tied(all, "lm_head.weight", "transformer.wte.weight", file);
}

void take_llama_names(HostTensors& all, bool tied, const std::string& file) {
  add_prefix(all, "model.", "embed_tokens.weight", {"lm_head."});
  drop(all, {"model.layers.*.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"});
  if (tied) drop_tied(all, "lm_head.weight", "model.embed_tokens.weight", file);
}

void take_our_names(HostTensors& all, const std::string& path) {
  drop_counters(all);
  take_gpt2_names(all, true, path);
  take_llama_names(all, true, path);
}

}  // namespace tutti

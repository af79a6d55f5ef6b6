#include "train/io/weight_names.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <vector>

#include "core/base/status.h"

namespace tutti {
namespace {

/// Naming scheme of a language model in Hugging Face transformers.
struct Family {
  std::string prefix;                ///< prefix of all names; missing in files of a model without its head
  std::string embedding;             ///< name after the prefix; identifies the family
  std::vector<std::string> buffers;  ///< patterns after the prefix: buffers that the model recomputes
};

const Family families[] = {
    {"transformer.", "wte.weight", {"h.*.attn.bias", "h.*.attn.masked_bias"}},      // GPT-2: causal masks
    {"model.", "embed_tokens.weight", {"layers.*.self_attn.rotary_emb.inv_freq"}},  // Llama: rotary frequencies
};

constexpr const char* head = "lm_head.weight";

void take_names_of(const Family& f, HostTensors& all, const std::string& path) {
  bool bare = all.contains(f.embedding);
  if (!bare && !all.contains(f.prefix + f.embedding)) return;
  auto tied = all.extract(head);
  HostTensors ours;
  while (!all.empty()) {
    auto node = all.extract(all.begin());
    if (bare) node.key() = f.prefix + node.key();
    bool buffer = false;
    for (const std::string& pattern : f.buffers)
      buffer = buffer || fnmatch((f.prefix + pattern).c_str(), node.key().c_str(), 0) == 0;
    if (!buffer) ours.insert(std::move(node));
  }
  all = std::move(ours);
  if (!tied.empty() && tied.mapped() != all.at(f.prefix + f.embedding))
    throw invalid(fmt::format("{}: '{}' differs from '{}{}': the file has an untied output head, but the model ties "
                              "the head to the embedding",
                              path, head, f.prefix, f.embedding),
                  "use weights whose head is tied to the embedding, or another model");
}

/// Drops PyTorch's BatchNorm batch counters, which do not affect results.
void leave_out_counters(HostTensors& all) {
  constexpr std::string_view counter = "num_batches_tracked";
  std::erase_if(all, [&](const auto& item) {
    const std::string& name = item.first;
    return name.ends_with(counter) && all.contains(name.substr(0, name.size() - counter.size()) + "running_mean");
  });
}

}  // namespace

void take_our_names(HostTensors& all, const std::string& path) {
  leave_out_counters(all);
  for (const Family& f : families) take_names_of(f, all, path);
}

}  // namespace tutti

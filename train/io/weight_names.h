// Maps weight names of other libraries to the names of Tutti's models.
#pragma once
#include <string>
#include <vector>

#include "data/host_tensor.h"

namespace tutti {

/// Adds the prefix to all names that do not begin with it or with one of `others`, if `witness` lacks it: files of a
/// model saved without its head.
void add_prefix(HostTensors& all, const std::string& prefix, const std::string& witness,
                const std::vector<std::string>& others);
/// Drops the names that match a pattern ("h.*.attn.bias").
void drop(HostTensors& all, const std::vector<std::string>& patterns);
/// Drops `copy` if it equals `original`. Throws Error(invalid) naming the file if they differ.
void drop_tied(HostTensors& all, const std::string& copy, const std::string& original, const std::string& file);
/// Replaces `from` by `to` in every name that ends with `from`.
void rename_ending(HostTensors& all, const std::string& from, const std::string& to);
/// Drops PyTorch's BatchNorm batch counters, which do not affect results.
void drop_counters(HostTensors& all);

/// Adds the prefix of models saved without their head, drops buffers that the model recomputes (causal masks, rotary
/// frequencies), and the copy of the embedding that a tied head is. No effect on weights of other models. Throws
/// Error(invalid) naming the file if a tied head differs from the embedding.
void take_gpt2_names(HostTensors& all, bool tied, const std::string& file);
void take_llama_names(HostTensors& all, bool tied, const std::string& file);

/// Renames the weights of a file for a built-in model, whose head is tied. Most files need no change, because Tutti's
/// models use the names of PyTorch's libraries. Throws Error(invalid) like the functions above.
void take_our_names(HostTensors& all, const std::string& path);

}  // namespace tutti

// Renames the weights of Hugging Face's files to those of the models.
#pragma once
#include <string>
#include <vector>

#include "data/host_tensor.h"
#include "train/task/model.h"

namespace tutti::hf {

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
/// Drops PyTorch's batch counters.
void drop_counters(HostTensors& all);

/// Throws Error(invalid) if the data has more tokens than the model.
void expect_vocabulary(const ModelOptions& o, const data::Source& train, int64_t vocabulary,
                       const std::string& column = "tokens");

}  // namespace tutti::hf

// What a program's feeds take of a batch.
#pragma once
#include <string>
#include <vector>

#include "data/batch_loader.h"
#include "data/loader.h"
#include "graph/graph.h"
#include "train/programs.h"

namespace tutti {

/// Some samples of a batch.
struct Samples {
  size_t first, count;
};

/// The columns of a batch that feeds of the graph bear the names of; none where the set lies on the device.
std::vector<std::string> fed_columns(const Graph& g, const InputLayout& form);

/// Writes samples of a batch into the memory of a feed: their numbers for "indices", else the column of that name.
void fill_batch(data::BatchLoader& loader, const data::Batch& batch, Samples part, const std::string& feed, void* to);

}  // namespace tutti

// Fills a program's feeds from a batch.
#pragma once
#include <string>
#include <vector>

#include "data/batch_loader.h"
#include "data/loader.h"
#include "graph/graph.h"
#include "train/step/programs.h"

namespace tutti {

/// A range of samples in a batch.
struct Samples {
  size_t first, count;
};

/// The columns that the graph reads as feeds; none if the set is resident on the device.
std::vector<std::string> fed_columns(const Graph& g, const InputLayout& form);

/// Writes samples of a batch to the memory of a feed: the sample indices for "indices", else the column of that name.
void fill_batch(data::BatchLoader& loader, const data::Batch& batch, Samples part, const std::string& feed, void* to);

}  // namespace tutti

#include "train/run/feeds.h"

#include <algorithm>
#include <cstring>

namespace tutti {

std::vector<std::string> fed_columns(const Graph& g, const InputLayout& form) {
  std::vector<std::string> columns;
  for (const data::Column& c : form.columns)
    if (std::ranges::any_of(g.values(), [&](const ValueInfo& v) { return v.role == Role::feed && v.name == c.name; }))
      columns.push_back(c.name);
  return form.resident ? std::vector<std::string>{} : columns;
}

void fill_batch(data::BatchLoader& loader, const data::Batch& batch, Samples part, const std::string& feed, void* to) {
  if (feed == "indices")
    std::memcpy(to, batch.indices.data() + part.first, part.count * sizeof(int32_t));
  else
    loader.read(feed, part.first, part.count, to);
}

}  // namespace tutti

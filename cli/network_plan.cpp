#include "cli/network_plan.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/option_text.h"
#include "core/base/quantity.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::cli {
Network parse_network(const std::string& text) {
  std::vector<std::string> parts = split(text, ',');
  Network network;
  if (parts.size() == 2)
    network = {quantity(parts[0], {{"Gbit/s", 1e9 / 8}, {"Mbit/s", 1e6 / 8}, {"GB/s", 1e9}, {"MB/s", 1e6}}).value_or(0),
               quantity(parts[1], {{"us", 1e-6}, {"ms", 1e-3}}).value_or(0)};
  if (network.bytes_per_second == 0 || network.latency == 0)
    throw invalid_option("network", text, "expected the rate and the latency of a link",
                         "for example 50GB/s,5us or 4Gbit/s,50us");
  return network;
}

double communication(const Network& network, int64_t ranks, uint64_t gradient_bytes, bool sharded) {
  const auto n = static_cast<double>(ranks), bytes = static_cast<double>(gradient_bytes);
  const double share = network.latency + bytes / n / network.bytes_per_second;  // a message of one rank's share
  const double sum = 2 * (n - 1) * share;
  return sharded ? sum + n * std::ceil(std::log2(n)) * share : sum;
}

double measured_share(const Device& device, const Task& task, TrainerOptions options, const data::Source& train,
                      int64_t ranks) {
  constexpr int64_t steps = 5;
  options.batch /= ranks;
  options.planned_ranks = 1;
  options.shard = "none";
  options.reduce = "fast";
  Trainer trainer(device, task, options);
  trainer.train(train, 1);  // the first step is slower
  const double before = trainer.train_seconds();
  const TrainResult result = trainer.train(train, steps);
  return (trainer.train_seconds() - before) / static_cast<double>(result.steps);
}

}  // namespace tutti::cli

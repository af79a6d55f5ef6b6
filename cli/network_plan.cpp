#include "cli/network_plan.h"

#include <algorithm>
#include <cmath>

#include "core/base/option_text.h"
#include "core/base/quantity.h"
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

namespace {

constexpr double piece_bytes = 4 << 20;  // larger sums are made in pieces, see core/world/comm_thread.cpp

/// Seconds of a sum over all ranks in a ring, in pieces.
double ring(const Network& network, double ranks, double bytes) {
  const double pieces = std::max(1.0, std::ceil(bytes / piece_bytes));
  return 2 * (ranks - 1) * (pieces * network.latency + bytes / ranks / network.bytes_per_second);
}

}  // namespace

NetworkPlan predict_network(const Network& network, int64_t ranks, const RankStep& step, bool overlaps, bool sharded) {
  const auto n = static_cast<double>(ranks);
  NetworkPlan plan{.parts = step.parts, .update = step.update};
  double free = 0, bytes = 0;  // when the network is free again
  for (const RankStep::Bucket& b : step.buckets) {
    const double takes = ring(network, n, static_cast<double>(b.bytes));
    free = std::max(free, overlaps ? b.ready : step.parts) + takes;
    plan.communication += takes;
    bytes += static_cast<double>(b.bytes);
  }
  plan.waiting = free - step.parts;
  if (sharded) {
    const double broadcasts = n * std::ceil(std::log2(n)) * (network.latency + bytes / n / network.bytes_per_second);
    plan.communication += broadcasts;
    plan.waiting += broadcasts;
  }
  return plan;
}

}  // namespace tutti::cli

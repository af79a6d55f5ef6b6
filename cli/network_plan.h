// What a run on many ranks would take, by a model of the network (tutti plan --network).
#pragma once
#include <cstdint>
#include <string>

#include "train/run/rank_step.h"

namespace tutti::cli {

/// A link of every rank, in the alpha-beta model: a message of b bytes takes latency + b / bytes_per_second.
struct Network {
  double bytes_per_second = 0, latency = 0;  ///< seconds
};

/// "50GB/s,5us" or "4Gbit/s,50us". Throws Error(invalid) for another text.
Network parse_network(const std::string& text);

/// Seconds of a step on many ranks.
struct NetworkPlan {
  double parts = 0, update = 0;  ///< a rank's computation
  double communication = 0;      ///< of the sums and broadcasts
  double waiting = 0;            ///< the part of it in which nothing is computed
  double step() const { return parts + waiting + update; }
};

/// Predicts a step on so many ranks from one rank's: buckets are summed one after the other in a ring (all_reduce, or
/// all_to_all and all_gather), each as soon as it is ready if communication `overlaps` the computation; where the
/// optimizer is `sharded`, every rank then broadcasts in a binomial tree.
NetworkPlan predict_network(const Network& network, int64_t ranks, const RankStep& step, bool overlaps, bool sharded);

}  // namespace tutti::cli

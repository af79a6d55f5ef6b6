// What a run on many ranks would take, by a model of the network (tutti plan --network).
#pragma once
#include <cstdint>
#include <string>

#include "train/run/plan.h"

namespace tutti::cli {

/// A link of every rank, in the alpha-beta model: a message of b bytes takes latency + b / bytes_per_second.
struct Network {
  double bytes_per_second = 0, latency = 0;  ///< seconds
};

/// "50GB/s,5us" or "4Gbit/s,50us". Throws Error(invalid) for another text.
Network parse_network(const std::string& text);

/// Seconds of a step in which a rank does nothing but communicate: the sum of the gradients in a ring (all_reduce, or
/// all_to_all and all_gather), and, where the optimizer is sharded, a broadcast by every rank in a binomial tree.
double communication(const Network& network, int64_t ranks, uint64_t gradient_bytes, bool sharded);

/// Measures a step of one rank's share of the batch on this device, in seconds: the mean of a few steps.
double measured_share(const Device& device, const Task& task, TrainerOptions options, const data::Source& train,
                      int64_t ranks);

}  // namespace tutti::cli

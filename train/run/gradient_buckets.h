// How accumulated gradients travel between ranks with --reduce fast.
#pragma once
#include <string>
#include <vector>

#include "train/step/programs.h"

namespace tutti {

/// States that travel together.
struct GradientBucket {
  size_t first = 0, count = 0;  ///< of the states
  size_t at = 0, elements = 0;  ///< the place among the elements of all states
};

/// The accumulated states of a step, in the order in which they travel: large gradients, last layer first, then all
/// else as one bucket. The same on every rank, whatever its device.
struct GradientBuckets {
  struct State {
    std::string name;
    size_t at, bytes;  ///< the first element among those of all states; bytes of the state
    size_t bucket;
  };
  /// `division`: without those of its parameters.
  GradientBuckets(const ModelSignature& declared, Precision precision, const Division& division = {});
  /// The names of the first states, which accumulation programs add as soon as they are computed.
  std::vector<std::string> early() const;

  std::vector<State> states;
  std::vector<GradientBucket> buckets;
  size_t large = 0;     ///< number of states that early() names
  size_t elements = 0;  ///< of all states
};

}  // namespace tutti

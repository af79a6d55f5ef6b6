// Finds the node at which two devices with exact numerics have other bits.
#pragma once
#include "verify/bisect/bisect.h"

namespace tutti::bisect {

/// The first value, in program order, whose bits differ although its node's inputs have the same bits.
struct ExactFinding {
  int64_t step = 0;   ///< from 0
  uint32_t node = 0;  ///< in the program, which is the same on both devices
  Node blamed;        ///< its label and op
  Types inputs, results;
  parity::Difference difference;  ///< of the first device from the second
  /// The index of the device whose bits are not those of the reference; none if it is both.
  std::optional<size_t> wrong;
};

struct ExactResult {
  int64_t steps = 0;  ///< steps done
  size_t nodes = 0;   ///< nodes compared per step
  std::optional<ExactFinding> finding;
};

/// Runs the training steps on both devices with exact numerics and all values kept, from the same first state. Stops at
/// the first difference. Throws Error if a device declines nodes.
ExactResult bisect_exact(const Device& a, const Device& b, const BisectOptions& options);

}  // namespace tutti::bisect

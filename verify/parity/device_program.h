// A graph compiled on a device, with tensors as inputs and results.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/runtime/session.h"
#include "graph/eval.h"
#include "graph/lower/compile.h"

namespace tutti::parity {

/// Tensors by name of feed or state.
using Tensors = std::map<std::string, Tensor>;

class DeviceProgram {
 public:
  /// Compiles and prepares `g`. Both must outlive the program. `tuning_bytes`: see Session::compile. Throws
  /// Error(declined) with the device's reasons.
  DeviceProgram(Session& session, const Graph& g, uint64_t tuning_bytes = 0);
  /// Writes the states in `inputs` (if `write_states`), sets the feeds, runs one step and returns all states.
  Tensors run(const Tensors& inputs, bool write_states = true);

  /// Single operations, for programs whose state stays on the device.
  void write(const std::string& state, const Tensor& value);
  Tensor read(const std::string& state);
  void step(const Tensors& feeds);

 private:
  Session& session_;
  const Graph& graph_;
  Legalizer legalizer_;
  Lowered lowered_;
  Executable executable_;
};

}  // namespace tutti::parity

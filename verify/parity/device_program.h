// A graph compiled on a device, run with tensors and read back as tensors.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/runtime/session.h"
#include "graph/eval.h"
#include "graph/lower/compile.h"

namespace tutti::parity {

/// Tensors by the names of feeds and states.
using Tensors = std::map<std::string, Tensor>;

class DeviceProgram {
 public:
  /// Compiles and prepares `g`. Both must outlive the program. `tuning_bytes`: see Session::compile. Throws
  /// Error(declined) with the device's reasons.
  DeviceProgram(Session& session, const Graph& g, uint64_t tuning_bytes = 0);
  /// Writes the states of `inputs` (unless those of the device are to be kept), feeds the feeds, runs one step and
  /// returns every state after it.
  Tensors run(const Tensors& inputs, bool write_states = true);

  /// The pieces, for programs whose state stays on the device.
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

// The ordered kernel list of rendered devices: which text of kernels/portable runs a node.
#pragma once
#include <string>
#include <vector>

#include "kernels/codegen/portable.h"
#include "sdk/driver.h"
#include "sdk/kernel_list.h"
#include "sdk/library.h"
#include "sdk/plan/fusion.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// What a product does with its result before it is stored.
struct Epilogue {
  bool bias = false;                  ///< the kernel's next input is added along the last axis
  bool relu = false;                  ///< then max(x, 0)
  Gelu gelu = Gelu::none;             ///< or this: by a library alone
  OperandSum sum = OperandSum::none;  ///< as a second result: by a library alone
};

/// What an entry decides on.
struct RenderNodeView {
  const Program& program;
  uint32_t number;
  const Traits& traits;
  Epilogue epilogue = {};
  bool trial = false;         ///< of LibraryRequest
  uint64_t tuning_bytes = 0;  ///< likewise
  bool in_place = false;      ///< the result of Capabilities::in_place lies where the input does

  const Node& node() const { return program.nodes[number]; }
  const TensorType& in(size_t k) const { return program.type(node().inputs[k]); }
  const TensorType& out(size_t k) const { return program.type(node().results[k]); }
  bool wants(size_t k) const { return k < node().results.size() && node().results[k] != TUTTI_NONE; }
};

using RenderEntry = Entry<RenderNodeView, codegen::LaunchList>;
using RenderChoice = Choice<RenderNodeView, codegen::LaunchList>;

/// Asks the list for a node; its numerics, version, flags and sizes first.
RenderChoice choose_rendered(const RenderNodeView& c);

/// How a pass reads its inputs.
std::vector<codegen::Operand> operands_of(const Program& program, const Fusion& f);
/// The kernel of a pass.
codegen::LaunchList render(const Program& program, const Traits& traits, const Fusion& f);

}  // namespace tutti::sdk

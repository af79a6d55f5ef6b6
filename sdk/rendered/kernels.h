// The ordered kernel list of rendered devices, which maps nodes to kernels in kernels/portable.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "kernels/codegen/portable.h"
#include "sdk/driver.h"
#include "sdk/kernel_list.h"
#include "sdk/library.h"
#include "sdk/plan/fusion.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// Operations on a product's result before it is stored.
struct Epilogue {
  bool bias = false;                        ///< the kernel's next input is added along the last axis
  bool relu = false;                        ///< then max(x, 0)
  Gelu gelu = Gelu::none;                   ///< or gelu: library only
  OperandSum sum = OperandSum::none;        ///< second result,
  bool sum_f32 = false;                     ///< cast to f32: not for libraries
  std::vector<TuttiInstr> activation = {};  ///< see codegen::Matmul: not for libraries; its other inputs are the next
  std::vector<codegen::Operand> others = {};
  bool keep = false;
};

/// The view of a node for entries.
struct RenderNodeView {
  const Program& program;
  uint32_t number;
  const Traits& traits;
  Epilogue epilogue = {};
  bool trial = false;                              ///< LibraryRequest::trial
  uint64_t tuning_bytes = 0;                       ///< LibraryRequest::tuning_bytes
  bool compares = false;                           ///< LibraryRequest::portable is set
  bool declined = false;                           ///< the device's library accepted the node, but declined it later
  bool in_place = false;                           ///< the result of Capabilities::in_place overwrites the input
  std::map<size_t, codegen::Operand> views = {};   ///< inputs that lie in another value's memory: Capabilities::views
  std::map<size_t, codegen::Operand> places = {};  ///< the same of results: Capabilities::places

  const Node& node() const { return program.nodes[number]; }
  const TensorType& in(size_t k) const { return program.type(node().inputs[k]); }
  const TensorType& out(size_t k) const { return program.type(node().results[k]); }
  bool wants(size_t k) const { return k < node().results.size() && node().results[k] != TUTTI_NONE; }
};

using RenderEntry = Entry<RenderNodeView, codegen::LaunchList>;
using RenderChoice = Choice<RenderNodeView, codegen::LaunchList>;

/// Chooses an entry for a node, after checking its numerics, version, flags and sizes.
RenderChoice choose_rendered(const RenderNodeView& c);

/// For devices with a library: gives attention_grad one more input behind delta, y, if delta is the row sum of dy y, so
/// that y lives until then. Not for nodes with a mask or dropout, which no library computes.
void take_results(Program& p);

/// Operands of an elementwise pass.
std::vector<codegen::Operand> operands_of(const Program& program, const Fusion& f);
/// Launches of an elementwise pass.
codegen::LaunchList render(const Program& program, const Traits& traits, const Fusion& f);

}  // namespace tutti::sdk

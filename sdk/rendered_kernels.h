// The ordered kernel list of rendered devices: which text of kernels/portable runs a node.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/dialect/portable.h"
#include "sdk/driver.h"
#include "sdk/kernel_list.h"
#include "sdk/library.h"
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
struct RenderCase {
  const Program& program;
  uint32_t number;
  const Traits& traits;
  Epilogue epilogue = {};
  bool trial = false;         ///< of LibraryRequest
  uint64_t tuning_bytes = 0;  ///< likewise

  const Node& node() const { return program.nodes[number]; }
  const TensorType& in(size_t k) const { return program.type(node().inputs[k]); }
  const TensorType& out(size_t k) const { return program.type(node().results[k]); }
  bool wants(size_t k) const { return k < node().results.size() && node().results[k] != TUTTI_NONE; }
};

using RenderEntry = Entry<RenderCase, dialect::LaunchList>;
using RenderChoice = Choice<RenderCase, dialect::LaunchList>;

/// The names of the entries that the compiler treats by itself: fused passes, aliases, products with an epilogue.
constexpr const char* elementwise_entry = "portable elementwise";
constexpr const char* alias_entry = "alias";
constexpr const char* matmul_entry = "portable matmul";
constexpr const char* conv_entry = "portable conv";
constexpr const char* library_entry = "library";  ///< products and convolutions by Traits::library

/// Asks the list for a node; its numerics, version, flags and sizes first.
RenderChoice choose_rendered(const RenderCase& c);

/// The elementwise nodes of a group as one instruction list.
struct Fusion {
  std::vector<TuttiInstr> code;
  std::vector<uint32_t> inputs, outputs;  ///< values
  Shape dims;                             ///< of every result
  bool exact = false;

  std::vector<dialect::Operand> operands(const Program& program) const;
  std::vector<DType> types(const Program& program) const;  ///< of the outputs
  dialect::LaunchList render(const Program& program, const Traits& traits) const;
  /// Whether the other one computes the same over other tensors.
  bool same_as(const Fusion& other, const Program& program) const;
};

/// Fuses `nodes` (in program order, results of one shape, of equal exactness). Results for which `stored` says true are
/// outputs.
Fusion fuse(const Program& program, const std::vector<uint32_t>& nodes, const std::function<bool(uint32_t)>& stored);

/// When `n` is x + other (one addition of two inputs): the other operand; else NONE.
uint32_t added_to(const Node& n, uint32_t x);
/// Whether `n` is max(x, 0) of its one input.
bool is_relu(const Node& n);
/// Whether `n` is the tanh form of gelu.
bool is_tanh_gelu(const Node& n);

}  // namespace tutti::sdk

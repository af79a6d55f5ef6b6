// The cases of `tutti parity`: what is computed of every op record's samples.
#pragma once
#include <optional>

#include "verify/parity/device_program.h"

namespace tutti::parity {

/// How many cases.
/// - quick: two samples per op as recorded, forward and all gradients together
/// - normal: every sample; also in f16 and bf16 where all inputs are floats; each gradient alone too; each variant of
///   shapes (variants.h) once per op, but not "wide" and "views"
/// - full: normal, every sample also read through transposes and slices, and every variant for two samples
enum class Extent { quick, normal, full };

/// One case, written "matmul:2:all:f32", "matmul:2:all.large:f32".
struct CaseId {
  const OpDef* op = nullptr;
  size_t sample = 0;
  std::string what = "forward";  ///< "forward", "d1" (the gradient of input 1 alone), "all" (all gradients)
  DType dtype = DType::f32;      ///< f32: the sample as recorded (f32 unless it names others); else what floats become
  std::string variant = {};      ///< "" or one of variants()
  std::string text() const;
  bool operator==(const CaseId&) const = default;
};

/// "op:sample:what[.variant]:dtype". Throws Error(invalid) saying which part does not fit and what would.
CaseId parse_case(const std::string& text);
/// The cases of one op, in order.
std::vector<CaseId> cases_of(const OpDef& op, Extent extent);

/// The op over feeds "x0", …; results are states PREFIX"y0", …; gradients by cotangents "c0", … are PREFIX"d0", ….
/// In "state" cases the inputs that the op updates are the states of its results, before the step.
/// `floats` replaces every float dtype. Throws Error where the op does not take these types.
Graph graph_of(const CaseId& id, const std::string& prefix = {}, std::optional<DType> floats = {});
/// Tensors for its feeds and for the states it reads, drawn with this seed.
Tensors inputs_of(const CaseId& id, const Graph& g, uint64_t seed);
/// What every state holds after a step, by the float64 reference, in the order of g.states().
std::vector<Tensor> truth_of(Graph& g, const Tensors& inputs);

}  // namespace tutti::parity

// The cases of `tutti parity`: computations with the samples of every op record.
#pragma once
#include <optional>

#include "verify/parity/device_program.h"

namespace tutti::parity {

/// Selects the set of cases.
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
  DType dtype = DType::f32;      ///< f32: the sample's own dtypes; else the dtype that replaces its floats
  std::string variant = {};      ///< "" or one of variants()
  std::string text() const;
  bool operator==(const CaseId&) const = default;
};

/// "op:sample:what[.variant]:dtype". Throws Error(invalid) that names the invalid part and valid values.
CaseId parse_case(const std::string& text);
/// The cases of one op, in order.
std::vector<CaseId> cases_of(const OpDef& op, Extent extent);

/// The op with feeds "x0", …; results are states PREFIX"y0", …; gradients for cotangents "c0", … are PREFIX"d0", …. In
/// "state" cases, inputs that the op updates are read from the states of its results. `floats` replaces every float
/// dtype. Throws Error if the op does not accept these types.
Graph graph_of(const CaseId& id, const std::string& prefix = {}, std::optional<DType> floats = {});
/// Whether the case has exact numerics (docs/EXACT.md): no floats but f32, no 64-bit integers.
bool has_exact(const CaseId& id);
/// Random tensors for the graph's feeds and the states that it reads.
Tensors inputs_of(const CaseId& id, const Graph& g, uint64_t seed);
/// The float64 reference's value of every state after a step, in the order of g.states().
std::vector<Tensor> truth_of(Graph& g, const Tensors& inputs);

}  // namespace tutti::parity

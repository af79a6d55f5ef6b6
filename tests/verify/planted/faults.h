// What the planted device does wrong in one kernel.
#pragma once
#include <string>
#include <vector>

#include "graph/op.h"

namespace tutti::planted {

/// One node's evaluation.
struct Work {
  std::string op, label;
  std::vector<Tensor> in, out;
  Attrs attrs;
};

/// Spoils inputs or attributes of the node that the fault is planted in.
void before(const std::string& fault, Work& w);
/// Spoils its results.
void after(const std::string& fault, Work& w);
/// The same for exact numerics: what a compiler may do. "contraction" of products, "order" of sums, "division" by the
/// reciprocal, "flush" of denormal results.
void after_exact(const std::string& fault, Work& w);

}  // namespace tutti::planted

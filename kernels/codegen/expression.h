// Scalar expressions as statements of the dialect.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// Statements that compute `code` for several adjacent elements (lanes).
struct Statements {
  std::string text;
  std::vector<std::vector<std::string>> results;  ///< [RESULT b][lane]: a variable of the register type
};
/// `inputs[a][lane]` is the expression for INPUT a. `exact`: every instruction is rounded to its dtype, functions are
/// those of math.k in every language, and nothing is contracted. Variables begin with `prefix`.
Statements statements(const Target& target, std::span<const TuttiInstr> code,
                      const std::vector<std::vector<std::string>>& inputs, size_t results, bool exact,
                      const std::string& prefix = "v");

/// A constant of a dtype in the language.
std::string literal(const Language& language, DType t, double x);

}  // namespace tutti::codegen

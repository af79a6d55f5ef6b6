// Scalar expressions: the computation of an elementwise op for one element, as straight-line typed instructions.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/export.h"

namespace tutti {

/// A scalar expression with one or several results; the instructions are the ABI's.
struct TUTTI_API Expr {
  std::vector<TuttiInstr> code;
  std::vector<DType> results;
};

class ExprBuilder;

/// An instruction of an expression under construction; op records compute with these.
class TUTTI_API Ex {
 public:
  Ex(ExprBuilder* builder, uint32_t at) : builder_(builder), at_(at) {}
  DType dtype() const;
  uint32_t at() const { return at_; }
  /// The constant x in this instruction's dtype.
  Ex like(double x) const;
  ExprBuilder& builder() const { return *builder_; }

 private:
  ExprBuilder* builder_;
  uint32_t at_;
};

using In = std::span<const Ex>;
using Exs = std::vector<Ex>;

/// Collects instructions; equal instructions are stored once.
class TUTTI_API ExprBuilder {
 public:
  Ex input(uint32_t number, DType t);
  Ex constant(double x, DType t);
  /// Operands must agree in dtype (except SELECT's condition); throws Error otherwise.
  Ex emit(uint16_t code, DType t, Ex a);
  Ex emit(uint16_t code, DType t, Ex a, Ex b);
  Ex emit(uint16_t code, DType t, Ex a, Ex b, Ex c);
  DType dtype(uint32_t at) const { return static_cast<DType>(code_[at].dtype); }
  /// Sets the results and returns the expression.
  Expr finish(const Exs& results);

 private:
  Ex add(TuttiInstr instr);
  std::vector<TuttiInstr> code_;
};

/// The float64 constant of a CONST instruction.
TUTTI_API double constant_of(const TuttiInstr& instr);
/// "exp", "less", …: the instruction's name.
TUTTI_API std::string_view instr_name(uint16_t code);
/// Number of operands among a, b, c (0 for INPUT and CONST, 1 for RESULT).
TUTTI_API int operand_count(uint16_t code);
/// "exp(neg(x0)), …", one text per result.
TUTTI_API std::string to_string(const Expr& expr);

TUTTI_API Ex operator+(Ex a, Ex b);
TUTTI_API Ex operator-(Ex a, Ex b);
TUTTI_API Ex operator*(Ex a, Ex b);
TUTTI_API Ex operator/(Ex a, Ex b);
TUTTI_API Ex operator-(Ex a);
TUTTI_API Ex operator<(Ex a, Ex b);
TUTTI_API Ex operator<=(Ex a, Ex b);
TUTTI_API Ex operator!(Ex a);
TUTTI_API Ex operator&(Ex a, Ex b);
TUTTI_API Ex operator|(Ex a, Ex b);
TUTTI_API Ex operator^(Ex a, Ex b);
TUTTI_API Ex operator<<(Ex a, Ex b);
TUTTI_API Ex operator>>(Ex a, Ex b);
inline Ex operator>(Ex a, Ex b) { return b < a; }
inline Ex operator>=(Ex a, Ex b) { return b <= a; }
TUTTI_API Ex equal(Ex a, Ex b);
TUTTI_API Ex abs(Ex a);
TUTTI_API Ex min(Ex a, Ex b);
TUTTI_API Ex max(Ex a, Ex b);
TUTTI_API Ex sqrt(Ex a);
TUTTI_API Ex rsqrt(Ex a);
TUTTI_API Ex exp(Ex a);
TUTTI_API Ex expm1(Ex a);
TUTTI_API Ex log(Ex a);
TUTTI_API Ex log1p(Ex a);
TUTTI_API Ex tanh(Ex a);
TUTTI_API Ex erf(Ex a);
TUTTI_API Ex sin(Ex a);
TUTTI_API Ex cos(Ex a);
TUTTI_API Ex pow(Ex a, Ex b);
TUTTI_API Ex fmod(Ex a, Ex b);
TUTTI_API Ex floor(Ex a);
TUTTI_API Ex select(Ex condition, Ex yes, Ex no);
TUTTI_API Ex cast(Ex a, DType t);

// A plain number takes the dtype of the other operand.
inline Ex operator+(Ex a, double b) { return a + a.like(b); }
inline Ex operator+(double a, Ex b) { return b.like(a) + b; }
inline Ex operator-(Ex a, double b) { return a - a.like(b); }
inline Ex operator-(double a, Ex b) { return b.like(a) - b; }
inline Ex operator*(Ex a, double b) { return a * a.like(b); }
inline Ex operator*(double a, Ex b) { return b.like(a) * b; }
inline Ex operator/(Ex a, double b) { return a / a.like(b); }
inline Ex operator/(double a, Ex b) { return b.like(a) / b; }
inline Ex operator<(Ex a, double b) { return a < a.like(b); }
inline Ex operator<(double a, Ex b) { return b.like(a) < b; }
inline Ex operator>(Ex a, double b) { return a.like(b) < a; }
inline Ex operator<=(Ex a, double b) { return a <= a.like(b); }
inline Ex operator>=(Ex a, double b) { return a.like(b) <= a; }
inline Ex operator>>(Ex a, int b) { return a >> a.like(b); }
inline Ex operator<<(Ex a, int b) { return a << a.like(b); }
inline Ex equal(Ex a, double b) { return equal(a, a.like(b)); }
inline Ex min(Ex a, double b) { return min(a, a.like(b)); }
inline Ex max(Ex a, double b) { return max(a, a.like(b)); }
inline Ex select(Ex c, Ex yes, double no) { return select(c, yes, yes.like(no)); }
inline Ex select(Ex c, double yes, Ex no) { return select(c, no.like(yes), no); }

}  // namespace tutti

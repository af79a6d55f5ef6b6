// Elementwise ops, converted instruction by instruction.

#include "onnx/form.h"

namespace tutti::onnx {
namespace {

/// The ONNX op of an instruction with operands of that type; "" if there is none, or if it takes several nodes.
std::string op_of(uint16_t code, DType operand) {
  bool truth = operand == DType::boolean;
  switch (code) {
    case TUTTI_X_ADD: return "Add";
    case TUTTI_X_SUB: return "Sub";
    case TUTTI_X_MUL: return "Mul";
    case TUTTI_X_DIV: return "Div";
    case TUTTI_X_NEG: return "Neg";
    case TUTTI_X_ABS: return "Abs";
    case TUTTI_X_MIN: return "Min";
    case TUTTI_X_MAX: return "Max";
    case TUTTI_X_SQRT: return "Sqrt";
    case TUTTI_X_EXP: return "Exp";
    case TUTTI_X_LOG: return "Log";
    case TUTTI_X_TANH: return "Tanh";
    case TUTTI_X_ERF: return "Erf";
    case TUTTI_X_SIN: return "Sin";
    case TUTTI_X_COS: return "Cos";
    case TUTTI_X_POW: return "Pow";
    case TUTTI_X_FLOOR: return "Floor";
    case TUTTI_X_LESS: return "Less";
    case TUTTI_X_LESS_EQUAL: return "LessOrEqual";
    case TUTTI_X_EQUAL: return "Equal";
    case TUTTI_X_NOT: return truth ? "Not" : "BitwiseNot";
    case TUTTI_X_AND: return truth ? "And" : "BitwiseAnd";
    case TUTTI_X_OR: return truth ? "Or" : "BitwiseOr";
    case TUTTI_X_XOR: return truth ? "Xor" : "BitwiseXor";
    case TUTTI_X_SELECT: return "Where";
    default: return "";
  }
}

Expr expression(const Graph& g, const tutti::Node& n) {
  std::vector<DType> inputs;
  for (ValueId id : n.inputs) inputs.push_back(g.info(id).type.dtype);
  return expr_of(*n.op, inputs, n.attrs);
}

}  // namespace

bool takes_expression(const Graph& g, const tutti::Node& n) {
  for (const TuttiInstr& i : expression(g, n).code)
    if (i.code == TUTTI_X_SHL || i.code == TUTTI_X_SHR) return false;  // ONNX has no shifts of signed integers
  return true;
}

Names add_expression(Raising& r, const tutti::Node& n) {
  Expr e = expression(r.graph(), n);
  Names at(e.code.size()), results;
  for (size_t k = 0; k < e.code.size(); ++k) {
    const TuttiInstr& i = e.code[k];
    auto dtype = static_cast<DType>(i.dtype);
    switch (i.code) {
      case TUTTI_X_INPUT: at[k] = r.in(n, i.a); break;
      case TUTTI_X_CONST: at[k] = r.number(dtype, constant_of(i)); break;
      case TUTTI_X_RESULT: results.push_back(at[i.a]); break;
      case TUTTI_X_CAST: at[k] = r.add("Cast", {at[i.a]}, {{"to", int64_t{element_type(dtype)}}}); break;
      case TUTTI_X_RSQRT: at[k] = r.add("Reciprocal", {r.add("Sqrt", {at[i.a]})}); break;
      case TUTTI_X_EXPM1: at[k] = r.add("Sub", {r.add("Exp", {at[i.a]}), r.number(dtype, 1)}); break;
      case TUTTI_X_LOG1P: at[k] = r.add("Log", {r.add("Add", {at[i.a], r.number(dtype, 1)})}); break;
      default: {
        Names operands = {at[i.a]};
        if (operand_count(i.code) > 1) operands.push_back(at[i.b]);
        if (operand_count(i.code) > 2) operands.push_back(at[i.c]);
        if (i.code == TUTTI_X_FMOD) {
          at[k] = r.add("Mod", operands, {{"fmod", int64_t{1}}});
          break;
        }
        at[k] = r.add(op_of(i.code, static_cast<DType>(e.code[i.a].dtype)), operands);
      }
    }
  }
  return results;
}

}  // namespace tutti::onnx

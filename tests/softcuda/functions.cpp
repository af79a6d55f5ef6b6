// Roots and the approximations, which are computed as exactly as the host can: a GPU's differ in the last bits.
#include <cfloat>
#include <cmath>

#include "tests/softcuda/operations.h"

namespace tutti::softcuda {
namespace {

constexpr auto root = [](float a) { return __builtin_sqrtf(a); };
constexpr auto reciprocal = [](float a) { return 1.0f / a; };
constexpr auto power_of_two = [](float a) { return std::exp2(a); };
constexpr auto magnitude = [](float a) { return std::fabs(a); };
// PTX names the source of the sign first.
constexpr auto signed_as = [](float sign, float value) { return std::copysign(value, sign); };

float flushed(float a) { return std::fabs(a) < FLT_MIN ? std::copysign(0.0f, a) : a; }
/// .ftz: subnormal operands and results are zeros.
template <auto f>
constexpr auto flushing = [](float a) { return flushed(f(flushed(a))); };

}  // namespace

void add_functions(Opcodes& table) {
  table["sqrt.rn.f32"] = make_unary<float, float, root>();
  table["rcp.rn.f32"] = make_unary<float, float, reciprocal>();
  table["rcp.approx.ftz.f32"] = make_unary<float, float, flushing<reciprocal>>();
  table["ex2.approx.f32"] = make_unary<float, float, power_of_two>();
  table["ex2.approx.ftz.f32"] = make_unary<float, float, flushing<power_of_two>>();
  table["abs.f32"] = make_unary<float, float, magnitude>();
  table["copysign.f32"] = make_binary<float, float, float, signed_as>();
}

const Opcodes& opcodes() {
  static const Opcodes& table = *new Opcodes([] {
    Opcodes all;
    add_arithmetic(all);
    add_logic(all);
    add_comparisons(all);
    add_conversions(all);
    add_functions(all);
    add_pairs(all);
    return all;
  }());
  return table;
}

}  // namespace tutti::softcuda

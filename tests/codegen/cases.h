// What is asked of the portable kernels: inputs, the kernels for a target, and results computed by plain float64 loops.
#pragma once
#include <bit>
#include <functional>
#include <string>
#include <vector>

#include "kernels/codegen/portable.h"

namespace tutti::sdk {
class Library;
}

namespace tutti::codegen::cases {

/// A tensor as float64 numbers and as the bytes that a device holds.
struct Array {
  DType dtype = DType::f32;
  std::vector<double> at;
  /// Elements as their dtype holds them.
  std::vector<std::byte> bytes() const;
};

struct Case {
  std::string name;
  std::function<LaunchList(const Target&)> make;
  std::vector<Array> inputs, expected;
  double relative = 0, absolute = 0;                               ///< allowed difference of floats; integers are equal
  std::function<LaunchList(const sdk::Library&)> by_library = {};  ///< products and convolutions: the same by a library
  std::function<bool(const Target&)> runs = {};                    ///< whether the target has the kernel; empty: all do
};

/// A small assembler for instruction lists.
struct Instructions {
  std::vector<TuttiInstr> list;
  uint32_t add(uint16_t code, DType t, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) {
    list.push_back({code, static_cast<uint16_t>(t), a, b, c});
    return static_cast<uint32_t>(list.size() - 1);
  }
  uint32_t in(DType t, uint32_t n) { return add(TUTTI_X_INPUT, t, n); }
  uint32_t constant(DType t, double x) {
    auto bits = std::bit_cast<uint64_t>(x);
    return add(TUTTI_X_CONST, t, static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32));
  }
  void out(DType t, uint32_t at, uint32_t n = 0) { add(TUTTI_X_RESULT, t, at, n); }
};

/// n numbers of a dtype from [low, high], the same at each call for a seed.
Array random(DType t, int64_t n, double low, double high, uint32_t seed);

/// The windows along one axis, as many as fit.
inline WindowAxis axis(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return {size, kernel, stride, padding, dilation, (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1};
}

/// One convolution, or one of its gradients, of numbers in (-1, 1) that `change` may replace. Channels-last ones have
/// no portable kernels.
enum class Convolution { forward, images, weights };
using Change = std::function<void(std::vector<Array>& inputs)>;
Case conv_case(Convolution kind, const Conv& shape, const Change& change = {});

std::vector<Case> elementwise_cases();
std::vector<Case> index_cases();
std::vector<Case> reduce_cases();
std::vector<Case> row_cases();
/// Pairs of the cases above, whose launches are together().
std::vector<Case> together_cases();
std::vector<Case> attention_cases();
/// Those with kernels for tensor cores.
std::vector<Case> tensor_core_attention_cases();
/// Those that libraries compute, in f16 or bf16; their gradients have the input y.
std::vector<Case> library_attention_cases(DType t);
std::vector<Case> matmul_cases();
/// Products with an activation or the sum of an operand, of which libraries support few.
std::vector<Case> activation_cases();
/// Products of f16 and bf16 that have kernels for tensor cores or cooperative matrices; `swapped`: those of one dtype
/// are of the other.
std::vector<Case> tensor_core_product_cases(bool swapped = false);
std::vector<Case> conv_cases();
std::vector<Case> pool_cases();
std::vector<Case> recurrence_cases();

/// "" or what differs first.
std::string compare(const Case& c, const std::vector<Array>& got);

/// Targets like a CPU and like a GPU.
Target target(const Language& language, bool cpu_like);

}  // namespace tutti::codegen::cases

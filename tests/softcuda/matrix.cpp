// Products of a warp: mma.m16n8k16 of f16 and bf16 with f32 sums. Which element a lane holds where is told by PTX's
// manual, "Matrix Fragments for mma.m16n8k16 with floating point type". And the instructions around them: ldmatrix, and
// pairs of 16-bit floats.
#include "core/base/dtype.h"
#include "tests/softcuda/block.h"
#include "tests/softcuda/operations.h"

namespace tutti::softcuda {
namespace {

constexpr int rows = 16, columns = 8, depth = 16;

template <auto to_float>
float half_of_word(uint32_t word, int which) {
  return to_float(static_cast<uint16_t>(which ? word >> 16 : word));
}

/// matrix: 4 results, 4 words of a, 2 of b, 4 summands.
template <auto to_float>
void multiply(Warp& w, const Instruction& i) {
  if (w.active != ~0u)
    w.block->fail(CUDA_ERROR_LAUNCH_FAILED, "a product of a warp that only some of its lanes reach", w, i,
                  std::countr_zero(w.active));
  float a[rows][depth], b[depth][columns], c[rows][columns];
  for (int l = 0; l < lanes; ++l) {
    int group = l >> 2, in_group = l % 4;
    for (int e = 0; e < 8; ++e) {
      int row = e < 2 || (e >= 4 && e < 6) ? group : group + 8;
      int column = in_group * 2 + (e & 1) + (e < 4 ? 0 : 8);
      a[row][column] = half_of_word<to_float>(w.words(i.matrix[4 + static_cast<size_t>(e / 2)])[l], e & 1);
    }
    for (int e = 0; e < 4; ++e) {
      int row = in_group * 2 + (e & 1) + (e < 2 ? 0 : 8);
      b[row][group] = half_of_word<to_float>(w.words(i.matrix[8 + static_cast<size_t>(e / 2)])[l], e & 1);
    }
    for (int e = 0; e < 4; ++e)
      c[e < 2 ? group : group + 8][in_group * 2 + (e & 1)] = In<float>(w, i.matrix[10 + static_cast<size_t>(e)])[l];
  }
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < depth; ++k)
      for (int n = 0; n < columns; ++n) c[r][n] += a[r][k] * b[k][n];
  for (int e = 0; e < 4; ++e)
    write<float>(w, i.matrix[static_cast<size_t>(e)],
                 [&](int l) { return c[(l >> 2) + (e < 2 ? 0 : 8)][l % 4 * 2 + (e & 1)]; });
}

/// Word `part` of row `row` of a matrix whose rows the lanes from `first` on name.
uint32_t word_of(const BlockRun::Places& at, int first, int row, int part) {
  const int lane = first + row;
  uint32_t word;
  std::memcpy(&word, reinterpret_cast<const uint32_t*>(at[static_cast<size_t>(lane)]) + part, sizeof word);
  return word;
}

/// data: the words of four matrices of 8 rows of 8 elements. Lane l has the elements 2 (l % 4) and the next of row
/// l / 4.
template <bool transposed>
void load_matrices(Warp& w, const Instruction& i) {
  if (w.active != ~0u)
    w.block->fail(CUDA_ERROR_LAUNCH_FAILED, "a load of matrices that only some of the warp's lanes reach", w, i,
                  std::countr_zero(w.active));
  BlockRun::Places at;
  constexpr unsigned row_bytes = 16;
  w.block->place(w, i, row_bytes, false, at);
  for (int m = 0; m < 4; ++m)
    write<uint32_t>(w, i.data[static_cast<size_t>(m)], [&](int l) {
      int outer = l >> 2, inner = l % 4;
      if (!transposed) return word_of(at, 8 * m, outer, inner);
      uint32_t halves[2];
      for (int k = 0; k < 2; ++k)
        halves[k] = word_of(at, 8 * m, 2 * inner + k, outer >> 1) >> 16 * (outer & 1) & 0xffff;
      return halves[0] | halves[1] << 16;
    });
}

/// cvt's first source goes to the upper half.
template <auto from_float>
constexpr auto pair = [](float high, float low) {
  return static_cast<uint32_t>(from_float(high)) << 16 | static_cast<uint32_t>(from_float(low));
};
/// The manual's canonical NaN.
template <auto from_float>
constexpr auto canonical = [](float x) { return x != x ? uint16_t{0x7fff} : from_float(x); };

}  // namespace

Handler product_handler(std::string_view opcode) {
  if (opcode == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") return multiply<bf16_to_f32>;
  if (opcode == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") return multiply<f16_to_f32>;
  return nullptr;
}

Handler matrices_handler(std::string_view opcode) {
  if (opcode == "ldmatrix.sync.aligned.m8n8.x4.shared.b16") return load_matrices<false>;
  if (opcode == "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16") return load_matrices<true>;
  return nullptr;
}

void add_pairs(Opcodes& table) {
  table["cvt.rn.bf16x2.f32"] = make_binary<uint32_t, float, float, pair<canonical<f32_to_bf16>>>();
  table["cvt.rn.f16x2.f32"] = make_binary<uint32_t, float, float, pair<canonical<f32_to_f16>>>();
}

}  // namespace tutti::softcuda

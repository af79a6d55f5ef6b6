// Internal: common code of the kernels for matrix products.
#pragma once
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// Split of k into parts of `length`, whose sums another kernel adds: for few results with long sums, and if loop
/// rounds are limited.
struct Parts {
  int64_t count = 1, length = 0;
};
/// `groups`: number of groups without a split; `enough`: desired minimum; `rounds`: loop rounds of a work-item per 16
/// of k.
Parts parts_of(const Target& t, const Matmul& p, int64_t groups, int64_t enough, int64_t rounds = 16);
/// `rounds` of kernels that stage operands in shared memory (matmul_tile, conv_tile).
constexpr int64_t tile_rounds = 103;

/// The results of a product or convolution that may be split along k.
struct Results {
  DType dtype = DType::f32;
  int64_t total = 0, parts = 1;
  bool bias = false, relu = false;
  const char* arguments = "";  ///< arguments of the kernel's EPILOGUE
  std::string column;          ///< index into the bias, as an expression of these arguments
  std::string column_of_e;     ///< the same as an expression of result index e
  std::string y_of_e = "(e)";  ///< index in y of result e
  std::string result = "(e)";  ///< index in y, as an expression of these arguments: for `others`
  std::vector<TuttiInstr> activation = {};
  std::vector<Operand> others = {};
  bool keep = false;  ///< see Matmul
  int64_t sums = 0;   ///< of an operand; the kernel stores them behind the results of each part
  Element sums_as = Element::f32;
};
/// Adds the launch of a product's kernel with the buffers `first`, the bias if used, and y (after the operands). With
/// several parts: writes to scratch and adds a kernel that sums the parts and applies the epilogue.
void launch_results(const Target& t, LaunchList& list, const Results& r, Kernel k, std::vector<int> first,
                    int64_t groups);
/// Sets the common parts of the kernels and adds the launch: y (or scratch `partial` with several parts) and the
/// epilogue. `first`: buffers of the parameters before the bias; `turned`: rows are columns of y.
void launch_product(const Target& t, LaunchList& list, const Matmul& p, Kernel k, const Parts& parts,
                    std::vector<int> first, int64_t groups, bool turned);

/// Offset of a batch's matrix: splits the batch index g into coordinates of `dims`.
std::string batch_base(const Shape& dims, const Shape& steps, const Write& n);
/// Sets a product's sizes and where its operands begin.
void set_operands(Kernel& k, const Matmul& p);
/// The same and the tiles of a kernel whose groups have `tile` x `tile` results.
void set_tiles(Kernel& k, const Matmul& p, int64_t tile);
/// Index of an operand's last element + 1.
int64_t reach(const Shape& dims, const Shape& steps, int64_t one);

/// The number of p's sums of an operand, and their dtype as they are stored.
int64_t sums_of(const Matmul& p);
Element sums_as(const Matmul& p);
/// The statement that stores the sum v with the index `at`: in `sums`, or behind the results of a part of k.
std::string store_sum(const Matmul& p, const std::string& at, bool whole);
/// The statement Y_PAIR(at,x,z) that stores two neighbours in y, as a word where they are one. For kernels with PACK.
std::string store_pair(const Matmul& p, bool whole);
/// Whether an operand's rows, `pitch` elements apart, and its batches all begin at multiples of `unit` elements.
bool begins_at_multiples(int64_t unit, int64_t pitch, const Shape& batches);

/// The kernel on tensor cores, and whether the target and the shape have it.
LaunchList matmul_mma(const Target& t, const Matmul& p);
bool fits_mma(const Target& t, const Matmul& p);
/// The kernel on cooperative matrices, and whether the target and the shape have it.
LaunchList matmul_coop(const Target& t, const Matmul& p);
bool fits_coop(const Target& t, const Matmul& p);
/// The kernel for CPUs with OpenCL.
LaunchList matmul_panels(const Target& t, const Matmul& p);
/// The kernel for CPUs with Vulkan, and whether its panels fit into texel buffers.
LaunchList matmul_texels(const Target& t, const Matmul& p);
bool fits_texels(const Target& t, const Matmul& p);

}  // namespace tutti::codegen

// Inside of the dialect: what the kernels for matrix products share.
#pragma once
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// k cut into parts of `length`, whose sums are added up by another kernel: for few results of long sums, and where a
/// work-item may not make so many rounds.
struct Parts {
  int64_t count = 1, length = 0;
};
/// `groups`: launched without parts; at least `enough` are wanted; `rounds`: of a work-item's loops per 16 of k.
Parts parts_of(const Target& t, const Matmul& p, int64_t groups, int64_t enough, int64_t rounds = 16);
/// These of the kernels whose operands pass through shared memory (matmul_tile, conv_tile).
constexpr int64_t tile_rounds = 103;

/// The results of a product or a convolution whose k is cut into parts.
struct Results {
  DType dtype = DType::f32;
  int64_t total = 0, parts = 1;
  bool bias = false, relu = false;
  const char* arguments = "";  ///< of the kernel's EPILOGUE
  std::string column;          ///< the bias's number, made of these arguments
  std::string column_of_e;     ///< the same of result number e
  std::string y_of_e = "(e)";  ///< where result number e lies in y
};
/// Adds the launch of a product's kernel: its buffers are `first`, the bias where wanted, and y, which stands behind
/// the operands; of several parts, scratch and the kernel that adds them up, which then has the epilogue.
void launch_results(const Target& t, LaunchList& list, const Results& r, Kernel k, std::vector<int> first,
                    int64_t groups);
/// Sets what the kernels have in common and their launch: y (or, in parts, scratch `partial`), the epilogue.
/// `first`: the buffers of the parameters before the bias; `turned`: rows are columns of y.
void launch_product(const Target& t, LaunchList& list, const Matmul& p, Kernel k, const Parts& parts,
                    std::vector<int> first, int64_t groups, bool turned);

/// Where a batch's matrix starts: the batch number g split into coordinates of `dims`.
std::string batch_base(const Shape& dims, const Shape& steps, const Write& n);
/// Elements of an operand up to its last one.
int64_t reach(const Shape& dims, const Shape& steps, int64_t one);

/// The kernel for CPUs with OpenCL.
LaunchList matmul_panels(const Target& t, const Matmul& p);
/// The kernel for CPUs with Vulkan, and whether their texel buffers hold its panels.
LaunchList matmul_texels(const Target& t, const Matmul& p);
bool fits_texels(const Target& t, const Matmul& p);

}  // namespace tutti::codegen

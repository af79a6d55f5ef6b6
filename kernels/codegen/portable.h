// The portable kernels: each function plans one kernel (or a few) for fixed shapes; render (kernel.h) writes its text
// in the target's language.
//
// Conventions of every function here
// - Buffers of the caller: the inputs 0 … n-1 in the order documented, then the outputs, then scratch, one per entry
//   of LaunchList::scratch_bytes. Launch::buffers maps kernel parameters to them. All start at multiples of 16 bytes,
//   and kernels move 16 bytes at once; they read and write whole 32-bit words of u8, bool, f16 and bf16 tensors where
//   the target lacks such storage, never a byte past the last word, and never change a byte past the last element.
// - Outputs are dense, row-major, wholly written. Shapes, strides and attributes are literals of the text, or numbers
//   that it reads from one more parameter (KernelSource::numbers).
// - Launches run in order, each seeing the writes of those before it. No floating-point atomics: every run gives the
//   same bits.
// - A tensor without elements gives a LaunchList without launches.
// - Throws Error(declined) with a reason for what no kernel text exists for (f64 and i64 arithmetic, a shape beyond the
//   language's indices): the caller declines the node with that text.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/shape.h"
#include "core/geometry/reduction.h"
#include "core/geometry/window.h"
#include "kernels/codegen/launch.h"
#include "kernels/codegen/target.h"

namespace tutti::codegen {

struct Kernel;  // kernels/codegen/kernel.h

/// One launch of a planned kernel (render() renders its text) on the caller's buffers, or a call made by the device's
/// sdk::Library.
using Launch = LaunchOf<std::shared_ptr<const Kernel>, int>;

/// Launches that compute one node or one group of nodes.
struct LaunchList {
  std::vector<Launch> launches;
  std::vector<uint64_t> scratch_bytes;
};

/// An input tensor: strides in elements along the loop dimensions (0: broadcast).
struct Operand {
  DType dtype = DType::f32;
  Shape strides;
  int64_t offset = 0;  ///< elementwise, rows and attention only
};

/// "" or the reason why an instruction list cannot be rendered (f64, i64, an unknown instruction).
std::string declines(std::span<const TuttiInstr> code);

/// Scalar expressions over `dims`, one kernel for one node or several fused ones. INPUT a = in[a], RESULT b = out[b].
/// `exact`: every instruction is rounded to its dtype, nothing contracted or reordered. Each element is read before it
/// is written by the same work-item, so an output may share the memory of an input that has its strides and element
/// size.
LaunchList elementwise(const Target&, std::span<const TuttiInstr> code, const Shape& dims, std::span<const Operand> in,
                       std::span<const DType> out, bool exact);

/// One of several tensors that an expression runs over. Buffers are numbered by the caller; a buffer number is either
/// read or written by the launch, not both (within one item, two numbers may share memory as in elementwise).
struct BatchItem {
  Shape dims;
  std::vector<Operand> in;
  std::vector<int> from, to;          ///< buffers of the inputs and the results
  std::vector<TuttiInstr> code = {};  ///< instead of the common expression, if not empty,
  std::vector<DType> out = {};        ///< with results of these types
};
/// An expression over several tensors in one launch: for the many small tensors of an optimizer. An item may have an
/// expression of its own.
LaunchList elementwise_batch(const Target&, std::span<const TuttiInstr> code, std::span<const BatchItem> pieces,
                             std::span<const DType> out, bool exact);

/// A row program: scalar expressions and reductions over the rows of arrays of shape [outer…, length]. Values have one
/// element per element of the array, or one per row (inputs whose last stride is 0, and all that is computed from these
/// and from folds alone), or one per column: what instr::column makes, and what is computed from that, from inputs with
/// strides 0 but the last, and from scalars.
struct RowProgram {
  std::vector<TuttiInstr> code;  ///< with instr::fold: reduces a whole row to one element; and instr::column
  Shape outer;                   ///< without the rows' own dimension
  int64_t length = 0;            ///< elements of a row
  std::vector<Operand> in;       ///< strides along outer, then along the row
  std::vector<DType> out;
  /// If not 0, the arrays are [length / segment, rows, segment]: a row is a channel of [N, C, …]. Then `outer` is
  /// {rows}, and inputs with one element per element have the strides {segment, 1}. No columns.
  int64_t segment = 0;

  int64_t rows() const { return num_elements(outer); }
};
constexpr size_t most_row_folds = 16;    ///< of one program: each takes shared memory
constexpr size_t most_column_folds = 8;  ///< each takes registers
/// What decides whether a target has kernels for a row program, and how they divide the rows.
struct RowForm {
  int64_t rows = 1, length = 1, segment = 0;  ///< as in RowProgram
  bool folds = false, columns = false;        ///< whether the program folds these
};
bool runs_rows(const Target&, const RowForm&);
/// Which inputs are read only by the work-item that stores the results per row (in programs with columns: per column),
/// before it stores them: such a result may overwrite such an input.
std::vector<bool> read_once(const Target&, const RowProgram& program);
/// One kernel; a row is the work of a group of work-items or of part of one. INPUT a = in[a], RESULT b = out[b].
/// Reductions are f32 (integers wrap; columns: floats only), in a fixed tree. Outputs may share memory as those of
/// elementwise. With columns, a group takes several rows in turn, and a second kernel folds the groups' partial results
/// of all columns. Large rows in segments are shared by several groups; then there is a kernel per reduction that needs
/// the result of another, and one that stores the results.
LaunchList row_program(const Target&, const RowProgram& program);

/// y = x reduced over `axes` (sorted, unique, not negative; empty: none), in a fixed tree; computed in f32 (integers
/// wrap in i32). Empty sums are 0, products 1, means NaN, max -inf, min inf (integers: smallest and largest value). NaN
/// propagates.
LaunchList reduce(const Target&, ReduceOp kind, const TensorType& x, const std::vector<int64_t>& axes);
/// y (i32) = row-major index over `axes` of the largest element; the first in a tie, NaN counts as largest.
LaunchList argmax(const Target&, const TensorType& x, const std::vector<int64_t>& axes);

/// One axis of a copy's source: coordinate c = offset + sum over output dimensions of coef[d] * i[d]. It selects
/// element c / step if 0 <= c, c % step = 0 and c / step < size; otherwise the next source is tried, then the fill
/// value is written.
struct SourceAxis {
  std::vector<int64_t> coef;
  int64_t offset = 0, step = 1, size = 1, stride = 1;
};
/// y[i] = the element of the first source that has one for i, else `value`.
struct Copy {
  DType dtype = DType::f32;
  Shape dims;                                    ///< of y
  std::vector<std::vector<SourceAxis>> sources;  ///< one per input; strides in elements
  double value = 0;
};
LaunchList copy(const Target&, const Copy& copy);

/// The index copies of the op set as Copy: dense operands; attributes normalised (no negative axes or starts).
Copy transpose_copy(const TensorType& x, const std::vector<int64_t>& perm);
Copy broadcast_copy(const TensorType& x, const Shape& shape);
Copy slice_copy(const TensorType& x, const Shape& y, const std::vector<int64_t>& starts,
                const std::vector<int64_t>& strides);
Copy pad_copy(const TensorType& x, const Shape& y, const std::vector<int64_t>& low,
              const std::vector<int64_t>& interior, double value);
Copy concat_copy(std::span<const TensorType> parts, int64_t axis);
/// The concatenation along an axis, at least one input.
LaunchList concat(const Target&, std::span<const TensorType> parts, int64_t axis);
/// y[planes, kh, kw, oh, ow] = x[planes, h, w] at oh*stride + ky*dilation - padding, …; `value` outside.
Copy window_copy(DType t, int64_t planes, const WindowAxis& h, const WindowAxis& w, double value);
/// The adjoint of window_copy: y[plane, h, w] = sum of x[plane, ky, kx, oh, ow] over the windows that contain (h, w),
/// in the order of taps.
LaunchList fold_windows(const Target&, DType t, int64_t planes, const WindowAxis& h, const WindowAxis& w);

/// y[o, i, :] = x[o, index[i], :]; inputs x [outer, size, inner], index i32 [count], clamped to [0, size).
LaunchList gather(const Target&, DType t, int64_t outer, int64_t size, int64_t inner, int64_t count);
/// y = 0, then y[o, index[i], :] += u[o, i, :] in the order of i; inputs index i32 [count] (clamped), u [outer, count,
/// inner]. `along`: index has the shape of u, and each element of u its own.
LaunchList scatter_add(const Target&, DType t, int64_t outer, int64_t size, int64_t inner, int64_t count,
                       bool along = false);
/// y[e] (u32) = word e % 4 of Philox4x32-10 (core/base/philox.h), e < n; inputs seed u32[2] (low word first), step
/// i32[].
LaunchList random_bits(const Target&, int64_t n, uint32_t stream);
/// y [rows, features] = x Wᵀ with weights quantized in blocks of 32 with 4 or 8 bits (core/geometry/quantized.h);
/// inputs x [rows, inputs], quants u8, scales and mins (f16 or f32), one per `group`. For few rows, because each row
/// reads all weights.
LaunchList quantized_matmul(const Target&, DType t, DType scales, int64_t rows, int64_t features, int64_t inputs,
                            int64_t bits, int64_t group);
/// y[a, i, b] (i32) = i.
LaunchList iota(const Target&, int64_t outer, int64_t size, int64_t inner);
/// y[e] = round_to(t, value), e < n; no inputs.
LaunchList fill(const Target&, DType t, int64_t n, double value);

/// y[batch, m, n] = a b (+ bias[n]) (then relu): f32 sums in an order fixed by the kernel family.
struct Matmul {
  DType dtype = DType::f32;  ///< f32, f16 or bf16, of all operands
  int64_t m = 1, n = 1, k = 1;
  bool ta = false, tb = false;       ///< ta: a is stored as [k, m]; tb: b as [n, k]
  Shape batch = {};                  ///< of y
  Shape a_batch = {}, b_batch = {};  ///< batch strides of a and b in elements (0: broadcast)
  bool bias = false, relu = false;   ///< bias is input 2, of `dtype`
  /// Applied last: an expression with one result of `dtype`, whose first input is the sum and whose others are
  /// `others`; empty: none. On CPUs it takes the kernel for small products.
  std::vector<TuttiInstr> activation = {};
  std::vector<Operand> others = {};  ///< one stride: 1, an element per result; or 0, one for all
  bool keep = false;                 ///< the sum is a result, too
  /// The sum of an operand over k is a result, of a: [m], of b: [n]. Without batch, bias and activation. It is rounded
  /// to `dtype`, and then cast to f32 if `sum_f32`.
  bool sum_a = false, sum_b = false, sum_f32 = false;
};
/// Inputs a, b[, bias][, others]; results y[, sum before the activation][, sum of an operand].
LaunchList matmul(const Target&, const Matmul& shape);
/// Whether the target's kernel for products can sum an operand.
bool sums_operands(const Target&);

/// y[n, o] = sum over c, ky, kx of x[n, c] w[o, c, ky, kx]: x [batch, channels, h.size, w.size], w [filters, channels /
/// groups, h.kernel, w.kernel], y [batch, filters, h.count, w.count]; f32 sums in an order fixed by the kernel family.
struct Conv {
  DType dtype = DType::f32;  ///< f32, f16 or bf16, of all operands
  int64_t batch = 1, channels = 1, filters = 1, groups = 1;
  WindowAxis h, w;
  bool bias = false, relu = false;  ///< for conv only: bias[filters] is input 2
  /// Images are [batch, h, w, channels], weights [filters, h, w, channels / groups]. Only for libraries.
  bool channels_last = false;
};
/// Inputs x, w[, bias]; result y.
LaunchList conv(const Target&, const Conv& shape);
/// The gradient of the images: inputs d (shaped like y), w; result shaped like x.
LaunchList conv_dx(const Target&, const Conv& shape);
/// The gradient of the weights: inputs x, d (shaped like y); result shaped like w.
LaunchList conv_dw(const Target&, const Conv& shape);

/// Scaled dot-product attention, as defined by the ops attention and attention_grad: q [batch, heads, rows, depth],
/// k [batch, key_heads, keys, depth], v [batch, key_heads, keys, width]. Sums are f32.
struct Attention {
  DType dtype = DType::f32;  ///< f32, f16 or bf16
  int64_t batch = 1, heads = 1, key_heads = 1, rows = 1, keys = 1, depth = 1, width = 1;
  double scale = 1;
  bool causal = false;
  std::optional<Operand> mask = {};  ///< bool or of `dtype`, strides along [batch, heads, rows, keys]
  double dropout = 0;
  uint32_t stream = 0;
  std::array<Operand, 4> at = {};  ///< q, k, v, dy: strides along their four dimensions, the last 1
  std::array<Operand, 3> to = {};  ///< the same of the results: y, or dq, dk, dv
  std::optional<Operand> y = {};   ///< of attention_grad: one more input behind delta, which only libraries read
};
/// "" or why attention does not run on the target's tensor cores, but in tiles of f32.
std::string declines_tensor_cores(const Target&, const Attention& shape);
/// Inputs q, k, v[, mask][, seed, step]; results y, and if `lse` the logarithm of the sum of exponentials per row.
LaunchList attention(const Target&, const Attention& shape, bool lse);
/// Inputs q, k, v, dy, lse, delta[, mask][, seed, step]; those of the results dq, dk, dv that are `wanted`.
LaunchList attention_grad(const Target&, const Attention& shape, std::array<bool, 3> wanted);

/// A recurrence over `steps` of [rows, cells], as defined by the ops lstm_recurrence and gru_recurrence.
struct Recurrence {
  DType dtype = DType::f32;  ///< f32, f16 or bf16; gates and cells are always f32
  int64_t steps = 1, rows = 1, cells = 1;
  bool reverse = false, lengths = false;
  bool in_place = false;     ///< lstm: gates overwrite z; lstm_dx: dz overwrites gates; f32 only
  std::vector<bool> wanted;  ///< per result: an unused one has no buffer
};
/// Inputs h0, c0, w_hh, z[, lengths]; results y, c_n, gates, cells.
LaunchList lstm(const Target&, const Recurrence& shape);
/// Inputs c0, w_hh, gates, cells, dy, dc_n[, lengths]; results dh0, dc0, dz.
LaunchList lstm_dx(const Target&, const Recurrence& shape);
/// Inputs h0, w_hh, b_hh, z[, lengths]; results y, gates.
LaunchList gru(const Target&, const Recurrence& shape);
/// Inputs h0, w_hh, gates, y, dy[, lengths]; results dh0, dz, dp.
LaunchList gru_dx(const Target&, const Recurrence& shape);

/// Windows over the planes of x [planes, h.size, w.size], results [planes, h.count, w.count]. Floats only.
struct Pool {
  DType dtype = DType::f32;
  int64_t planes = 1;
  WindowAxis h, w;
  int64_t inner = 1;  ///< channels of a pixel: images are [planes, h, w, inner]
};
/// Input x. Results: if `y`, the largest element of each window (NaN counts as largest); if `index`, its tap ky *
/// w.kernel + kx (i32): the first in a tie, never the padding.
LaunchList max_pool(const Target&, const Pool& shape, bool y, bool index);
/// The gradient of max_pool: inputs d, index; adds every d to the element of its index.
LaunchList max_pool_dx(const Target&, const Pool& shape);
/// Input x; y = the average of each window; padding counts as zeros if `whole`, else it is excluded.
LaunchList avg_pool(const Target&, const Pool& shape, bool whole);
/// The gradient of avg_pool: input d, distributed over its window.
LaunchList avg_pool_dx(const Target&, const Pool& shape, bool whole);

}  // namespace tutti::codegen

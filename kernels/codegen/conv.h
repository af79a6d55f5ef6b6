// Internal: a convolution or one of its gradients as a matrix product, and the kernel families for it.
#pragma once
#include <array>
#include <optional>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// One image axis: row r and tap k read the image element (r * row_step + k * k_step + offset) / step, if that is an
/// integer inside the image.
struct ConvAxis {
  int64_t size, rows, row_step, taps, k_step, offset, step;

  /// Number of coordinates (before the division), starting with `offset`.
  int64_t span() const { return (rows - 1) * row_step + (taps - 1) * k_step + 1; }
};

/// y[g, row, column] = sum over k of image[g, row, k] b[g, k, column]. Row numbers count (row plane, y.rows, x.rows), k
/// counts (k plane, y.taps, x.taps); the image's plane is row plane * row_plane + k plane * k_plane + g * group_plane.
struct ConvProduct {
  DType dtype = DType::f32;
  ConvAxis y, x;
  int64_t groups = 1, columns = 0, row_planes = 0, k_planes = 0, planes = 0;  ///< planes of the whole image
  int64_t row_plane = 0, k_plane = 0, group_plane = 0;
  bool of_weights = false;  ///< gradient of the weights: rows are taps, k are positions
  int64_t b_group = 0, b_plane = 0, b_column = 0, b_elements = 0;  ///< strides in b
  /// Tap (j, l) of a plane is at index b_tap - j * b_tap_y - l * b_tap_x of b; if b_tap_x is 0, taps are contiguous.
  int64_t b_tap = 0, b_tap_y = 0, b_tap_x = 0;
  int64_t y_group = 0, y_plane = 0, y_column = 0, y_elements = 0;  ///< strides in y, and number of results
  /// Strides in y between lines of positions and between positions, and the index of the first; if y_step is 0, the
  /// positions of a row plane are contiguous, and y contains nothing else.
  int64_t y_line = 0, y_step = 0, y_first = 0;
  bool bias = false,
       relu = false;  ///< bias is input 2, one number per column of all groups; results are [.., columns, positions]
  int64_t bias_first = 0;  ///< bias index of the first column
  /// What a padded copy of the image holds, if that is more than this product reads: then several products make the
  /// same copy. Its axes have the coordinates of the copy as rows, and one tap.
  std::optional<std::array<ConvAxis, 2>> frame = {};

  int64_t positions() const { return y.rows * x.rows; }
  int64_t taps() const { return y.taps * x.taps; }
  int64_t rows() const { return row_planes * positions(); }
  int64_t depth() const { return k_planes * taps(); }
  int64_t image_elements() const { return planes * y.size * x.size; }
  int64_t y_reach() const { return y_step ? row_planes * y_plane : y_elements; }  ///< elements of the tensor y
};

/// Launches of a product with the best kernel family. Buffers: image, b[, bias], y, scratch.
LaunchList conv_product(const Target& t, const ConvProduct& p);
/// Strided conv_dx, whose product is `p`, as one product per phase (pixel position modulo the strides), which avoids
/// multiplying by the zeros between the cotangent's pixels. None if that does not help.
std::optional<LaunchList> conv_phases(const Target& t, const Conv& c, const ConvProduct& p);

/// Sets the parameters common to all kernel families: sums and the other operand, whose index is written with `n`.
void describe_product(const ConvProduct& p, Kernel& k, const Write& n);
/// Index of a tap in b, relative to the first of its plane.
std::string tap_in_b(const ConvProduct& p, const Write& n, const std::string& tap);
/// Index in a strided y of result e, counted along (row plane, column, position).
std::string y_of_result(const ConvProduct& p, const std::string& e);
/// Adds the launch of a product whose buffers begin with `first`; with `parts` > 1, another kernel sums the parts.
void launch_conv(const Target& t, LaunchList& list, const ConvProduct& p, Kernel k, int64_t parts,
                 std::vector<int> first, int64_t groups);

/// Pixels of an image line, and their positions in a padded copy of it.
struct Pixels {
  int64_t count, from, to;
};
/// In a copy that begins at the axis's first coordinate: the `length` positions that are `remainder` modulo `every`.
Pixels pixels_of(const ConvAxis& a, int64_t every, int64_t remainder, int64_t length);

/// Packs b into panels [groups, panels, depth, wide]. `k` is conv_pack; sets its element positions.
Launch pack_panels(const Target& t, const ConvProduct& p, Kernel k, int64_t panels, int64_t depth, int64_t wide,
                   int to);
/// Index of row m's first element in the image, as an expression of m and g.
std::string image_address(const ConvProduct& p, const Write& n, int64_t row_plane, int64_t group_plane, int64_t plane,
                          int64_t width, int64_t base);
/// The length of parts along k's first axis, chosen for enough groups, few loop rounds, and panels (`bytes` for all of
/// k) that fit into a core's cache. `rounds`: of the loops over k.
int64_t part_of(const Target& t, std::array<int64_t, 3> rounds, int64_t groups, int64_t bytes);

/// Kernels for CPUs, and for CPUs on which texel buffers are faster than storage buffers (Target::max_texels).
LaunchList conv_panels(const Target& t, const ConvProduct& p);
LaunchList conv_texels(const Target& t, const ConvProduct& p);

/// Kernels for CPUs that vectorize along image lines, for few columns or short sums; conv_taps is for weight gradients,
/// whose rows are taps. None if the product has another shape.
std::optional<LaunchList> conv_strips(const Target& t, const ConvProduct& p);
std::optional<LaunchList> conv_taps(const Target& t, const ConvProduct& p);

}  // namespace tutti::codegen

// Inside of the dialect: a convolution or one of its gradients as a product, and the families of kernels for it.
#pragma once
#include <optional>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// One image axis: row r and tap k meet the image's element (r * row_step + k * k_step + offset) / step, where that is
/// a whole number inside the image.
struct ConvAxis {
  int64_t size, rows, row_step, taps, k_step, offset, step;

  /// How many coordinates (before the division) follow the first, which is `offset`, and it.
  int64_t span() const { return (rows - 1) * row_step + (taps - 1) * k_step + 1; }
};

/// y[g, row, column] = sum over k of image[g, row, k] b[g, k, column]. Row numbers count (row plane, y.rows, x.rows), k
/// counts (k plane, y.taps, x.taps); the image's plane is row plane * row_plane + k plane * k_plane + g * group_plane.
struct ConvProduct {
  DType dtype = DType::f32;
  ConvAxis y, x;
  int64_t groups = 1, columns = 0, row_planes = 0, k_planes = 0, planes = 0;  ///< planes: of the whole image
  int64_t row_plane = 0, k_plane = 0, group_plane = 0;
  bool of_weights = false;  ///< the gradient to the weights: rows are taps, k are positions
  int64_t b_group = 0, b_plane = 0, b_column = 0, b_elements = 0;  ///< steps in b
  /// Tap (j, l) of a plane is b's number b_tap - j * b_tap_y - l * b_tap_x; where b_tap_x is 0, taps are neighbours.
  int64_t b_tap = 0, b_tap_y = 0, b_tap_x = 0;
  int64_t y_group = 0, y_plane = 0, y_column = 0, y_elements = 0;  ///< steps in y, and how many results
  /// Steps in y between lines of positions and between positions, and the first one's place; where y_step is 0, the
  /// positions of a row plane are neighbours, and nothing else is in y.
  int64_t y_line = 0, y_step = 0, y_first = 0;
  bool bias = false,
       relu = false;  ///< bias is input 2, one number per column of all groups; results are [.., columns, positions]
  int64_t bias_first = 0;  ///< the first column's

  int64_t positions() const { return y.rows * x.rows; }
  int64_t taps() const { return y.taps * x.taps; }
  int64_t rows() const { return row_planes * positions(); }
  int64_t depth() const { return k_planes * taps(); }
  int64_t image_elements() const { return planes * y.size * x.size; }
  int64_t y_reach() const { return y_step ? row_planes * y_plane : y_elements; }  ///< elements of the tensor y
};

/// The launches of a product by the family that suits it. Buffers: image, b[, bias], y, scratch.
LaunchList conv_product(const Target& t, const ConvProduct& p);
/// conv_dx with strides, whose product is `p`, as a product for each remainder of pixels by the strides, which fewer
/// taps read: no products with the zeros between the cotangent's pixels. Nothing where that is of no use.
std::optional<LaunchList> conv_phases(const Target& t, const Conv& c, const ConvProduct& p);

/// The parameters of the kernels of all families: sums, the other operand, whose place is written with `n`.
void describe_product(const ConvProduct& p, Kernel& k, const Write& n);
/// The place of a tap in b, counted from its plane's first.
std::string tap_in_b(const ConvProduct& p, const Write& n, const std::string& tap);
/// Where result e, counted along (row plane, column, place), lies in a y that has steps.
std::string y_of_result(const ConvProduct& p, const std::string& e);
/// Adds the launch of a product whose buffers begin with `first`; in `parts` that another kernel adds up.
void launch_conv(const Target& t, LaunchList& list, const ConvProduct& p, Kernel k, int64_t parts,
                 std::vector<int> first, int64_t groups);

/// Pixels of an image's line, and where they stand in a copy of it with its border.
struct Pixels {
  int64_t count, from, to;
};
/// Of a copy that begins at the axis's first coordinate, the `length` positions whose number by `every` has that
/// remainder.
Pixels pixels_of(const ConvAxis& a, int64_t every, int64_t remainder, int64_t length);

/// Packs b into panels [groups, panels, depth, wide]; `k` is conv_pack, which gets the positions of its elements.
Launch pack_panels(const Target& t, const ConvProduct& p, Kernel k, int64_t panels, int64_t depth, int64_t wide,
                   int to);
/// Where row m's first element lies in an image of such planes, as an expression of m and g.
std::string image_address(const ConvProduct& p, const Write& n, int64_t row_plane, int64_t group_plane, int64_t plane,
                          int64_t width, int64_t base);
/// The length of the parts of k's first axis: enough groups, few rounds, and panels (`bytes` with all of k) that stay
/// in a core's cache. `rounds`: of the loops over k.
int64_t part_of(const Target& t, std::array<int64_t, 3> rounds, int64_t groups, int64_t bytes);

/// The kernels for CPUs, and for CPUs that read texel buffers faster than storage buffers (Target::max_texels).
LaunchList conv_panels(const Target& t, const ConvProduct& p);
LaunchList conv_texels(const Target& t, const ConvProduct& p);

/// The kernels for CPUs whose vectors run along the image's lines: for few columns or short sums; conv_taps where the
/// rows are the taps of a gradient to the weights. Nothing where the product has another shape.
std::optional<LaunchList> conv_strips(const Target& t, const ConvProduct& p);
std::optional<LaunchList> conv_taps(const Target& t, const ConvProduct& p);

}  // namespace tutti::codegen

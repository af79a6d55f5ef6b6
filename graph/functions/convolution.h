// 1-d and 3-d convolutions, transposed convolutions, and "same" padding; conv2d is an op.
#pragma once
#include "core/base/attrs.h"
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Options of conv1d, for the last axis, and of conv3d, for the last three (z, y, x); `groups` divides the channels.
/// PyTorch's defaults.
struct TUTTI_API Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
struct TUTTI_API Conv3dOptions {
  Ints stride = {1, 1, 1}, padding = {0, 0, 0}, dilation = {1, 1, 1};
  int64_t groups = 1;
};
/// conv2d over one axis: x [N, C, L], w [O, C/groups, k], y [N, O, OL].
TUTTI_API Value conv1d(Value x, Value w, const Conv1dOptions& o = {});
/// conv2d over three axes: x [N, C, D, H, W], w [O, C/groups, kz, ky, kx], y [N, O, OD, OH, OW]. The kz planes under
/// the kernel become channels of one conv2d.
TUTTI_API Value conv3d(Value x, Value w, const Conv3dOptions& o = {});
/// conv1d, conv2d or conv3d, depending on the rank of x, padded so that y has the spatial size of x ("same" in
/// PyTorch): dilation * (k - 1) zeros per axis, with the odd one at the end. An empty dilation means 1.
TUTTI_API Value conv_same(Value x, Value w, Ints dilation = {}, int64_t groups = 1);

/// Options of a transposed convolution, (y, x) each; PyTorch's defaults. `output_padding`, less than the stride or the
/// dilation, selects one of the output sizes that a convolution would map to the same input size.
struct TUTTI_API ConvTranspose2dOptions {
  Ints stride = {1, 1}, padding = {0, 0}, output_padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
};
/// The same for one axis and for three.
struct TUTTI_API ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};
struct TUTTI_API ConvTranspose3dOptions {
  Ints stride = {1, 1, 1}, padding = {0, 0, 0}, output_padding = {0, 0, 0}, dilation = {1, 1, 1};
  int64_t groups = 1;
};
/// The adjoint of conv2d as a layer: x [N, C, H, W], w [C, O/groups, ky, kx], y [N, O, OH, OW] with
/// OH = (H - 1) stride - 2 padding + dilation (ky - 1) + output_padding + 1.
TUTTI_API Value conv_transpose2d(Value x, Value w, const ConvTranspose2dOptions& o = {});
/// The adjoint of conv1d: x [N, C, L], w [C, O/groups, k].
TUTTI_API Value conv_transpose1d(Value x, Value w, const ConvTranspose1dOptions& o = {});
/// The adjoint of conv3d: x [N, C, D, H, W], w [C, O/groups, kz, ky, kx].
TUTTI_API Value conv_transpose3d(Value x, Value w, const ConvTranspose3dOptions& o = {});

}  // namespace tutti

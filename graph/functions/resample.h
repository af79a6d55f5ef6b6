// Resizes images: torch.nn.functional.interpolate, grid_sample, and reshuffling between channels and positions.
#pragma once
#include <string>

#include "core/base/attrs.h"
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Either `size`, one number per spatial axis, or `scale_factor`, one for all or per axis. `mode` is "nearest",
/// "nearest-exact", "area" (an adaptive average), "linear", "bilinear" or "trilinear" by the number of spatial axes, or
/// "bicubic". With `align_corners` the corner pixels of x and y coincide (not in the first three modes).
/// `recompute_scale_factor` computes the scale from the sizes, which differs if the factor gives a fractional size.
struct TUTTI_API InterpolateOptions {
  Ints size = {};
  Reals scale_factor = {};
  std::string mode = "nearest";
  bool align_corners = false, recompute_scale_factor = false;
};
/// Resizes the spatial axes of x [N, C, spatial axes…] as PyTorch does (without antialiasing). The linear modes and
/// bicubic multiply by a matrix per axis: an infinity or NaN spreads over its whole row and column.
TUTTI_API Value interpolate(Value x, const InterpolateOptions& o);

/// `mode`: "bilinear" or "nearest". `padding_mode`: outside of x are "zeros" or the nearest pixel of its "border". With
/// `align_corners` -1 and 1 are the centers of the outermost pixels, else their outer edges.
struct TUTTI_API GridSampleOptions {
  std::string mode = "bilinear", padding_mode = "zeros";
  bool align_corners = false;
};
/// y[n, c, i, j] = x [N, C, H, W] sampled at grid[n, i, j] = (x, y), grid [N, OH, OW, 2] with coordinates from -1 to 1.
TUTTI_API Value grid_sample(Value x, Value grid, const GridSampleOptions& o = {});

/// [..., C r r, H, W] to [..., C, H r, W r]: groups of r r channels become blocks of r x r pixels.
TUTTI_API Value pixel_shuffle(Value x, int64_t upscale_factor);
/// [..., C, H r, W r] to [..., C r r, H, W]: the inverse of pixel_shuffle.
TUTTI_API Value pixel_unshuffle(Value x, int64_t downscale_factor);
/// [N, C, ...] with the channels of the groups interleaved.
TUTTI_API Value channel_shuffle(Value x, int64_t groups);

}  // namespace tutti

// Layout of images: convolutions on channels-last images, for devices that prefer them.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// One channels-last node per convolution of `g`, over feeds, to ask a device about; no nodes if `g` has none.
TUTTI_API Graph channels_last_convolutions(const Graph& g);

/// The same graph with conv2d_nhwc and its gradients instead of conv2d and its gradients. Nodes between convolutions
/// (elementwise nodes, reductions, pools, slices, concatenations) compute on channels-last values too; others, states
/// and feeds keep their layout, and transposes are added where one meets the other.
TUTTI_API Graph channels_last(const Graph& g);

/// Bytes of the results of all transposes.
TUTTI_API double transposed_bytes(const Graph& g);
/// Bytes of the images, weights and results of all convolutions, counted per convolution: what a library transposes
/// that has only channels-last kernels.
TUTTI_API double convolution_bytes(const Graph& g);

}  // namespace tutti

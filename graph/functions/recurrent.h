// LSTM and GRU with several layers, in one or both directions.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// The weights of one direction of a layer; gates in PyTorch's order: i, f, g, o for LSTM, r, z, n for GRU.
struct TUTTI_API RecurrentWeights {
  Value w_ih, w_hh;            ///< [gates * H, I] and [gates * H, H]
  Value b_ih = {}, b_hh = {};  ///< [gates * H], or null
};

/// PyTorch's defaults. Layers and directions are given by the number of weights and `bidirectional`.
struct TUTTI_API RecurrentOptions {
  bool bidirectional = false;
  bool batch_first = false;  ///< x and y are [N, T, …]
  Value lengths = {};        ///< i32 [N]: after its length a sequence's state is unchanged and its y is 0
  double dropout = 0;        ///< between layers; needs seed and step, layer k draws from stream + k
  Value seed = {}, step = {};
  int64_t stream = 0;
};

/// y [T, N, directions * H], and the final states [layers * directions, N, H]; c_n is null for a GRU.
struct TUTTI_API RecurrentResult {
  Value y, h_n, c_n;
};

/// torch.nn.LSTM over x [T, N, I]: `weights` layer by layer, forward before backward; h0 and c0 [layers * directions,
/// N, H], zeros if null.
TUTTI_API RecurrentResult lstm(Value x, Value h0, Value c0, const std::vector<RecurrentWeights>& weights,
                               const RecurrentOptions& o = {});
/// torch.nn.GRU, with the same layout.
TUTTI_API RecurrentResult gru(Value x, Value h0, const std::vector<RecurrentWeights>& weights,
                              const RecurrentOptions& o = {});

}  // namespace tutti

// LSTM and GRU of several layers, in one or both directions.
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// The weights of one direction of a layer, with PyTorch's order of the gates: i, f, g, o of an LSTM, r, z, n of a GRU.
struct TUTTI_API RecurrentWeights {
  Value w_ih, w_hh;            ///< [gates * H, I] and [gates * H, H]
  Value b_ih = {}, b_hh = {};  ///< [gates * H], each null where there is none
};

/// PyTorch's defaults; an LSTM or GRU has one direction or two and as many layers as its weights are for.
struct TUTTI_API RecurrentOptions {
  bool bidirectional = false;
  bool batch_first = false;  ///< x and y are [N, T, …]
  Value lengths = {};        ///< i32 [N]: the state of a sequence stays after its length, and its later y are 0
  double dropout = 0;        ///< between layers; needs seed and step, layer k draws from stream + k
  Value seed = {}, step = {};
  int64_t stream = 0;
};

/// y [T, N, directions * H], and the last states [layers * directions, N, H]; c_n is null for a GRU.
struct TUTTI_API RecurrentResult {
  Value y, h_n, c_n;
};

/// torch.nn.LSTM over x [T, N, I]: `weights` layer by layer, forward before backward; h0 and c0 [layers * directions,
/// N, H], zeros where null.
TUTTI_API RecurrentResult lstm(Value x, Value h0, Value c0, const std::vector<RecurrentWeights>& weights,
                               const RecurrentOptions& o = {});
/// torch.nn.GRU, likewise.
TUTTI_API RecurrentResult gru(Value x, Value h0, const std::vector<RecurrentWeights>& weights,
                              const RecurrentOptions& o = {});

}  // namespace tutti

// Modules over tokens and sequences: embeddings and recurrent layers.
#pragma once
#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// Rows of weight [count, width] for indices (i32) of any shape; initialized to N(0, 1) by default.
class TUTTI_API Embedding {
 public:
  Embedding(int64_t count, int64_t width, Init init = {Init::normal, 0, 1});
  Value forward(Builder& b, Value indices) const;
  std::string describe() const;

 private:
  int64_t count_, width_;
  Init init_;
};

struct TUTTI_API RecurrentModuleOptions {
  int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< between layers
};

/// The results of a recurrent module for x [N, T, I].
struct TUTTI_API Sequences {
  Value y;         ///< [N, T, directions * hidden]
  Value h_n, c_n;  ///< [layers * directions, N, hidden]; c_n is null for a GRU
};

/// PyTorch's LSTM with batch_first: parameters weight_ih_l0 [4 hidden, I], weight_hh_l0, bias_ih_l0, bias_hh_l0, …,
/// "_reverse" for the second direction. `lengths` (i32 [N]): a sequence's state is unchanged after its length.
class TUTTI_API Lstm {
 public:
  explicit Lstm(int64_t hidden, RecurrentModuleOptions options = {}) : hidden_(hidden), options_(options) {}
  Sequences forward(Builder& b, Value x, Value lengths = {}) const;

 private:
  int64_t hidden_;
  RecurrentModuleOptions options_;
};

/// PyTorch's GRU with batch_first, with the same naming.
class TUTTI_API Gru {
 public:
  explicit Gru(int64_t hidden, RecurrentModuleOptions options = {}) : hidden_(hidden), options_(options) {}
  Sequences forward(Builder& b, Value x, Value lengths = {}) const;

 private:
  int64_t hidden_;
  RecurrentModuleOptions options_;
};

}  // namespace tutti::nn

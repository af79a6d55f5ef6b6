// Modules for tokens and sequences [N, T, features].
#include "nn/sequences.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/embedding.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

struct Positions {
  int64_t count;
  Value forward(Builder& b, Value x) const {
    if (x.rank() != 3)
      throw invalid(fmt::format("positions expects input [N, T, features], got {}", to_string(x.type())));
    int64_t t = x.shape()[1];
    if (t > count)
      throw invalid(fmt::format("positions: the sequence has {} tokens, but num_embeddings is {}", t, count),
                    "increase num_embeddings, or use a shorter context");
    Value weight = b.parameter("weight", {count, x.shape()[2]}, {Init::normal, 0, 0.02});
    return x + embedding(weight, b.positions(t));
  }
  std::string describe() const { return fmt::format("positions({})", count); }
};

/// A recurrent module that returns only the results of all steps.
template <class M>
struct Steps {
  const char* name;
  int64_t hidden;
  M module;
  Value forward(Builder& b, Value x) const { return module.forward(b, x).y; }
  std::string describe() const { return fmt::format("{}({})", name, hidden); }
};

const std::vector<Argument> recurrent = {
    {.name = "input_size", .axis = -1},
    {.name = "hidden_size"},
    {.name = "num_layers", .otherwise = int64_t{1}},
    {.name = "dropout", .type = Argument::real, .otherwise = 0.0, .doc = "between layers", .most = 1},
    {.name = "bidirectional", .type = Argument::flag, .otherwise = false},
};

RecurrentModuleOptions options(const Arguments& a) {
  constexpr int64_t most = 1000;  // limits the work that a short file can ask for
  int64_t layers = a.whole("num_layers");
  if (layers > most)
    throw invalid(fmt::format("num_layers is {}, the maximum is {}", layers, most), "use fewer layers");
  return {.layers = layers, .bidirectional = a.flag("bidirectional"), .dropout = a.real("dropout")};
}

}  // namespace

extern const LayerKind embedding_kind{
    .name = "Embedding",
    .doc = "the row of weight with the token's index, for each token",
    .arguments = {{.name = "num_embeddings", .data = Argument::tokens}, {.name = "embedding_dim"}},
    .make = [](const Arguments& a) -> Layer { return Embedding(a.whole("num_embeddings"), a.whole("embedding_dim")); },
    .reads_tokens = true};

extern const LayerKind positions_kind{
    .name = "positions",
    .doc = "adds row i of weight to position i of the sequence; initialised from N(0, 0.02)",
    .arguments = {{.name = "num_embeddings", .doc = "the maximum sequence length"}},
    .make = [](const Arguments& a) -> Layer { return Positions{a.whole("num_embeddings")}; }};

extern const LayerKind lstm_kind{.name = "LSTM",
                                 .doc = "an LSTM with batch_first; the output is its hidden state at every step",
                                 .arguments = recurrent,
                                 .make = [](const Arguments& a) -> Layer {
                                   int64_t hidden = a.whole("hidden_size");
                                   return Steps<Lstm>{"LSTM", hidden, Lstm(hidden, options(a))};
                                 }};

extern const LayerKind gru_kind{.name = "GRU",
                                .doc = "a GRU with batch_first; the output is its hidden state at every step",
                                .arguments = recurrent,
                                .make = [](const Arguments& a) -> Layer {
                                  int64_t hidden = a.whole("hidden_size");
                                  return Steps<Gru>{"GRU", hidden, Gru(hidden, options(a))};
                                }};

}  // namespace tutti::nn

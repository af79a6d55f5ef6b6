// Attention over sequences [N, T, features].
#include "nn/attention.h"

#include "nn/kind.h"
#include "nn/transformer.h"

namespace tutti::nn {
namespace {

const Argument is_causal = {.name = "is_causal",
                            .type = Argument::flag,
                            .otherwise = false,
                            .doc = "token i attends only to tokens 0 to i; in PyTorch an argument of forward"};

}  // namespace

extern const LayerKind multihead_attention_kind{
    .name = "MultiheadAttention",
    .doc = "self-attention, with batch_first",
    .arguments = {{.name = "embed_dim", .axis = -1},
                  {.name = "num_heads"},
                  {.name = "dropout", .type = Argument::real, .otherwise = 0.0, .most = 1},
                  {.name = "bias", .type = Argument::flag, .otherwise = true},
                  is_causal},
    .make = [](const Arguments& a) -> Layer {
      return MultiheadAttention(a.whole("num_heads"),
                                {.causal = a.flag("is_causal"), .dropout = a.real("dropout"), .bias = a.flag("bias")});
    }};

extern const LayerKind transformer_encoder_layer_kind{
    .name = "TransformerEncoderLayer",
    .doc = "self-attention, then two linear layers, both with a residual connection and a LayerNorm, with batch_first",
    .arguments =
        {{.name = "d_model", .axis = -1},
         {.name = "nhead"},
         {.name = "dim_feedforward", .otherwise = int64_t{2048}},
         {.name = "dropout", .type = Argument::real, .otherwise = 0.1, .most = 1},
         {.name = "activation", .type = Argument::text, .otherwise = std::string("relu"), .choices = {"relu", "gelu"}},
         {.name = "layer_norm_eps", .type = Argument::real, .otherwise = 1e-5},
         {.name = "norm_first", .type = Argument::flag, .otherwise = false},
         {.name = "bias", .type = Argument::flag, .otherwise = true},
         is_causal},
    .make = [](const Arguments& a) -> Layer {
      return TransformerEncoderLayer(a.whole("nhead"), {.feedforward = a.whole("dim_feedforward"),
                                                        .dropout = a.real("dropout"),
                                                        .activation = a.text("activation"),
                                                        .eps = a.real("layer_norm_eps"),
                                                        .norm_first = a.flag("norm_first"),
                                                        .bias = a.flag("bias"),
                                                        .causal = a.flag("is_causal")});
    }};

}  // namespace tutti::nn

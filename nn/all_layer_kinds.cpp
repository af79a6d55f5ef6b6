// Written by scripts/collect.py from nn/kinds/.
// clang-format off
#include "nn/kind.h"

namespace tutti::nn {

extern const LayerKind relu_kind;
extern const LayerKind relu6_kind;
extern const LayerKind leaky_relu_kind;
extern const LayerKind prelu_kind;
extern const LayerKind elu_kind;
extern const LayerKind gelu_kind;
extern const LayerKind silu_kind;
extern const LayerKind sigmoid_kind;
extern const LayerKind tanh_kind;
extern const LayerKind softplus_kind;
extern const LayerKind mish_kind;
extern const LayerKind hardswish_kind;
extern const LayerKind hardsigmoid_kind;
extern const LayerKind softmax_kind;
extern const LayerKind multihead_attention_kind;
extern const LayerKind transformer_encoder_layer_kind;
extern const LayerKind sequential_kind;
extern const LayerKind residual_kind;
extern const LayerKind sum_kind;
extern const LayerKind concat_kind;
extern const LayerKind repeat_kind;
extern const LayerKind conv1d_kind;
extern const LayerKind conv2d_kind;
extern const LayerKind conv_transpose2d_kind;
extern const LayerKind dropout_kind;
extern const LayerKind linear_kind;
extern const LayerKind batch_norm1d_kind;
extern const LayerKind batch_norm2d_kind;
extern const LayerKind layer_norm_kind;
extern const LayerKind rms_norm_kind;
extern const LayerKind group_norm_kind;
extern const LayerKind max_pool1d_kind;
extern const LayerKind max_pool2d_kind;
extern const LayerKind avg_pool2d_kind;
extern const LayerKind adaptive_avg_pool2d_kind;
extern const LayerKind upsample_kind;
extern const LayerKind embedding_kind;
extern const LayerKind positions_kind;
extern const LayerKind lstm_kind;
extern const LayerKind gru_kind;
extern const LayerKind identity_kind;
extern const LayerKind flatten_kind;
extern const LayerKind unflatten_kind;
extern const LayerKind permute_kind;
extern const LayerKind select_kind;
extern const LayerKind mean_kind;
static constexpr const LayerKind* records[] = {
    &relu_kind,
    &relu6_kind,
    &leaky_relu_kind,
    &prelu_kind,
    &elu_kind,
    &gelu_kind,
    &silu_kind,
    &sigmoid_kind,
    &tanh_kind,
    &softplus_kind,
    &mish_kind,
    &hardswish_kind,
    &hardsigmoid_kind,
    &softmax_kind,
    &multihead_attention_kind,
    &transformer_encoder_layer_kind,
    &sequential_kind,
    &residual_kind,
    &sum_kind,
    &concat_kind,
    &repeat_kind,
    &conv1d_kind,
    &conv2d_kind,
    &conv_transpose2d_kind,
    &dropout_kind,
    &linear_kind,
    &batch_norm1d_kind,
    &batch_norm2d_kind,
    &layer_norm_kind,
    &rms_norm_kind,
    &group_norm_kind,
    &max_pool1d_kind,
    &max_pool2d_kind,
    &avg_pool2d_kind,
    &adaptive_avg_pool2d_kind,
    &upsample_kind,
    &embedding_kind,
    &positions_kind,
    &lstm_kind,
    &gru_kind,
    &identity_kind,
    &flatten_kind,
    &unflatten_kind,
    &permute_kind,
    &select_kind,
    &mean_kind,
};

std::span<const LayerKind* const> all_layer_kinds() { return records; }

}  // namespace tutti::nn

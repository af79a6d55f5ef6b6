// Written by scripts/collect.py from train/models/.
// clang-format off
#include "train/task/model.h"

namespace tutti {

extern const ModelDef autoencoder_model;
extern const ModelDef bert_model;
extern const ModelDef char_lstm_model;
extern const ModelDef cnn_model;
extern const ModelDef diffusion_model;
extern const ModelDef dlrm_model;
extern const ModelDef gpt_model;
extern const ModelDef llama_model;
extern const ModelDef lstm_model;
extern const ModelDef mlp_model;
extern const ModelDef mobilenet_v2_model;
extern const ModelDef orientation_model;
extern const ModelDef resnet18_model;
extern const ModelDef resnet34_model;
extern const ModelDef resnet50_model;
extern const ModelDef tabular_model;
extern const ModelDef two_tower_model;
extern const ModelDef unet_model;
extern const ModelDef vae_model;
extern const ModelDef vit_model;
static constexpr const ModelDef* records[] = {
    &autoencoder_model,
    &bert_model,
    &char_lstm_model,
    &cnn_model,
    &diffusion_model,
    &dlrm_model,
    &gpt_model,
    &llama_model,
    &lstm_model,
    &mlp_model,
    &mobilenet_v2_model,
    &orientation_model,
    &resnet18_model,
    &resnet34_model,
    &resnet50_model,
    &tabular_model,
    &two_tower_model,
    &unet_model,
    &vae_model,
    &vit_model,
};

std::span<const ModelDef* const> all_models() { return records; }

}  // namespace tutti

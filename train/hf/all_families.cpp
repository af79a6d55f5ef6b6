// Written by scripts/collect.py from train/hf/families/.
// clang-format off
#include "train/hf/family.h"

namespace tutti::hf {

extern const Family bert_family;
extern const Family gemma_family;
extern const Family gemma2_family;
extern const Family gemma3_text_family;
extern const Family gpt2_family;
extern const Family llama_family;
extern const Family mistral_family;
extern const Family phi3_family;
extern const Family qwen2_family;
extern const Family qwen3_family;
extern const Family resnet_family;
extern const Family vit_family;
static constexpr const Family* records[] = {
    &bert_family,
    &gemma_family,
    &gemma2_family,
    &gemma3_text_family,
    &gpt2_family,
    &llama_family,
    &mistral_family,
    &phi3_family,
    &qwen2_family,
    &qwen3_family,
    &resnet_family,
    &vit_family,
};

std::span<const Family* const> all_families() { return records; }

}  // namespace tutti::hf

// The options of the built-in language models, which config.json describes too.
#pragma once
#include "nn/bert.h"
#include "nn/decoder.h"
#include "nn/gpt2.h"
#include "train/task/model.h"

namespace tutti {

nn::DecoderOptions llama_options(const ModelOptions& o, const data::Source& train);
nn::Gpt2Options gpt_options(const ModelOptions& o, const data::Source& train);
nn::BertOptions bert_options(const ModelOptions& o, const data::Source& train);

}  // namespace tutti

// GPT-2 (Radford et al., 2019), DistilGPT-2.
#include <fmt/format.h>

#include "nn/gpt2.h"
#include "train/hf/contexts.h"
#include "train/hf/family.h"
#include "train/io/weight_names.h"

namespace tutti::hf {
namespace {

nn::Gpt2Options options_of(Config& c) {
  nn::Gpt2Options o;
  o.vocabulary = c.integer("vocab_size", 50257);
  o.positions = c.integer("n_positions", 1024);
  o.width = c.integer("n_embd", 768);
  o.layers = c.layers("n_layer", 12);
  o.heads = c.integer("n_head", 12);
  if (o.width % o.heads != 0) c.fail("n_head", fmt::format("which does not divide n_embd, {}", o.width));
  o.hidden = c.integer("n_inner", 4 * o.width);
  o.activation = activation_of(c, "activation_function", "gelu_new");
  o.eps = c.real("layer_norm_epsilon", 1e-5);
  o.tied = c.flag("tie_word_embeddings", true);
  o.scaled = c.flag("scale_attn_weights", true);
  o.scaled_by_layer = c.flag("scale_attn_by_inverse_layer_idx", false);
  o.residual_dropout = c.probability("resid_pdrop", 0.1);
  o.embedding_dropout = c.probability("embd_pdrop", 0.1);
  o.attention_dropout = c.probability("attn_pdrop", 0.1);
  return o;
}

Described read(Config& c, const std::string&) {
  nn::Gpt2Options g = options_of(c);
  for (const char* key :
       {"n_ctx",                    // older name of n_positions
        "reorder_and_upcast_attn",  // the order of equal computations
        "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"})
    c.ignore(key);
  Described d = language_model_of(nn::Gpt2(g), g.vocabulary, g.positions);
  d.rename = [tied = g.tied](HostTensors& all, const std::string& file) { take_gpt2_names(all, tied, file); };
  return d;
}

}  // namespace

extern const Family gpt2_family{
    .model_type = "gpt2", .doc = "GPT-2", .architectures = {"GPT2LMHeadModel", "GPT2Model"}, .read = read};

}  // namespace tutti::hf

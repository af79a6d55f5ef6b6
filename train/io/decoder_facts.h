// The members of the Llama family: what each adds to a Llama, whatever file describes it.
#pragma once
#include <span>
#include <string_view>

#include "core/base/export.h"
#include "nn/decoder.h"

namespace tutti {

/// What a family has that its files do not say.
struct TUTTI_API DecoderFacts {
  std::string_view architecture;    ///< as GGUF files call it
  const char* name;                 ///< DecoderOptions::name
  const char* activation = "silu";  ///< of the gate
  bool scaled = false;              ///< embeddings are multiplied by sqrt(width), norms by 1 + weight (Gemma)
  bool result_norms = false, head_norms = false, fused = false;  ///< as in DecoderOptions
  double score_cap = 0, logit_cap = 0;                           ///< unless the file has others
  int64_t window = 0;                                            ///< the same
  int64_t pattern = 0;                                           ///< layer i slides unless i + 1 is a multiple of it

  /// Sets name, embedding_scale, unit_norms, result_norms, head_norms and fused. The width must be set.
  void apply(nn::DecoderOptions& options) const;
  bool slides(int64_t layer) const { return pattern > 0 && (layer + 1) % pattern != 0; }
};

/// All families, the first one is Llama.
TUTTI_API std::span<const DecoderFacts> all_decoder_facts();
/// The family of that architecture, which must be known.
TUTTI_API const DecoderFacts& decoder_facts(std::string_view architecture);

}  // namespace tutti

// Generates text with a language model, token by token.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "core/base/export.h"
#include "train/run/trainer.h"

namespace tutti {

/// How the next token is sampled from the logits.
struct TUTTI_API GenerateOptions {
  int64_t tokens = 100;  ///< maximum number
  /// Logits are divided by it. 0: greedy, the token with the largest logit; the first one in a tie.
  double temperature = 0;
  int64_t top_k = 0;  ///< samples from the k largest logits; 0: from all
  /// Nucleus sampling: from the likeliest tokens with this total probability (Holtzman et al., 2019).
  double top_p = 1;
  uint64_t seed = 1;            ///< equal seeds and logits give equal tokens
  std::set<int32_t> stop = {};  ///< generation stops before one of these tokens
  /// Throws Error(invalid) that names the option out of range.
  void check() const;
};

/// Chooses the next token from logits, f32 [vocabulary]. `draw` is a uniform random number in [0, 1).
TUTTI_API int32_t choose(std::span<const float> scores, const GenerateOptions& options, double draw);

/// Continues the prompt by at most options.tokens tokens and not beyond the context. `each` is called with every token
/// as soon as it is generated; returning false stops. Throws Error(invalid) for an empty prompt and for one that fills
/// the context.
TUTTI_API std::vector<int32_t> generate(Trainer& trainer, std::span<const int32_t> prompt, int64_t context,
                                        const GenerateOptions& options, const std::function<bool(int32_t)>& each = {});

}  // namespace tutti

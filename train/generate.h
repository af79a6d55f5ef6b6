// Text by a language model, token by token.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "core/base/export.h"
#include "train/trainer.h"

namespace tutti {

/// How the next token is drawn from the model's scores.
struct TUTTI_API GenerateOptions {
  int64_t tokens = 100;  ///< at most
  double temperature =
      0;              ///< the scores are divided by it; 0: the token with the largest score, the first of equal ones
  int64_t top_k = 0;  ///< of so many with the largest scores alone; 0: of all
  double top_p = 1;   ///< of the likeliest that together have this probability (Holtzman et al., 2019)
  uint64_t seed = 1;  ///< equal seeds draw equal tokens of equal scores
  std::set<int32_t> stop = {};  ///< it ends before one of these
  /// Throws Error(invalid) naming what is out of range.
  void check() const;
};

/// The token that follows those scores, f32 [vocabulary]; `draw`: in [0, 1).
TUTTI_API int32_t choose(std::span<const float> scores, const GenerateOptions& options, double draw);

/// What comes behind the prompt: at most options.tokens, and no more than the context holds. `each` sees every token at
/// once; false ends it. Throws Error(invalid) for an empty prompt and for one that fills the context.
TUTTI_API std::vector<int32_t> generate(Trainer& trainer, std::span<const int32_t> prompt, int64_t context,
                                        const GenerateOptions& options, const std::function<bool(int32_t)>& each = {});

}  // namespace tutti

#include "nn/lora.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/status.h"
#include "core/base/wildcard.h"

namespace tutti::nn {

bool Lora::concerns(const std::string& path) const {
  std::string own = path.substr(path.rfind('.') + 1);
  for (const std::string& target : targets)
    for (const std::string& name : {path, own})
      if (matches_wildcard(target, name)) return true;
  return false;
}

void Lora::check() const {
  if (rank < 1) throw invalid(fmt::format("LoRA rank is {}, must be at least 1", rank));
  if (!std::isfinite(alpha)) throw invalid(fmt::format("LoRA alpha is {}, must be finite", alpha));
  if (!(dropout >= 0 && dropout < 1)) throw invalid(fmt::format("LoRA dropout is {}, must be in [0, 1)", dropout));
  if (targets.empty()) throw invalid("LoRA has no target modules", "name Linear modules, for example \"q_proj\"");
}

bool is_adapter(const std::string& parameter) {
  return parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight") ||
         parameter == "lora_A.weight" || parameter == "lora_B.weight";
}

}  // namespace tutti::nn

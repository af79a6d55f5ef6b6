#include "nn/lora.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cmath>

#include "core/base/status.h"

namespace tutti::nn {

bool Lora::concerns(const std::string& path) const {
  std::string own = path.substr(path.rfind('.') + 1);
  for (const std::string& target : targets)
    for (const std::string& name : {path, own})
      if (fnmatch(target.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

void Lora::check() const {
  if (rank < 1) throw invalid(fmt::format("LoRA of rank {}: must be at least 1", rank));
  if (!std::isfinite(alpha)) throw invalid(fmt::format("LoRA with alpha {}: must be finite", alpha));
  if (!(dropout >= 0 && dropout < 1)) throw invalid(fmt::format("LoRA with dropout {}: must be in [0, 1)", dropout));
  if (targets.empty()) throw invalid("LoRA without targets", "name Linear modules: \"q_proj\"");
}

bool is_adapter(const std::string& parameter) {
  return parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight") ||
         parameter == "lora_A.weight" || parameter == "lora_B.weight";
}

}  // namespace tutti::nn

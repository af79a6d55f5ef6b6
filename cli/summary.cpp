#include "cli/summary.h"

#include <fmt/format.h>

#include "cli/command.h"

namespace tutti::cli {

int print_summary(const ModelSummary& summary, bool json) {
  if (!json) {
    fmt::print("{}", to_text(summary));
    return done;
  }
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerSummary& row : summary.layers)
    layers.push_back({{"path", row.path},
                      {"ops", row.ops},
                      {"output", to_string(row.output)},
                      {"parameters", row.parameters},
                      {"flops", row.flops}});
  print_json({{"layers", layers},
              {"batch", summary.batch},
              {"parameters", summary.parameters},
              {"trained", summary.trained},
              {"parameter_bytes", summary.parameter_bytes},
              {"forward_flops", summary.forward_flops},
              {"step_flops", summary.step_flops}});
  return done;
}

}  // namespace tutti::cli

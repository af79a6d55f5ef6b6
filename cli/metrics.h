// Metrics as text.
#pragma once
#include <fmt/format.h>

#include <string>

namespace tutti::cli {

/// Whether a metric is a share, such as the accuracy, and not an error in the target's unit or R².
inline bool is_share(const std::string& name) { return name != "mae" && name != "rmse" && name != "r2"; }

/// "83.89 %" for a share such as the accuracy, "54.2143" for an error in the target's unit and for R².
inline std::string metric_text(const std::string& name, double value) {
  return is_share(name) ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.6g}", value);
}

}  // namespace tutti::cli

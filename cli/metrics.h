// Metrics as text.
#pragma once
#include <fmt/format.h>

#include <string>

namespace tutti::cli {

/// "83.89 %" for a share such as the accuracy, "54.2143" for an error in the target's unit and for R².
inline std::string metric_text(const std::string& name, double value) {
  bool share = name != "mae" && name != "rmse" && name != "r2";
  return share ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.6g}", value);
}

}  // namespace tutti::cli

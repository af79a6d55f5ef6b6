// Prints what a step would take on a card that is not here (tutti plan --roofline).
#pragma once
#include <nlohmann/json.hpp>

#include "bench/roofline.h"

namespace tutti::cli {

/// The prediction as text: totals, the ten costliest nodes, and kernels that could be one.
void print_prediction(const bench::Prediction& p);
nlohmann::ordered_json prediction_document(const bench::Prediction& p);

}  // namespace tutti::cli

// Options and results of a trainer.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "train/run/trainer.h"

namespace tutti {

NotFinite::NotFinite(int64_t step, const std::string& what, const std::string& remedy)
    : Error(Code::invalid, what, remedy), step(step) {}

double EvalResult::metric(const std::string& name) const {
  if (auto it = metrics.find(name); it != metrics.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : metrics) names.push_back(known);
  throw invalid(fmt::format("the task has no metric '{}'", name),
                names.empty() ? "" : "its metrics are " + alternatives(names));
}

void expect_finite_rate(double lr, const TrainerOptions& o, int64_t at) {
  bool wide = master_dtype(o.precision) == DType::f64;
  if (!(std::abs(lr) <= (wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max())))
    throw invalid(
        fmt::format(
            "the learning rate of step {} is {}, which is not finite or too large: {} times the factor of the schedule",
            at + 1, lr, learning_rate(o.optimizer)),
        "use a smaller learning rate, and a schedule whose factors are finite");
}

nn::WeightFormat parse_quantize(const std::string& text) {
  if (text == "int8") return nn::WeightFormat::int8;
  if (text == "int4") return nn::WeightFormat::int4;
  if (text == "file") return nn::WeightFormat::file;
  throw invalid_option("quantize", text, "unknown", "use int8, int4 or file");
}

}  // namespace tutti

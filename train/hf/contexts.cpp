#include "train/hf/contexts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "train/task/tasks.h"

namespace tutti::hf {

int64_t context_of(const ModelOptions& o, int64_t positions) {
  constexpr int64_t usual = 512;
  if (o.context > positions)
    throw invalid_option("context", o.context, fmt::format("the model has only {} positions", positions),
                         option_text("context", positions));
  return o.context > 0 ? o.context : std::min(positions, usual);
}

void expect_vocabulary(const ModelOptions& o, const data::Source& train, int64_t vocabulary,
                       const std::string& column) {
  int64_t classes = train.column(column).classes;
  if (classes > vocabulary)
    throw invalid(fmt::format("{} has {} tokens, but the model's vocabulary has {}", o.data, classes, vocabulary),
                  "use the model's own tokenizer");
}

std::function<std::string(const ModelOptions&, int64_t)> synthetic_text(int64_t vocabulary, int64_t positions) {
  return [=](const ModelOptions& o, int64_t samples) {
    return fmt::format("synthetic-text:{}:{}", vocabulary, std::min<int64_t>(samples, 512) * context_of(o, positions));
  };
}

Described language_model_of(nn::Layer model, int64_t vocabulary, int64_t positions) {
  return {.build =
              [=](const ModelOptions& o, const data::Source& train) {
                context_of(o, positions);
                expect_vocabulary(o, train, vocabulary);
                return language_model(model);
              },
          .synthetic = synthetic_text(vocabulary, positions),
          .context = [=](const ModelOptions& o) { return context_of(o, positions); }};
}

}  // namespace tutti::hf

#include "cli/report/findings.h"

#include <algorithm>

#include "data/files/png.h"
#include "train/run/generate.h"

namespace tutti::cli {
namespace {

constexpr int64_t prompt_tokens = 32, written_tokens = 200, drawn_images = 16;

}  // namespace

std::string drawn(Trainer& trainer, const RunOptions& run, const data::Source& train) {
  const ModelDef& model = run.definition();
  if (!model.sampler) return "";
  return png_grid(trainer.sample(train, model.sampler(run.model_options(), train, 0), drawn_images), "a sample");
}

std::optional<Written> written(Trainer& trainer, const RunOptions& run, const data::Source& test) {
  const ModelDef& model = run.definition();
  std::vector<data::Column> columns = test.columns();
  auto tokens = std::ranges::find(columns, "tokens", &data::Column::name);
  if (!model.context || tokens == columns.end() || tokens->type.dtype != DType::i32) return {};
  if (run.open.tokenizer == "chars" && test.vocabulary.empty()) return {};  // synthetic tokens have no text
  int64_t context = model.context(run.model_options());
  std::vector<int32_t> prompt(static_cast<size_t>(num_elements(tokens->type.shape)));
  int32_t first = 0;
  test.read("tokens", std::span(&first, 1), prompt.data());
  prompt.resize(
      static_cast<size_t>(std::clamp<int64_t>(context / 2, 1, std::min<int64_t>(prompt_tokens, std::ssize(prompt)))));
  std::vector<int32_t> after =
      generate(trainer, prompt, context, {.tokens = written_tokens, .temperature = 0.8, .top_k = 40});
  std::unique_ptr<data::Tokenizer> tokenizer = run.open_tokenizer();
  std::string begin = tokenizer->decode(prompt);
  prompt.insert(prompt.end(), after.begin(), after.end());
  std::string whole = tokenizer->decode(prompt);
  return Written{begin, whole.starts_with(begin) ? whole.substr(begin.size()) : tokenizer->decode(after)};
}

}  // namespace tutti::cli

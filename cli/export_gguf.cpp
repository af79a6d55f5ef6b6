#include "cli/export_gguf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "cli/model_file.h"
#include "cli/open_model.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/files/gguf_quantize.h"
#include "data/gguf_tokenizer_write.h"
#include "train/hf/folder.h"
#include "train/io/gguf_export.h"
#include "train/run/resume.h"

namespace tutti::cli {
namespace {

const GgufType& type_of(const std::string& name) {
  if (const GgufType* t = writable_gguf_type(name)) return *t;
  throw invalid_option("type", name, "unknown", "use one of " + gguf_type_names());
}

/// Data as the tokenizer makes them, to build the model for.
data::TensorSet columns_of(int64_t tokens) {
  HostTensor one = host_tensor(DType::i32, {1, 1}, std::vector<int32_t>{0});
  return {"tokens", {{"tokens", one}, {"next", one}}, {{"tokens", tokens}, {"next", tokens}}};
}

/// The decoder that the run's model is. Throws Error(invalid) for other models.
GgufDecoder decoder_of(const RunOptions& run, const std::string& output) {
  const ModelDef& def = run.definition();
  if (hf::is_config(def.text))
    if (std::optional<GgufDecoder> decoder = hf::decoder_of(def.text, run.model)) return *std::move(decoder);
  if (run.model == "llama") return llama_decoder(run.model_options());
  throw invalid_option("output", output,
                       fmt::format("the model is {}, and only llama, and decoders of its kind in Hugging Face folders, "
                                   "can be written as GGUF",
                                   hf::is_config(def.text) ? def.doc : run.model),
                       "export it to ONNX: --output model.onnx");
}

/// The weights for evaluation, f32, of a checkpoint, a folder, or a file of weights.
HostTensors weights_of(const ModelFile& model, const RunOptions& run, const data::TensorSet& columns) {
  if (model.weights_alone()) return run.weights(model.path());
  const InputLayout form = layout_of(columns, "export", false);
  const Task task = model.task(columns);
  if (!model.of_folder()) return evaluation_weights(model.path(), task, run.trainer_options(), form);
  HostTensors all = run.definition().weights(run.model_options(), columns);
  expect_weights_of(model.path(), all, Programs(task).declare(form));
  for (auto& [name, t] : all) t = t.to(DType::f32);
  return all;
}

}  // namespace

std::string gguf_type_names() {
  std::vector<std::string> names;
  for (const GgufType* t : writable_gguf_types()) names.emplace_back(t->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

int export_gguf(RunOptions& run, const std::string& file, const std::string& output, const std::string& type,
                bool json) {
  const GgufType& wanted = type_of(type);
  ModelFile model(file, run);
  run.validate();
  check_target("--output", output);
  GgufDecoder decoder = decoder_of(run, output);
  if ((model.weights_alone() || model.of_folder()) && run.open.tokenizer == "chars")
    throw invalid(fmt::format("{}: there is no tokenizer", model.path()),
                  "give one: --tokenizer hf:FOLDER or bpe:FOLDER");
  std::unique_ptr<data::Tokenizer> tokenizer = run.open_tokenizer();
  HostTensors weights = weights_of(model, run, columns_of(tokenizer->size()));
  const auto table = weights.find("model.embed_tokens.weight");
  if (table != weights.end() && table->second.type.shape.size() == 2)
    decoder.options.vocabulary = table->second.type.shape[0];
  std::optional<Gguf> source;  // whose metadata the new file gets
  if (run.weights_file().ends_with(".gguf"))
    source.emplace(run.weights_file());
  else
    decoder.architecture = gguf_architecture(decoder.options);
  const std::string name = std::filesystem::path(output).stem().string();
  const auto* characters = dynamic_cast<const data::Characters*>(tokenizer.get());
  std::vector<std::string> notes;
  const GgufMetadata words = data::gguf_tokenizer(run.open.tokenizer, characters ? characters->vocabulary() : "",
                                                  decoder.options.vocabulary, notes);
  GgufExport out = gguf_export(decoder, weights, name, wanted, words, source ? &*source : nullptr);
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  write_gguf(output, out.contents);
  uint64_t bytes = 0;
  for (const GgufOutput& t : out.contents.tensors) bytes += t.bytes.size();
  if (json)
    print_json({{"model", run.model},
                {"file", model.path()},
                {"output", output},
                {"architecture", decoder.architecture},
                {"type", wanted.name},
                {"tensors", out.contents.tensors.size()},
                {"tensor_bytes", bytes},
                {"notes", out.notes}});
  else
    print_out("{}: {} as GGUF, architecture {}: {} tensors of {}, matrices {}\n", output, run.model,
              decoder.architecture, out.contents.tensors.size(), bytes_text(bytes), wanted.name);
  for (const std::string& note : out.notes) print_err("{}\n", note);
  return done;
}

}  // namespace tutti::cli

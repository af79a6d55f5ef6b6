#include "cli/hf_output.h"

#include <filesystem>

#include "cli/print.h"
#include "train/hf/folder.h"
#include "train/hf/write.h"

namespace tutti::cli {

AdapterBase adapter_base(const RunOptions& run) {
  AdapterBase base;
  const ModelDef& def = run.definition();
  if (hf::is_folder(run.model)) base.folder = std::filesystem::absolute(run.model).lexically_normal().string();
  if (def.name == "bert")
    base.task = def.doc == "BertForSequenceClassification" ? "SEQ_CLS" : "FEATURE_EXTRACTION";
  else if (def.context && hf::has_config(def))
    base.task = "CAUSAL_LM";
  return base;
}

void write_folder(const std::string& folder, const RunOptions& run, const data::Source& set, HostTensors weights) {
  const ModelDef& def = run.definition();
  hf::FolderOptions how{.classes = data::classes_in(set.vocabulary)};
  if (!def.text.empty())
    how.source = run.model;
  else if (def.context)
    how.tokenizer = run.open.tokenizer;
  for (const std::string& what : hf::write_folder(folder, def, run.model_options(), set, std::move(weights), how))
    print_err("{}: without {}\n", folder, what);
}

}  // namespace tutti::cli

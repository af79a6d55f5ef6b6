#include "train/hf/beside.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "data/file.h"
#include "graph/print.h"
#include "train/hf/config.h"
#include "train/hf/folder.h"
#include "train/step/programs.h"

namespace tutti::hf {

namespace fs = std::filesystem;

void expect_config_of(const std::string& weights, const std::string& model, const Task& task, const data::Source& set,
                      const std::string& data) {
  std::error_code error;
  const fs::path folder = fs::is_directory(weights, error) ? fs::path(weights) : fs::path(weights).parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  if (!is_folder(name)) return;
  const ModelDef def = read_folder(name);
  const std::string remedy = fmt::format("name the folder as the model, without '{}': {}", model, name);
  const InputLayout form = layout_of(set, "set", false);
  std::string theirs, ours;
  try {
    const Task described = def.build({.data = data}, set);
    theirs = print(Programs(described).evaluation(form, 1));
    ours = print(Programs(task).evaluation(form, 1));
    if (theirs == ours) return;
    throw invalid(fmt::format("{}: the config.json beside it describes another model, {}, than '{}' is: {}", weights,
                              described.describe(), model, task.describe()),
                  remedy);
  } catch (const Error& e) {
    if (!ours.empty() || e.code != Code::invalid) throw;
    throw invalid(
        fmt::format("{}: the config.json beside it describes another model than '{}': {}", weights, model, e.what()),
        remedy);
  }
}

bool has_tokenizer(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::path(folder) / "tokenizer.json", error);
}

std::string normalise_of(const std::string& folder) {
  const std::string path = (fs::path(folder) / "preprocessor_config.json").string();
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  Config c(data::read_file(path, "use another folder"), path);
  if (!c.flag("do_normalize", true)) return "";
  std::vector<double> mean = c.reals("image_mean"), deviation = c.reals("image_std");
  if (mean.empty() && deviation.empty())
    c.fail("image_mean", "expected a number for each channel, or give " + option_text("normalise", "MEAN:STD"));
  if (mean.size() != deviation.size()) c.fail("image_std", "expected as many numbers as image_mean has");
  constexpr double usual = 1.0 / 255;
  if (!c.flag("do_rescale", true) || std::abs(c.real("rescale_factor", usual) - usual) > 1e-9)
    c.fail("rescale_factor", "expected 1/255, by which images are scaled");
  return fmt::format("{}:{}", fmt::join(mean, ","), fmt::join(deviation, ","));
}

}  // namespace tutti::hf
